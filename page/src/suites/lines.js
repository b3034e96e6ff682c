/** Line charts over a size that is part of the cases' names. */

import { lines } from "../charts/lines.js";
import { series } from "../charts/series.js";
import { narrowed } from "../command.js";
import { about, casesOf, configurationsOf, heading, inside, measured } from "../data.js";
import { choice, slug } from "../dom.js";
import { figure } from "../figure.js";
import { whole } from "../format.js";
import * as names from "../names.js";
import { ofLines } from "./describe.js";

const COSTS = {
  instructions: ["instructions", (of) => Number(measured(of).instructions)],
  charge: ["charge", (of) => Number(inside(of)?.charge ?? NaN)],
  cycles: ["cycles", (of) => Number(measured(of).detail?.cost.cycles ?? NaN)],
};

/** Readers of sections: panel and size of a case, the label of the axis, and the unit. */
const READERS = {
  "users/insert": { read: ({ name }) => pick(names.insert(name), (of) => [of.place, of.n]), x: "new rows per message", unit: "row", title: "Cost of a new row, by rows per message" },
  "users/transactions": { read: ({ name }) => pick(names.transaction(name), (of) => [of.messages, of.size]), x: "rows per transaction", unit: "row", title: "Cost of a new row, by rows per transaction" },
  "users/curve": { read: ({ name }) => pick(names.curve(name), (of) => [of.work, of.rows]), x: "rows in the table", unit: "row", title: "Cost of a row, by rows in the table" },
  "users/payload": { read: ({ name }) => pick(names.payload(name), (of) => [of.work, of.bytes]), x: "bytes per row", unit: "row", title: "Cost of a row, by its length" },
  "vfs/transactions": { read: ({ name }) => pick(names.sized(name), (of) => [`${of.work}, ${of.state}`, of.n]), x: "rows per transaction", unit: "row", title: "Cost of a row written, by rows per transaction" },
  "vfs/reads": { read: ({ name }) => pick(names.sized(name), (of) => [`${of.work}, ${of.state}`, of.n]), x: "rows per transaction", unit: "row", title: "Cost of a row read, by rows read together" },
};

function pick(found, of) {
  return found && of(found);
}

/** The data of a section's chart; `null` if its cases have no sizes. */
export function linesOf(report, section, cost = "instructions") {
  const reader = READERS[`${report.results.suite}/${section}`];
  if (!reader) return null;
  const cases = casesOf(report, section).filter(measured);
  const points = cases.flatMap((of) => {
    const found = reader.read(of);
    const value = COSTS[cost][1](of) / Math.max(1, Number(measured(of).operations));
    if (!found || !Number.isFinite(value)) return [];
    return [point(report, found, of.configuration, value, reader, cost)];
  });
  const ghosts = cost !== "instructions" ? [] : published(report, section).flatMap((of) => {
    const found = reader.read(of);
    const ours = points.some((own) => own.panel === found?.[0] && own.key === of.configuration);
    return found && ours ? [{ ...point(report, found, of.configuration, of.instructions / Math.max(1, of.operations), reader, "published instructions"), ghost: true }] : [];
  });
  if (new Set(points.map((of) => of.x)).size < 2) return null;
  return { reader, points: [...points, ...ghosts], series: series(report, configurationsOf(report, cases)) };
}

function point(report, [panel, x], key, y, reader, cost) {
  return { panel, x, key, y, title: `${heading(report, key)}, ${panel}, ${whole(x)} ${reader.x}: ${whole(y)} ${cost} per ${reader.unit}` };
}

/** Published figures for a section. */
export function published(report, section) {
  return (report.published?.figures ?? []).filter((of) => of.section === section);
}

/** The figure; `null` if there are fewer than two sizes. */
export function linesFigure(report, section, table) {
  if (!linesOf(report, section)) return null;
  let cost = "instructions";
  const known = Object.keys(COSTS).filter((key) => linesOf(report, section, key));
  const { reader } = linesOf(report, section);
  const made = figure({
    title: reader.title,
    file: `${report.results.suite}-${slug(section)}`.replace(/[^\w-]/g, ""),
    command: narrowed(report.results, section),
    table,
    controls: known.length > 1 ? [choice("Cost", known.map((value) => ({ value, text: COSTS[value][0] })), cost, (value) => { cost = value; made.redraw(); })] : [],
    draw: (context) => lines(context, { ...linesContent(report, section, cost, linesOf(report, section, cost)), single: true }),
  });
  return made;
}

/** The arguments of the chart. */
export function linesContent(report, section, cost, { reader, points, series }) {
  const cases = casesOf(report, section);
  const same = cases.every((of) => of.rows === cases[0].rows && of.payload === cases[0].payload);
  return {
    title: reader.title,
    subtitle: `${about(report, section)}${same ? `; ${whole(cases[0].rows)} rows of ${whole(cases[0].payload)} bytes before` : ""}`,
    description: ofLines(points, series, `${COSTS[cost][0]} per ${reader.unit} over ${reader.x}, both axes logarithmic`),
    x: `${reader.x} →`,
    y: `↑ ${COSTS[cost][0]} per ${reader.unit}`,
    points, series, ghosts: report.published?.source,
  };
}
