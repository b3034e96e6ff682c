/** The first part of the page: the reader's mix, one recommendation, and the origin and errors of the figures. */

import { copyable, exactly, measuredWith, snippet } from "./command.js";
import { heading, pragmas, settingsOf, undoes } from "./data.js";
import { announcer, choice, fold, h, numberField } from "./dom.js";
import { OPERATIONS, UNCERTAIN, errorSize, errorText, kindText, leaveOneOut, uncertain } from "./estimates/inserts.js";
import { leaveOneOut as operationsLeftOut } from "./estimates/mix.js";
import { compared, ranked } from "./estimates/rank.js";
import { count, dollars, percent, short, times, whole } from "./format.js";
import { LIMITS, sourceOf } from "./question.js";
import { rankedColumn, table, textual } from "./tables.js";

/** The number of messages for which a price is shown. */
const MESSAGES = 1e6;
/** The place in words. */
const PLACES = { middle: "in the middle", end: "at the end", random: "at random places" };
const ORDERS = [
  { value: "cycles", text: "cycles, without this canister's own checks" },
  { value: "message", text: "cycles of the whole message, as measured" },
  { value: "instructions", text: "instructions of the work" },
];
/** Columns of the tables of errors. */
const ERRORS = {
  inserts: { n: "Over rows per message", rows: "Over rows in the table", payload: "Over bytes per row" },
  operations: { read: "Reads", update: "Updates", delete: "Deletions", scan: "Scans" },
};

/**
 * The first part of the page.
 * @param {import("./question.js").Question} question
 * @param {number} chargedNodes the subnet size of the prices
 * @returns {HTMLElement}
 */
export function answer(question, chargedNodes) {
  const { sources } = question;
  const section = h("section", { id: "answer", "aria-labelledby": "answer-title" }, h("h2", { id: "answer-title" }, "What is cheapest for my mix?"));
  if (!sources.length) {
    section.append(h("p", { class: "about" }, "None of these files answers this. ", h("code", {}, "stablebench run mix"), " measures a mix of your own, ",
      h("code", {}, "stablebench run users"), " what many mixes can be estimated from."));
    return section;
  }
  if (sources.length > 1) section.append(from(question));
  section.append(...content(question, chargedNodes));
  return section;
}

/** The choice of a file, with its own question. */
function from(question) {
  const { sources, asked } = question;
  const options = sources.map(({ report, mix }, at) => ({ value: String(at), text: mix ? `${report.title}: ${describe(mix)}` : `${report.title}: estimates` }));
  return choice("From", options, String(sources.indexOf(sourceOf(sources, asked))), (value) => question.start(sources[Number(value)]));
}

/** A mix in words. @param {import("./estimates/mix.js").Mix} mix */
function describe(mix) {
  const done = OPERATIONS.filter((name) => mix[name] > 0).map((name) => count(mix[name], name));
  const indexes = mix.indexes ? `, ${mix.indexes} ${mix.indexes === 1 ? "index" : "indexes"}` : "";
  return `${done.join(", ") || "nothing"} ${PLACES[mix.place]} in ${whole(mix.rows)} rows of ${whole(mix.payload)} bytes${indexes}`;
}

function content(question, chargedNodes) {
  const { asked, sources } = question;
  const spoken = h("div", { class: "answer", "aria-live": "polite", "aria-atomic": "true" });
  const warned = h("div");
  const advised = h("div");
  const list = h("div");
  const origin = h("div");
  const errors = h("div");
  const fill = (source) => errors.replaceChildren(...errorTables(source, asked.place));
  // The tables take a while to compute, and few readers open them.
  const details = h("details", { class: "method", ontoggle: () => details.open && !errors.hasChildNodes() && fill(sourceOf(sources, asked)) },
    h("summary", {}, "Origin and error of these figures"), origin, errors);
  const announce = announcer(spoken);
  let shown = null;
  const update = (now) => {
    const source = sourceOf(sources, asked);
    const found = ranked(source.report, source, asked, chargedNodes, source.cost);
    const command = exactly(source.report.results, asked, found.rows);
    const more = measuredWith(source.report.results, found.rows).filter((key) => !found.rows.some((row) => row.key === key));
    const also = more.length > 0 && h("p", { class: "about" }, "The command also measures ", more.flatMap((key, at) => [at ? ", " : "", h("code", {}, key)]), ", which this file has not.");
    const warn = warning(found.rows, command, also);
    warned.replaceChildren(warn ?? "");
    advised.replaceChildren(recommended(source.report, found.rows, found.by), ...(warn ? [] : [copyable(command, "exactly this mix", { open: true, title: "Command that measures exactly this mix" }), also].filter(Boolean)));
    list.replaceChildren(answerTable(found, asked));
    announce(now, () => [h("p", {}, ...sentence(source.report, found))]);
    const key = `${source.report.file} ${asked.place} ${Boolean(source.mix)}`;
    if (shown !== key) {
      shown = key;
      origin.replaceChildren(...method(source));
      if (details.open) fill(source);
      else errors.replaceChildren();
    }
  };
  question.listen(update);
  update(true);
  const change = () => question.change();
  return [
    ...controls(asked, change), orders(asked, () => question.change(true)), warned, spoken, advised,
    fold("All engines", list),
    details,
  ];
}

