/** Figures of single cases, chosen by the reader: parts of a charge, memory pages, SQL phases, single operations. */

import { ofSpread, ofStack, spread, stack } from "../charts/rows.js";
import { series } from "../charts/style.js";
import { heading, unique, inside, isFloor, measured, chargeParts, workParts } from "../data.js";
import { choice, h, slug } from "../dom.js";
import { figure } from "../figure.js";
import { whole } from "../format.js";
import { numeric, table, textual } from "../tables.js";

/**
 * @param {import("../data.js").Report} report
 * @param {{title: string, about: string, file: string, has: (of: import("../data.js").Case) => any,
 *   favourite: string[], columns: (report: import("../data.js").Report) => import("../tables.js").TableColumn[],
 *   draw: (context: import("../charts/frame.js").Context, cases: import("../data.js").Case[], label: string) => SVGElement,
 *   controls?: (update: () => void) => Node[]}} of `controls` are shown in addition to the choice of the case
 */
function ofCase(report, { title, about, file, has, favourite, draw, columns, controls }) {
  const cases = report.results.cases.filter(has);
  const names = unique(cases.map((of) => `${of.section}\n${of.name}`));
  if (!names.length) return null;
  let chosen = names.find((name) => favourite.includes(name)) ?? names[0];
  const own = () => cases.filter((of) => `${of.section}\n${of.name}` === chosen);
  const label = () => chosen.replace("\n", ": ");
  const figures = h("div");
  const fill = () => figures.replaceChildren(table({ caption: `${title}: ${label()}`, rows: own(), columns: columns(report) }));
  fill();
  const update = () => { fill(); made.redraw(); };
  const options = names.map((value) => ({ value, text: value.replace("\n", ": ") }));
  const made = figure({
    title, about, file: `${slug(report.results.suite)}-${file}`, command: report.results.command, table: figures,
    controls: [choice("Case", options, chosen, (value) => { chosen = value; update(); }), ...(controls?.(update) ?? [])],
    draw: (context) => draw(context, own(), label()),
  });
  return made;
}

/** Columns of a table: the engine, then numbers. */
function named(report, columns) {
  return [
    textual("Engine or mode", (of) => heading(report, of.configuration)),
    ...columns.map(([name, value]) => numeric(name, (of) => Number(value(of)), whole)),
  ];
}

/** The bars of a chart: floors only if there is nothing else. */
function barsOf(report, cases, parts) {
  const engines = cases.filter((of) => !isFloor(report, of.configuration));
  return (engines.length ? engines : cases).map((of) => ({ heading: heading(report, of.configuration), parts: parts(of) }));
}

const CHARGE_PARTS = ["the work", "around the work", "after the end"];
const PHASES = ["open", "prepare", "begin", "bind", "step", "copy", "commit", "rest"];

/** @param {import("../data.js").Report} report */
export function stackFigure(report) {
  const partsOf = (of) => {
    const work = Number(measured(of).instructions);
    const { instructions, charge } = inside(of);
    return [work, Math.max(0, instructions - work), Math.max(0, charge - instructions)];
  };
  return ofCase(report, {
    title: "Where the charge of a message goes",
    about: `The counter shows the work. Around it, the canister reads its argument and checks the rows. Charges that the counter does not show follow after the end. ${report.rules?.charge ?? ""} Floors are in the table.`,
    file: "charge",
    has: inside,
    favourite: ["insert\nmiddle 100", "transactions\ninsert 1 000, warm", "integer autocommit writes\nupdate_index"],
    columns: (of) => named(of, CHARGE_PARTS.map((part, at) => [part, (one) => partsOf(one)[at]]).concat([["charge", (one) => inside(one).charge]])),
    draw: (context, cases, label) => {
      const bars = barsOf(report, cases, partsOf);
      return stack(context, { title: `Where the charge goes: ${label}`, description: ofStack(bars, CHARGE_PARTS), x: "instructions →", parts: CHARGE_PARTS, bars });
    },
  });
}

