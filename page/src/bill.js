/** The monthly bill: the cost of the reader's messages and rows with each engine. */

import { figure } from "./chart-parts.js";
import { ofStack, stack } from "./charts.js";
import { rulesOf, settingsOf, undoes } from "./data.js";
import { announcer, fold, h, numberField } from "./dom.js";
import { errorText, kindText, uncertain } from "./estimates/inserts.js";
import { DAYS, billed, envelope } from "./estimates/rank.js";
import { dollars, fixed, percent, short, times, whole } from "./format.js";
import { LIMITS, sourceOf } from "./question.js";
import { rankedColumn, table } from "./tables.js";

const PARTS = [
  ["instructions", "Instructions"],
  ["messages", "Message fees"],
  ["storage", "Storage"],
  ["base", "Base fee"],
];

/**
 * @param {import("./question.js").Question} question
 * @param {number} chargedNodes the subnet size of the prices
 * @returns {HTMLElement?} `null` if no file has known prices
 */
export function bill(question, chargedNodes) {
  const { asked } = question;
  const sources = question.sources.filter((source) => source.report.rules);
  if (!sources.length) return null;
  const spoken = h("p", { class: "answer", "aria-live": "polite", "aria-atomic": "true" });
  const warned = h("div");
  const list = h("div");
  const stated = h("div");
  let rows = [];
  const announce = announcer(spoken);
  const bars = () => rows.filter((row) => row.rank).map((row) => ({ heading: row.heading, parts: PARTS.map(([part]) => row.month[part] || 0) }));
  const chart = figure({
    title: "Cycles per month, by purpose",
    file: "bill",
    command: sourceOf(sources, asked).report.results.command,
    level: 3,
    draw: (context) => {
      const parts = PARTS.map(([, text]) => text.toLowerCase());
      return stack(context, { title: "Cycles per month", description: ofStack(bars(), parts), x: "cycles per month →", parts, bars: bars() });
    },
  });
  const update = (now) => {
    const source = sourceOf(sources, asked);
    rows = billed(source, asked, chargedNodes);
    const inexact = rows.some((row) => row.rank && uncertain(row.estimate));
    warned.replaceChildren(inexact ? h("p", { class: "about" }, "By inexact estimates: the command above measures this mix.") : "");
    list.replaceChildren(billTable(rows));
    stated.replaceChildren(...assumptions(source.report, rows, asked, chargedNodes));
    chart.redraw();
    announce(now, () => sentence(source.report, rows));
  };
  question.listen(update);
  update(true);
  return h(
    "section",
    { id: "bill", "aria-labelledby": "bill-title" },
    h("h2", { id: "bill-title" }, "What does a month of it cost?"),
    controls(asked, () => question.change()),
    warned,
    spoken,
    fold("The bill of each engine", list, chart.element),
    h("details", { class: "method" }, h("summary", {}, "What this bill assumes"), stated),
  );
}

function sentence(report, rows) {
  const best = rows.find((row) => row.rank && undoes(settingsOf(report, row.key)));
  if (!best) return ["There is no bill for this mix: see the table for the reasons."];
  const last = rows.filter((row) => row.rank).pop();
  const shares = PARTS.filter(([part]) => best.month[part] > 0).map(([part, text]) => `${text.toLowerCase()} ${percent(best.month[part] / best.month.total)}`);
  const parts = [h("strong", {}, best.heading), ` costs least: ${short(best.month.total)} cycles or ${dollars(best.usd)} a month (${shares.join(", ")}).`];
  if (last !== best) parts.push(` ${last.heading} costs ${times(last.usd / best.usd)} as much.`);
  return parts;
}