/** The recommendation in words. */
function sentence(report, { rows, by }) {
  const all = rows.filter((row) => row.rank !== null);
  const best = all.find((row) => undoes(settingsOf(report, row.key)));
  if (!best) return [`There is no figure for this mix: ${reason(rows)}. The command measures it.`];
  const cost = [`${whole(best.instructions)} instructions`];
  if (Number.isFinite(best.charge) && best.charge !== best.instructions) cost.push(`${whole(best.charge)} with heap pages`);
  if (Number.isFinite(best.cycles)) cost.push(`${short(best.cycles)} cycles, ${dollars(best.usd * MESSAGES)} for a million messages`);
  const inexact = all.some((row) => uncertain(row.estimate)) ? "By inexact estimates, " : "";
  const parts = [inexact, h("strong", {}, best.heading), ` is cheapest: ${cost.join("; ")}.`];
  const kinds = { measured: "This was measured", interpolated: "This is interpolated", estimated: "This is estimated" };
  const error = best.estimate.error === null ? "" : `, and may be wrong by ${errorSize(best.estimate.error)}`;
  parts.push(` ${[`${kinds[best.estimate.kind]}${error}`, best.estimate.how].filter(Boolean).join(": ")}.`);
  const noun = by === "cycles" ? "cycles" : "instructions";
  const others = compared(rows).filter(({ row }) => row !== best);
  const takes = others.map(({ row, name }, at) => `${name}${at ? "" : " takes"} ${times(row[by] / best[by])}${at ? "" : ` the ${noun}`}`);
  if (takes.length) parts.push(` ${takes.join("; ")}.`);
  const close = all.filter((row) => row !== best && row.estimate.low <= best.estimate.high && (row.estimate.error !== null || best.estimate.error !== null));
  if (close.length) parts.push(` ${count(close.length, "other")} may be as cheap: the difference is within the error.`);
  return parts;
}

/** Why there is no figure: what most of the engines lack. */
function reason(rows) {
  const reasons = rows.filter((row) => !row.floor).map((row) => (row.estimate.cost ? "it is more than one message can do" : row.estimate.how));
  const times = (of) => reasons.filter((other) => other === of).length;
  return reasons.sort((one, other) => times(other) - times(one))[0] ?? "nothing was measured";
}

function answerTable({ rows, by }, asked) {
  const most = Math.max(...rows.filter((row) => row.rank).map((row) => row[by]));
  const best = rows.find((row) => row.rank === 1);
  const bar = (row) => h("span", { class: row.floor ? "bar floor" : "bar", "aria-hidden": "true",
    style: { width: `${Number.isFinite(row[by]) ? Math.min(100, (row[by] / most) * 100) : 0}%` } });
  return table({
    caption: `A message with ${describe(asked)}, the cheapest first`,
    hideCaption: true,
    rows,
    columns: [
      {
        heading: "Engine or mode",
        value: (row) => row.heading,
        class: () => "ranked",
        cell: (row) => [h("span", { class: "rank" }, row.rank ? String(row.rank) : row.floor ? "" : "–"), row.heading, h("span", { class: "track" }, bar(row))],
      },
      rankedColumn("Compared with the cheapest", (row) => (row.fits ? row[by] / (best?.[by] ?? NaN) : NaN), times),
      rankedColumn("Instructions", (row) => row.instructions, whole),
      rankedColumn("Charge", (row) => row.charge, whole),
      rankedColumn("Cycles", (row) => row.cycles, whole),
      rankedColumn("USD per million messages", (row) => row.usd * MESSAGES, dollars),
      { heading: "How it is known", value: (row) => row.estimate.kind, class: () => "how", cell: how },
    ],
  });
}