/** @param {import("../data.js").Report} report */
export function phasesFigure(report) {
  const of = (one, phase) => measured(one).phases.find((cost) => cost.phase === phase)?.instructions ?? 0;
  return ofCase(report, {
    title: "Where the instructions of SQL go",
    about: "The same work, measured again in a fork, by phase: the connection is opened, statements are prepared, a transaction begins, parameters are bound, steps executed, values copied, and the transaction committed.",
    file: "phases",
    has: (one) => measured(one)?.phases,
    favourite: ["transactions\ninsert 1 000, warm"],
    columns: (own) => named(own, PHASES.map((phase) => [phase, (one) => of(one, phase)])),
    draw: (context, cases, label) => {
      const bars = cases.map((one) => ({ heading: heading(report, one.configuration), parts: PHASES.map((phase) => of(one, phase)) }));
      return stack(context, { title: `Where the instructions of SQL go: ${label}`, description: ofStack(bars, PHASES), x: "instructions →", parts: PHASES, bars });
    },
  });
}

/** @param {import("../data.js").Report} report */
export function spreadFigure(report) {
  const keys = ["min", "p50", "p90", "p99", "max"];
  return ofCase(report, {
    title: "What single operations cost",
    about: "From the cheapest to the most expensive operation of a case, without the beginning and the end of transactions.",
    file: "operations",
    has: (of) => measured(of)?.each,
    favourite: ["insert\nmiddle 1 000", "benchmarks\nfillrandom"],
    columns: (of) => named(of, [...keys.map((key) => [key, (one) => measured(one).each[key]]), ["operations that allocated storage", (one) => measured(one).each.allocating]]),
    draw: (context, cases, label) => {
      const looks = series(report, cases.map((of) => of.configuration));
      const rows = cases.map((of, at) => ({ heading: looks[at].heading, colour: looks[at].colour, ...measured(of).each }));
      return spread(context, { title: `What single operations cost: ${label}`, description: ofSpread(rows), x: "instructions of one operation →", rows });
    },
  });
}

const PAGE_PARTS = ["compute", "heap pages", "stable pages"];

/** The totals that can be divided, and their page counts. */
const BASES = {
  charge: ["whole charge", chargeParts, (of) => inside(of)?.pages],
  work: ["instructions of the work", workParts, (of) => measured(of)?.detail?.pages],
};
const TOUCHED = [
  ["heap pages touched", "heap"],
  ["heap pages written", "heap_written"],
  ["stable pages touched", "stable"],
  ["stable pages written", "stable_written"],
];

/** @param {import("../data.js").Report} report */
export function pagesFigure(report) {
  const { cases } = report.results;
  const bases = Object.keys(BASES).filter((basis) => cases.some(BASES[basis][1]));
  if (!bases.length) return null;
  let [basis] = bases;
  const partsOf = (of) => BASES[basis][1](of);
  const touched = (of) => BASES[basis][2](of)?.touched;
  const counted = cases.some((of) => bases.some((one) => BASES[one][2](of)?.touched));
  return ofCase(report, {
    title: "Compute and memory pages",
    about: `Compute is the charge without the cost of memory pages. ${report.rules?.charge ?? ""} Floors are in the table.`,
    file: "pages",
    has: (of) => bases.every((one) => BASES[one][1](of)),
    favourite: ["insert\nmiddle 100", "transactions\ninsert 1 000, warm"],
    columns: (of) => named(of, [
      ...PAGE_PARTS.map((part, at) => [part, (one) => partsOf(one)[at]]),
      ["total", (one) => partsOf(one).reduce((sum, part) => sum + part, 0)],
      ...(counted ? TOUCHED.map(([name, key]) => [name, (one) => touched(one)?.[key] ?? NaN]) : []),
    ]),
    controls: (update) =>
      bases.length > 1 ? [choice("Of the", bases.map((value) => ({ value, text: BASES[value][0] })), basis, (value) => { basis = value; update(); })] : [],
    draw: (context, own, label) => {
      const bars = barsOf(report, own, partsOf);
      return stack(context, { title: `Compute and memory pages: ${label}`, subtitle: BASES[basis][0], description: ofStack(bars, PAGE_PARTS), x: "instructions →", parts: PAGE_PARTS, bars });
    },
  });
}