function billTable(rows) {
  const gib = (value) => (value < 0.001 ? "< 0.001" : fixed(value, 3));
  return table({
    caption: "The bill of a month, the cheapest first",
    hideCaption: true,
    rows,
    columns: [
      { heading: "Engine or mode", value: (row) => row.heading, class: () => "ranked", cell: (row) => [h("span", { class: "rank" }, row.rank ? String(row.rank) : row.floor ? "" : "–"), row.heading] },
      rankedColumn("USD", (row) => row.usd, dollars),
      rankedColumn("Cycles", (row) => row.month?.total ?? NaN, short),
      ...PARTS.map(([part, text]) => rankedColumn(text, (row) => row.month?.[part] ?? NaN, short)),
      rankedColumn("Instructions of a message", (row) => row.instructions, whole),
      rankedColumn("GiB stored", (row) => row.gib, gib),
      { heading: "How it is known", value: (row) => row.estimate.kind, class: () => "known", cell: (row) => h("span", { class: "facts" }, how(row)) },
    ],
  });
}

/** The origin of instructions and storage. */
function how(row) {
  if (row.estimate.kind === "measured" && row.fits && row.clamped === null && row.memory?.exact) return "measured";
  // The answer says of which messages an estimate is made.
  const facts = [row.estimate.kind === "estimated" ? "" : row.estimate.how, errorText(row.estimate)];
  if (!row.fits) facts.unshift("more than one message can do");
  if (row.clamped !== null && row.estimate.cost) facts.unshift(`those of a table of ${whole(row.clamped)} rows`);
  const detail = facts.filter(Boolean).join("; ");
  const instructions = `Instructions: ${kindText(row.estimate)}${detail ? ` (${detail})` : ""}.`;
  if (!row.memory) return Number.isFinite(row.gib) ? instructions : `${instructions} Storage: not measured.`;
  if (row.memory.exact) return `${instructions} Storage: measured.`;
  return `${instructions} Storage: in proportion to ${whole(row.memory.rows)} rows of ${whole(row.memory.payload)} bytes.`;
}

/** The assumptions of the bill, with the prices. */
function assumptions(report, rows, asked, chargedNodes) {
  const { fees, charge } = report.rules;
  const bytes = rows.map((row) => envelope(row.estimate.cost, fees)).find((of) => of > 0) ?? 0;
  const items = [
    `A month has ${DAYS} days. Every message is an ingress update with the mix above, in one transaction. It contains the rows that it inserts and updates: ${whole(asked.insert + asked.update)} × ${whole(asked.payload)} bytes`
      + (bytes ? ` and ${whole(bytes)} more bytes, as measured.` : "."),
    "Reads in updates are in the bill, as a part of the mix. Queries are free. Calls between canisters, timers and installation are not in the bill.",
    charge,
    "Instructions of a message are those of the answer above. Outside of the measured range of rows, they are those of the nearest measured table.",
    "Storage is the heap and the stable memory of the measured canister with each engine, in proportion to rows × bytes: this includes caches and free space, because the canister pays for them. The module, snapshots and logs are not included.",
    `Prices under the rules ${rulesOf(report)}, in cycles on an application subnet of ${whole(chargedNodes)} nodes, scaled by nodes / ${whole(chargedNodes)}: ${whole(fees.execution)} for an execution, ${whole(fees.ingress)} for a message and ${whole(fees.ingress_byte)} for each byte of it, `
      + `${whole(fees.instruction)} for an instruction, ${whole(fees.storage_gib_second)} for a GiB and second, `
      + (fees.canister_second > 0 ? `${whole(fees.canister_second)} for a canister and second.` : "no base fee for a canister."),
  ];
  return [h("ul", { class: "assumed" }, items.map((item) => h("li", {}, item)))];
}

/**
 * The fields of the bill, as a sentence.
 * @param {import("./question.js").Asked} asked is updated
 * @param {() => void} change
 * @returns {HTMLElement}
 */
function controls(asked, change) {
  const [min, max] = LIMITS.perDay;
  const messages = numberField({
    name: "perDay", label: "Messages per day", value: asked.perDay, min, max, step: 1, digits: 9,
    change: (value) => { asked.perDay = value; change(); },
  });
  const storage = numberField({
    name: "gib", label: "Storage in GiB; as measured if empty", value: asked.gib ?? "", min: 0, step: "any", digits: 6, optional: true,
    change: (value) => { asked.gib = value; change(); },
  });
  return h("p", { class: "sentence small" },
    messages, " messages of this mix per day, and the table above, with ", storage, " GiB of storage for every engine; empty for each engine's own, as measured.");
}
