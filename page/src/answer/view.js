/** The first part of the page: the question, its answer, and the origin and errors of the figures. */

import { controls } from "./controls.js";
import { errorText, leaveOneOut, uncertain } from "./estimate.js";
import { points, rangesOf, usual } from "./points.js";
import { compared, ranked } from "./rank.js";
import { warning } from "./warning.js";
import { heading } from "../data.js";
import { choice, h } from "../dom.js";
import { count, dollars, short, times, whole, percent } from "../format.js";
import { table } from "../tables/table.js";

/** The number of messages for which a price is shown. */
const MESSAGES = 1e6;
const ORDERS = [
  { value: "cycles", text: "cycles, without this canister's own checks" },
  { value: "message", text: "cycles of the whole message, as measured" },
  { value: "instructions", text: "instructions of the work" },
];
/** Milliseconds without input after which screen readers announce the answer. */
const PAUSE = 350;

/**
 * @param {{reports: import("../data.js").Report[], charged_nodes: number}} data
 * @param {Object} kept the reader's earlier choices
 * @returns {HTMLElement}
 */
export function answer(data, kept) {
  const sources = data.reports.flatMap((report) => {
    const all = points(report);
    return all ? [{ report, all }] : [];
  });
  const section = h("section", { id: "answer", "aria-labelledby": "answer-title" }, h("h2", { id: "answer-title" }, "What is cheapest?"));
  if (!sources.length) {
    section.append(h("p", { class: "about" }, "None of these files contains the section insert of the suite users, which answers this. ",
      h("code", {}, "stablebench run users"), " measures it."));
    return section;
  }
  const place = h("div");
  const show = (source) => place.replaceChildren(...question(source, data.charged_nodes, kept));
  if (sources.length > 1) {
    const options = sources.map(({ report }, at) => ({ value: String(at), text: report.file }));
    section.append(choice("From", options, "0", (value) => {
      // Another file has other sizes.
      for (const name of Object.keys(kept)) delete kept[name];
      show(sources[Number(value)]);
    }));
  }
  show(sources[0]);
  section.append(place);
  return section;
}

function question({ report, all }, chargedNodes, kept) {
  const { prices } = report.results;
  const ranges = rangesOf(all);
  const asked = Object.assign(kept, {
    n: usual(ranges.n, all), payload: all.payload, rows: all.rows, place: all.places[0],
    nodes: Number(prices.nodes), usd: Number(prices.usd_per_trillion_cycles), by: "cycles", ...kept,
  });
  const spoken = h("p", { class: "answer", "aria-live": "polite", "aria-atomic": "true" });
  const warned = h("div");
  const list = h("div");
  const errors = h("div");
  let timer = 0;
  const change = (now) => {
    const found = ranked(report, all, asked, chargedNodes);
    warned.replaceChildren(warning(report.results, found.rows, asked) ?? "");
    list.replaceChildren(answerTable(found, asked));
    const say = () => spoken.replaceChildren(...sentence(found, asked));
    clearTimeout(timer);
    if (now === true) say();
    else timer = setTimeout(say, PAUSE);
    if (errors.dataset.place !== asked.place) {
      errors.dataset.place = asked.place;
      errors.replaceChildren(errorTable(report, all, asked.place));
    }
  };
  const order = choice("Ranked by", ORDERS, asked.by, (value) => {
    asked.by = value;
    change(true);
  });
  const fields = controls({ asked, places: all.places, ranges, change });
  change(true);
  const fixed = fixedSizes(ranges);
  const note = fixed ? [h("p", { class: "about" }, fixed)] : [];
  return [...fields, ...note, order, warned, spoken, list, method(report, all, errors)];
}

function fixedSizes(ranges) {
  const fixed = [
    ["payload", "bytes per row", "payload"],
    ["rows", "rows in the table", "curve"],
  ].filter(([name]) => ranges[name][0] === ranges[name][1]);
  if (!fixed.length) return null;
  const parts = fixed.map(([name, what, section]) => `${whole(ranges[name][0])} ${what} (the section ${section} varies them)`);
  return `This file was measured with ${parts.join(" and ")}, so that cannot be changed here.`;
}

function sentence({ rows, by }, asked) {
  const best = rows.find((row) => row.rank === 1);
  if (!best) return ["Nothing was measured for these sizes."];
  const others = rows.filter((row) => row.rank > 1);
  const cost = [`${whole(best.instructions)} instructions`];
  if (Number.isFinite(best.charge) && best.charge !== best.instructions) cost.push(`${whole(best.charge)} with heap pages`);
  if (Number.isFinite(best.cycles)) {
    cost.push(`${short(best.cycles)} cycles, ${dollars(best.usd * MESSAGES)} for a million messages`);
  }
  const inexact = [best, ...others].some((row) => uncertain(row.estimate)) ? "By inexact estimates, " : "";
  const parts = [inexact, h("strong", {}, best.heading), ` is cheapest: ${cost.join("; ")}.`];
  const noun = by === "cycles" ? "cycles" : "instructions";
  const takes = compared(rows).map(({ row, name }, at) => `${name}${at ? "" : " takes"} ${times(row[by] / best[by])}${at ? "" : ` the ${noun}`}`);
  if (takes.length) parts.push(` ${takes.join("; ")}.`);
  const kinds = { measured: "This was measured", interpolated: "This is interpolated", estimated: "This is estimated from the measured sizes around it" };
  parts.push(` ${[kinds[best.estimate.kind], best.estimate.how].filter(Boolean).join(": ")}.`);
  const close = others.filter((row) => row.estimate.low <= best.estimate.high && (row.estimate.error !== null || best.estimate.error !== null));
  if (close.length) parts.push(` ${count(close.length, "other")} may be as cheap: the difference is within the error.`);
  return parts;
}