function how(row) {
  const { estimate } = row;
  const facts = [estimate.kind === "none" ? estimate.how : errorText(estimate)];
  if (!row.fits) facts.unshift("more than one message can do");
  return [h("span", { class: `badge ${estimate.kind}` }, kindText(estimate)), h("span", { class: "facts" }, facts.filter(Boolean).join("; "))];
}

function method({ report, mix }) {
  const cycles = h("p", {}, report.rules && `${report.rules.charge} `, "The charge excludes what is around the work; cycles are the charge and the fee for submitting the message, ",
    "for the given number of nodes. Around the work, this canister decodes its argument and checks the ids; other canisters do something else. ",
    "The whole message, as measured, includes that part.");
  if (mix) return [h("p", {}, "These figures are the mean of messages that were measured one after the other, and raw. The same file has no figure for another mix."), cycles];
  return [
    h("p", {}, "Measured figures are raw, and of one message. Others are estimated from the measured sizes that surround the question, compute and pages apart. ",
      "A message pays its fixed part once. Compute is added for each operation; what longer rows add is added for each row. ",
      "A page that several operations touch is paid once: at random places they meet by chance, elsewhere they work on the same pages. There is no figure beyond the measured sizes."),
    cycles,
    h("p", {}, "The stated range contains what different ways of estimating give, and is extended by what measured points are missed by if they are left out. Where something begins between two measured sizes, as when SQLite goes through its whole cache after pages have split, it contains both sides. ",
      "The tables show how far measured points are missed if they are left out and estimated from the others, which are then further apart than in use. Floors store the same bytes in bare stable memory and do nothing else: they have no rank."),
  ];
}

/**
 * The question as sentences with fields.
 * @param {import("./question.js").Asked} asked is updated
 * @param {() => void} change
 * @returns {HTMLElement[]}
 */
function controls(asked, change) {
  const field = (name, label, digits = 3) => {
    const [min, max] = LIMITS[name];
    return numberField({ name, label, value: asked[name], min, max, step: 1, digits, change: (value) => { asked[name] = value; change(); } });
  };
  const price = numberField({
    name: "usd", label: "US dollars for a trillion cycles", value: asked.usd, min: 0.01, step: 0.01, digits: 5,
    change: (value) => { asked.usd = value; change(); },
  });
  return [
    h("p", { class: "sentence" },
      "A message inserts ", field("insert", "Rows that a message inserts"), " rows, reads ", field("read", "Rows that a message reads"),
      ", updates ", field("update", "Rows that a message updates"), ", deletes ", field("delete", "Rows that a message deletes"),
      " and scans ", field("scan", "Ranges of 100 rows that a message scans"), " ranges of 100, ", places(asked, change),
      ". The table has ", field("rows", "Rows in the table", 8), " rows of ", field("payload", "Bytes per row", 6), " bytes and ",
      field("indexes", "Secondary indexes", 2), " secondary indexes."),
    h("p", { class: "sentence small" },
      "The subnet has ", field("nodes", "Nodes of the subnet"), " nodes, and a trillion cycles cost ", price, " US dollars."),
  ];
}

/** The choice of the place. */
function places(asked, change) {
  const select = h(
    "select",
    { "aria-label": "Where the rows are", name: "place", onchange: () => { asked.place = select.value; change(); } },
    Object.entries(PLACES).map(([value, text]) => h("option", { value, selected: value === asked.place }, text)),
  );
  return select;
}

/** The choice of what counts. @param {import("./question.js").Asked} asked is updated @param {() => void} change */
function orders(asked, change) {
  return choice("Ranked by", ORDERS, asked.by, (value) => { asked.by = value; change(); });
}

