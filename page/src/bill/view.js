/** The monthly bill: the cost of the reader's messages and rows with each engine. */

import { places } from "../answer/controls.js";
import { errorText } from "../answer/estimate.js";
import { points, rangesOf, usual } from "../answer/points.js";
import { warning } from "../answer/warning.js";
import { DAYS, billed, envelope } from "./bill.js";
import { stack } from "../charts/stack.js";
import { choice, h, slug, numberField } from "../dom.js";
import { figure } from "../figure.js";
import { dollars, fixed, percent, short, times, whole } from "../format.js";
import { nameOf } from "../rules.js";
import { ofStack } from "../suites/describe.js";
import { table } from "../tables/table.js";

const PARTS = [
  ["instructions", "Instructions"],
  ["messages", "Message fees"],
  ["storage", "Storage"],
  ["base", "Base fee"],
];
const INSTRUCTIONS = [
  { value: "work", text: "of the work, without this canister's own checks" },
  { value: "message", text: "of the whole message, as measured" },
];
/** Milliseconds without input after which screen readers announce the bill. */
const PAUSE = 350;

/**
 * @param {{reports: import("../data.js").Report[], charged_nodes: number}} data
 * @param {Object} kept the reader's earlier choices
 * @returns {HTMLElement?} `null` if no file has known prices
 */
export function bill(data, kept) {
  const sources = data.reports.flatMap((report) => {
    const all = report.rules && points(report);
    return all ? [{ report, all }] : [];
  });
  if (!sources.length) return null;
  const place = h("div");
  const show = (source) => place.replaceChildren(...content(source, data.charged_nodes, kept));
  show(sources[0]);
  const change = (source) => {
    // Another file has other sizes.
    for (const name of Object.keys(kept)) delete kept[name];
    show(source);
  };
  const options = sources.map(({ report }, at) => ({ value: String(at), text: report.file }));
  return h(
    "section",
    { id: "bill", "aria-labelledby": "bill-title" },
    h("h2", { id: "bill-title" }, "What does a month cost?"),
    sources.length > 1 && choice("From", options, "0", (value) => change(sources[Number(value)])),
    place,
  );
}

function content({ report, all }, chargedNodes, kept) {
  const { prices } = report.results;
  const ranges = rangesOf(all);
  const asked = Object.assign(kept, {
    perDay: 1_000, n: usual(ranges.n, all), payload: all.payload, rows: all.rows, place: all.places[0], gib: null,
    nodes: Number(prices.nodes), usd: Number(prices.usd_per_trillion_cycles), by: "work", ...kept,
  });
  const spoken = h("p", { class: "answer", "aria-live": "polite", "aria-atomic": "true" });
  const warned = h("div");
  const list = h("div");
  const stated = h("div");
  let rows = [];
  let timer = 0;
  const bars = () => rows.filter((row) => row.rank).map((row) => ({ heading: row.heading, parts: PARTS.map(([part]) => row.month[part] || 0) }));
  const chart = figure({
    title: "Cycles per month, by purpose",
    file: `${slug(report.results.suite)}-bill`,
    command: report.results.command,
    level: 3,
    draw: (context) => {
      const parts = PARTS.map(([, text]) => text.toLowerCase());
      return stack(context, { title: "Cycles per month", description: ofStack(bars(), parts), x: "cycles per month →", parts, bars: bars() });
    },
  });
  const change = (now) => {
    rows = billed(report, all, asked, ranges, chargedNodes);
    warned.replaceChildren(warning(report.results, rows, asked) ?? "");
    list.replaceChildren(billTable(rows));
    stated.replaceChildren(assumptions(report, rows, asked, chargedNodes));
    chart.redraw();
    const say = () => spoken.replaceChildren(...sentence(rows));
    clearTimeout(timer);
    if (now === true) say();
    else timer = setTimeout(say, PAUSE);
  };
  const basis = choice("Instructions", INSTRUCTIONS, asked.by, (value) => {
    asked.by = value;
    change(true);
  });
  const fields = controls({ asked, all, ranges, change });
  change(true);
  return [...fields, basis, warned, spoken, list, chart.element, stated];
}

function sentence(rows) {
  const best = rows.find((row) => row.rank === 1);
  if (!best) return ["There is no bill for these sizes: see the table for the reasons."];
  const last = rows.filter((row) => row.rank).pop();
  const shares = PARTS.filter(([part]) => best.month[part] > 0).map(([part, text]) => `${text.toLowerCase()} ${percent(best.month[part] / best.month.total)}`);
  const parts = [h("strong", {}, best.heading), ` costs least: ${short(best.month.total)} cycles or ${dollars(best.usd)} a month (${shares.join(", ")}).`];
  if (last !== best) parts.push(` ${last.heading} costs ${times(last.usd / best.usd)} as much.`);
  return parts;
}