function answerTable({ rows, by }, asked) {
  const most = Math.max(...rows.filter((row) => row.rank).map((row) => row[by]));
  const best = rows.find((row) => row.rank === 1);
  const numeric = (heading, value, text) => ({
    heading, numeric: true, value, cell: (row) => (Number.isFinite(value(row)) ? text(value(row)) : "–"),
    class: (row) => (row.rank === 1 ? "best" : null),
  });
  const bar = (row) => h("span", { class: row.floor ? "bar floor" : "bar", "aria-hidden": "true",
    style: { width: `${Number.isFinite(row[by]) ? Math.min(100, (row[by] / most) * 100) : 0}%` } });
  return table({
    caption: `A message of ${whole(asked.n)} rows, the cheapest first`,
    hideCaption: true,
    rows,
    columns: [
      {
        heading: "Engine or mode",
        value: (row) => row.heading,
        class: () => "ranked",
        cell: (row) => [h("span", { class: "rank" }, row.rank ? String(row.rank) : row.floor ? "" : "–"), row.heading, h("span", { class: "track" }, bar(row))],
      },
      numeric("Compared with the cheapest", (row) => (row.fits ? row[by] / (best?.[by] ?? NaN) : NaN), times),
      numeric("Instructions", (row) => row.instructions, whole),
      numeric("Charge", (row) => row.charge, whole),
      numeric("Cycles", (row) => row.cycles, whole),
      numeric("USD per million messages", (row) => row.usd * MESSAGES, dollars),
      { heading: "How it is known", value: (row) => row.estimate.kind, class: () => "how", cell: how },
    ],
  });
}

const KINDS = { measured: "measured", interpolated: "interpolated", estimated: "estimated", none: "no figure" };

function how(row) {
  const { estimate } = row;
  const facts = [estimate.kind === "none" ? estimate.how : errorText(estimate)];
  if (!row.fits) facts.unshift("more than one message can do");
  return [h("span", { class: `badge ${estimate.kind}` }, KINDS[estimate.kind]), h("span", { class: "facts" }, facts.filter(Boolean).join("; "))];
}

function method(report, all, errors) {
  return h(
    "details",
    { class: "method" },
    h("summary", {}, "Origin and error of these figures"),
    h("p", {}, "Measured figures are raw. Others are estimated from the measured sizes that surround the question, compute and pages apart. ",
      "Compute has a fixed part and a part for each row; what longer rows add is added for each row. ",
      "Pages depend on the bytes of the message and of the table: 5 rows of 300 bytes touch about as many as 15 of 100. There is no figure beyond the measured sizes."),
    h("p", {}, report.rules && `${report.rules.charge} `, "The charge above excludes what is around the work; cycles are the charge and the fee for submitting the message, ",
      "for the given number of nodes. Around the work, this canister decodes its argument and checks the ids; other canisters do something else. ",
      "The whole message, as measured, includes that part."),
    h("p", {}, "The stated range contains what different ways of estimating give. Where something begins between two measured sizes, as when SQLite goes through its whole cache after pages have split, it contains both sides. ",
      "The table shows how far each measured point is missed if it is left out and estimated from the others, which are then further apart than in use. Floors store the same bytes in bare stable memory and do nothing else: they have no rank."),
    errors,
  );
}

const SIZES = [
  ["n", "rows per message"],
  ["rows", "rows in the table"],
  ["payload", "bytes per row"],
];

/**
 * The errors of estimates by configuration.
 * @param {import("../data.js").Report} report
 * @param {import("./points.js").Points} all
 * @param {string} place
 */
export function errorTable(report, all, place) {
  const rows = all.columns.map((column) => ({ heading: heading(report, column.key), errors: leaveOneOut(all, column, place) }));
  return table({
    caption: `Error of a measured point estimated from the others (${place}): worst / typical, and how many are within the stated range`,
    rows,
    columns: [
      { heading: "Engine", value: (row) => row.heading, cell: (row) => row.heading },
      ...SIZES.map(([axis, name]) => ({
        heading: `Over ${name}`,
        numeric: true,
        value: (row) => row.errors[axis].errors.at(-1) ?? NaN,
        cell: (row) => words(row.errors[axis]),
      })),
    ],
  });
}

function words({ errors, within }) {
  if (errors.length === 0) return "too few points";
  return `${percent(errors.at(-1))} / ${percent(errors[errors.length >> 1])}, ${whole(within)} of ${whole(errors.length)}`;
}