/**
 * The first thing to say where there is no figure, or none that is exact enough for a decision: the command that measures it.
 * @param {Array<{heading: string, rank: number?, estimate: import("./estimates/inserts.js").Estimate}>} rows
 * @param {string} command that measures exactly what is asked
 * @param {Node|false} also what else it measures
 * @returns {HTMLElement?} `null` if all ranked figures are exact enough
 */
function warning(rows, command, also) {
  const all = rows.filter((row) => row.rank);
  const inexact = all.filter((row) => uncertain(row.estimate));
  if (all.length && !inexact.length) return null;
  return h(
    "div",
    { class: "warning" },
    h("p", {}, h("strong", {}, "Measure this."), ` ${all.length ? estimates(all, inexact) : "These files have no figure for this mix."} This command measures exactly this mix:`),
    copyable(command, "exactly this mix", { open: true }),
    also,
  );
}

function estimates(all, inexact) {
  const worst = Math.max(...inexact.map((row) => row.estimate.error));
  const which = inexact.length === all.length ? "All figures" : `${whole(inexact.length)} of ${whole(all.length)} figures`;
  return `${which} for this mix ${inexact.length === 1 ? "is an estimate that may be" : "are estimates that may be"} wrong by more than ${percent(UNCERTAIN)}, ${errorSize(worst)}.`;
}

/**
 * What to do: the PRAGMAs of the cheapest configuration, and of the cheapest SQLite if that is another one.
 * @param {import("./data.js").Report} report
 * @param {import("./estimates/rank.js").Ranked[]} rows as ranked
 * @param {"cycles"|"instructions"} by
 * @returns {HTMLElement}
 */
function recommended(report, rows, by) {
  const all = rows.filter((row) => row.rank !== null).map((row) => ({ ...row, settings: settingsOf(report, row.key) }));
  const best = all.find((row) => undoes(row.settings));
  if (!best) return h("div");
  const sql = best.settings ? best : all.find((row) => row.settings && undoes(row.settings));
  const unsafe = all.find((row) => !undoes(row.settings));
  return h(
    "div",
    { class: "advised" },
    sql && sql !== best && h("p", {}, "If it must be SQL: ", h("strong", {}, sql.heading), ` takes ${times(sql[by] / best[by])} as much.`),
    sql && paste(sql),
    unsafe && unsafe.rank < best.rank && h("p", { class: "about" }, `${unsafe.heading} takes ${times(unsafe[by] / best[by])} as much, but cannot undo a transaction, so that it is not recommended.`),
  );
}

function paste({ heading, settings }) {
  const lines = pragmas(settings);
  if (!lines.length) return h("p", { class: "about" }, `${heading} is as its library ships it: no PRAGMA is needed.`);
  return h(
    "div",
    {},
    h("p", { class: "about" }, `PRAGMAs of ${heading}, to paste after the connection opens${"page_size" in settings ? ", before the first table" : ""}:`),
    snippet(lines.join("\n"), `PRAGMAs of ${heading}`),
  );
}

/** How far measured points are missed if each is left out and estimated from the others. @param {import("./question.js").Source} source @param {string} place @returns {HTMLElement[]} */
function errorTables({ report, measurements: all }, place) {
  if (!all) return [];
  const rows = (errors) => all.engines.map((engine) => ({ heading: heading(report, engine.key), errors: errors(engine) }));
  const inserts = all.places.includes(place) ? [errorTable(`new rows (${place})`, ERRORS.inserts, rows((engine) => leaveOneOut(all.inserts, engine.inserts, place)))] : [];
  return [...inserts, errorTable("other operations", ERRORS.operations, rows((engine) => operationsLeftOut(all, engine)))];
}

function errorTable(what, columns, rows) {
  return table({
    caption: `Error of a measured point estimated from the others, ${what}: worst / typical, and how many are within the stated range`,
    rows,
    columns: [
      textual("Engine", (row) => row.heading),
      ...Object.entries(columns).map(([key, name]) => ({
        heading: name,
        numeric: true,
        value: (row) => row.errors[key].errors.at(-1) ?? NaN,
        cell: (row) => words(row.errors[key]),
      })),
    ],
  });
}

function words({ errors, within }) {
  if (errors.length === 0) return "too few points";
  return `${percent(errors.at(-1))} / ${percent(errors[errors.length >> 1])}, ${whole(within)} of ${whole(errors.length)}`;
}
