/**
 * The chart of a section: lines over a size that is part of the cases' names, or else dots, or the heat map of settings;
 * and that of ratios, one row per section.
 */

import { lines, ofLines } from "../charts/lines.js";
import { dots, heatMap, ofDots, ofHeat } from "../charts/rows.js";
import { series } from "../charts/style.js";
import { narrowed } from "../command.js";
import { about, casesOf, configurationsOf, eachOperation, heading, inside, measured, missing, unique } from "../data.js";
import { choice, slug } from "../dom.js";
import { figure } from "../figure.js";
import { times, whole } from "../format.js";
import * as names from "../names.js";
import { means, ratios } from "../ratios.js";

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
/** Sections with more cases than this are shown by kind. */
const MANY = 26;
/** Default configurations of the libraries. */
const DEFAULTS = [
  ["sqlite-vfs", /^sqlite-vfs(?:$|[,/])/],
  ["sqlite/persist", /^sqlite\//],
];

/** The chart of a section; `null` if nothing could be measured. @param {import("../data.js").Report} report @param {string} section @param {Node?} table */
export function sectionFigure(report, section, table) {
  if (section === "settings" && report.results.suite === "users") return settingsFigure(report, section, table);
  return linesFigure(report, section, table) ?? dotsFigure(report, section, table);
}

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
function published(report, section) {
  return (report.published?.figures ?? []).filter((of) => of.section === section);
}

/** The figure; `null` if there are fewer than two sizes. */
function linesFigure(report, section, table) {
  const found = linesOf(report, section);
  if (!found) return null;
  const { reader } = found;
  let cost = "instructions";
  const known = Object.keys(COSTS).filter((key) => linesOf(report, section, key));
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

function dotsOf(report, section, kind) {
  const cases = casesOf(report, section).filter((of) => measured(of) && (!kind || kindOf(of.name) === kind));
  const capacity = cases.some((of) => measured(of).capacity);
  const value = capacity ? (of) => Number(measured(of).operations) : eachOperation;
  const unit = capacity ? "operations in one message" : "instructions per operation";
  const points = cases.map((of) => ({
    row: kind ? of.name.slice(0, -kind.length - 2) : of.name, key: of.configuration, x: value(of), title: `${of.name}, ${heading(report, of.configuration)}: ${whole(value(of))} ${unit}`,
  }));
  const ghosts = published(report, section).map((of) => {
    const x = of.instructions / Math.max(1, of.operations);
    return { row: of.name, key: of.configuration, x, ghost: true, title: `${of.name}, ${heading(report, of.configuration)}, published: ${whole(x)} ${unit}` };
  });
  const here = new Set(points.map((of) => of.row));
  return { unit, dots: [...points, ...ghosts.filter((of) => here.has(of.row))], series: series(report, configurationsOf(report, cases)) };
}

/** The last part of a name, for example warm or cold. */
function kindOf(name) {
  const at = name.lastIndexOf(", ");
  return at < 0 ? "" : name.slice(at + 2);
}

/** One row per case, one dot per configuration. @param {import("../data.js").Report} report @param {string} section @param {Node?} table */
function dotsFigure(report, section, table) {
  const names = new Set(casesOf(report, section).filter(measured).map((of) => of.name));
  if (!names.size) return null;
  const kinds = [...new Set([...names].map(kindOf))];
  let kind = names.size > MANY && kinds.length > 1 ? kinds[0] : null;
  const title = about(report, section);
  const made = figure({
    title: "Case by case",
    file: `${slug(report.results.suite)}-${slug(section)}-cases`,
    command: narrowed(report.results, section),
    table,
    controls: kind === null ? [] : [choice("Cases", kinds.map((value) => ({ value, text: value || "others" })), kind, (value) => { kind = value; made.redraw(); })],
    draw: (context) => {
      const found = dotsOf(report, section, kind);
      return dots(context, {
        title: `${title}${kind ? `: ${kind}` : ""}`,
        description: ofDots(found.dots, found.series, `${found.unit}, logarithmic`),
        x: `${found.unit} →`, ghosts: report.published?.source, ...found,
      });
    },
  });
  return made;
}

/**
 * Ratios of one or more configurations to a base, one row per section.
 * @param {import("../data.js").Report} report
 * @param {string} base
 * @param {string[]} others
 * @param {{title: string, table?: Node?, file: string, level?: number}} of
 */
export function ratiosFigure(report, base, others, of) {
  const all = others.flatMap((other) => ratios(report, base, other).map((row) => ({ ...row, other })));
  if (!all.length) return null;
  const suiteRatios = report.published?.ratios ?? [];
  const rowOf = (section) => about(report, section);
  const points = all.map((row) => ({
    row: rowOf(row.section), key: row.other, x: row.ratio,
    title: `${row.name}, ${heading(report, row.other)} against ${heading(report, base)}: ${times(row.ratio)}`,
  }));
  const here = new Set(points.map((point) => point.row));
  const ghosts = suiteRatios
    .map((ratio) => ({ row: rowOf(ratio.section), key: "\0published", x: ratio.ratio, ghost: true, title: `published average, ${ratio.of}: ${times(ratio.ratio)}` }))
    .filter((ghost) => here.has(ghost.row));
  const averages = others.flatMap((other) =>
    means(all.filter((row) => row.other === other)).filter((mean) => mean.section !== null).map((mean) => ({
      row: rowOf(mean.section), key: other, x: mean.geometric, title: `geometric mean, ${heading(report, other)}: ${times(mean.geometric)}`,
    })),
  );
  const looks = [...series(report, others), { key: "\0published", heading: "published", colour: "ghost", symbol: "circle", dash: null, width: 1 }];
  return figure({
    ...of,
    command: report.results.command,
    draw: (context) =>
      dots(context, {
        title: of.title,
        description: ofDots(averages, looks, `Ratios to ${heading(report, base)}, logarithmic; geometric means`),
        x: "instructions / instructions of the base →",
        base: 1, series: looks, dots: [...points, ...ghosts], means: averages,
        ghosts: ghosts.length ? `average, ${suiteRatios[0].of}; ${report.published.source}` : undefined,
      }),
  });
}

/** The settings of the suite users, each compared with its library's default. @param {import("../data.js").Report} report @param {string} section @param {Node?} table */
function settingsFigure(report, section, table) {
  const cases = casesOf(report, section);
  const names = unique(cases.map((of) => of.name));
  const found = new Map(cases.map((of) => [`${of.name}\n${of.configuration}`, of]));
  const at = (name, key) => found.get(`${name}\n${key}`);
  const keys = configurationsOf(report, cases);
  const shown = keys.filter((key) => names.some((name) => measured(at(name, key))));
  const left = keys.length - shown.length;
  const groups = DEFAULTS.map(([base, pattern]) => ({ base, keys: shown.filter((key) => pattern.test(key)) }));
  const cells = groups.reverse().flatMap(({ base, keys: own }) =>
    own.flatMap((key) =>
      names.map((name) => {
        const ratio = eachOperation(at(name, key)) / eachOperation(at(name, base));
        const row = key === base ? `${heading(report, key)} (default)` : heading(report, key);
        const mark = missing(at(name, key))?.mark;
        return { row, column: name.replace(/, warm$/, ""), ratio, mark, title: `${row}, ${name}: ${mark ?? times(ratio)}` };
      }),
    ),
  );
  if (!cells.some((cell) => Number.isFinite(cell.ratio))) return null;
  return figure({
    title: "Settings against the default",
    about: `Instructions per operation, compared with the same work under the library's own settings. Blue is cheaper, orange more expensive.${left ? ` ${left} settings that the library does not accept are in the table, with the reason.` : ""}`,
    file: "users-settings",
    command: narrowed(report.results, section),
    table,
    draw: (context) => heatMap(context, { title: "Settings against the default", description: ofHeat(cells), cells }),
  });
}