function billTable(rows) {
  const numeric = (heading, value, text) => ({
    heading, numeric: true, value, cell: (row) => (Number.isFinite(value(row)) ? text(value(row)) : "–"),
    class: (row) => (row.rank === 1 ? "best" : null),
  });
  const gib = (value) => (value < 0.001 ? "< 0.001" : fixed(value, 3));
  return table({
    caption: "The bill of a month, the cheapest first",
    hideCaption: true,
    rows,
    columns: [
      { heading: "Engine or mode", value: (row) => row.heading, class: () => "ranked", cell: (row) => [h("span", { class: "rank" }, row.rank ? String(row.rank) : row.floor ? "" : "–"), row.heading] },
      numeric("USD", (row) => row.usd, dollars),
      numeric("Cycles", (row) => row.month?.total ?? NaN, short),
      ...PARTS.map(([part, text]) => numeric(text, (row) => row.month?.[part] ?? NaN, short)),
      numeric("Instructions of a message", (row) => row.instructions, whole),
      numeric("GiB stored", (row) => row.gib, gib),
      { heading: "How it is known", value: (row) => row.estimate.kind, class: () => "known", cell: (row) => h("span", { class: "facts" }, how(row)) },
    ],
  });
}

const KINDS = { measured: "measured", interpolated: "interpolated", estimated: "estimated from the measured sizes around these", none: "no figure" };

/** The origin of instructions and storage. */
function how(row) {
  if (row.estimate.kind === "measured" && row.fits && row.clamped === null && row.memory?.exact) return "measured";
  const facts = [row.estimate.how, errorText(row.estimate)];
  if (!row.fits) facts.unshift("more than one message can do");
  if (row.clamped !== null && row.estimate.cost) facts.unshift(`those of a table of ${whole(row.clamped)} rows`);
  const detail = facts.filter(Boolean).join("; ");
  const instructions = `Instructions: ${KINDS[row.estimate.kind]}${detail ? ` (${detail})` : ""}.`;
  if (!row.memory) return Number.isFinite(row.gib) ? instructions : `${instructions} Storage: not measured.`;
  if (row.memory.exact) return `${instructions} Storage: measured.`;
  return `${instructions} Storage: in proportion to ${whole(row.memory.rows)} rows of ${whole(row.memory.payload)} bytes.`;
}

/** The assumptions of the bill, with the prices. */
function assumptions(report, rows, asked, chargedNodes) {
  const { fees, charge } = report.rules;
  const bytes = rows.map((row) => envelope(row.estimate.cost, fees)).find((of) => of > 0) ?? 0;
  const items = [
    `A month has ${DAYS} days. Every message is an ingress update that inserts new rows in one transaction and contains them: ${whole(asked.n)} × ${whole(asked.payload)} bytes`
      + (bytes ? ` and ${whole(bytes)} more bytes, as measured.` : "."),
    "Queries are free. Calls between canisters, updates without new rows, deletions, timers and installation are not in the bill.",
    charge,
    "Instructions of a message are interpolated as in the answer above. Outside of the measured range of rows, they are those of the nearest measured table.",
    "Storage is the heap and the stable memory of the measured canister with each engine, in proportion to rows × bytes: this includes caches and free space, because the canister pays for them. The module, snapshots and logs are not included.",
    `Prices under the rules ${nameOf(report)}, in cycles on an application subnet of ${whole(chargedNodes)} nodes, scaled by nodes / ${whole(chargedNodes)}: ${whole(fees.execution)} for an execution, ${whole(fees.ingress)} for a message and ${whole(fees.ingress_byte)} for each byte of it, `
      + `${whole(fees.instruction)} for an instruction, ${whole(fees.storage_gib_second)} for a GiB and second, `
      + (fees.canister_second > 0 ? `${whole(fees.canister_second)} for a canister and second.` : "no base fee for a canister."),
  ];
  return h("details", { class: "method", open: true }, h("summary", {}, "What this bill assumes"), h("ul", { class: "assumed" }, items.map((item) => h("li", {}, item))));
}

/**
 * The fields of the bill, as sentences.
 * @param {{asked: import("./bill.js").Asked, all: import("../answer/points.js").Points,
 *   ranges: Object<string, [number, number]>, change: () => void}} of `asked` is updated
 * @returns {HTMLElement[]}
 */
export function controls({ asked, all, ranges, change }) {
  const field = (name, label, digits, of = {}) =>
    numberField({ name, label, value: asked[name], min: 1, step: 1, digits, ...of, change: (value) => { asked[name] = value; change(); } });
  const measured = (name, label) => {
    const [min, max] = ranges[name];
    return field(name, label, String(max).length + 2, { min, max, readonly: min === max });
  };
  const storage = numberField({
    name: "gib", label: "Storage in GiB; as measured if empty", value: asked.gib ?? "", min: 0, step: "any", digits: 6, optional: true,
    change: (value) => { asked.gib = value; change(); },
  });
  return [
    h("p", { class: "sentence" },
      field("perDay", "Messages per day", 9), " messages per day insert ", measured("n", "Rows per message"), " rows of ",
      measured("payload", "Bytes per row"), " bytes each, ", places(asked, all.places, change), ", and ",
      field("rows", "Rows stored", 12), " rows are stored."),
    h("p", { class: "sentence small" },
      "The subnet has ", field("nodes", "Nodes of the subnet", 6), " nodes. A trillion cycles cost ",
      field("usd", "US dollars for a trillion cycles", 6, { min: 0.01, step: 0.01 }), " US dollars. Storage: ", storage,
      " GiB for every engine; empty for each engine's own, as measured."),
  ];
}
