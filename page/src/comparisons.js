/**
 * Comparisons: what new rules changed, and one configuration against another.
 *
 * Costs of the same work, divided: a configuration's by that of a base (`ratios`), and that under new rules by that under
 * old ones (`changes`). For capacities, the numbers of operations are divided the other way round. More than 1 is worse.
 *
 * @typedef {{section: string, name: string, base: number, other: number, ratio: number}} RatioRow
 * @typedef {{section: string?, cases: number, geometric: number, arithmetic: number, least: number, most: number}} Mean
 * @typedef {{section: string, name: string, configuration: string, old: number, new: number, ratio: number}} Change
 */

import { figure, series } from "./chart-parts.js";
import { dots, ofDots } from "./charts.js";
import { copyable } from "./command.js";
import { about, configurationsOf, heading, inside, isFloor, measured, rulesOf, unique } from "./data.js";
import { choice, fold, h, slug } from "./dom.js";
import { times, whole } from "./format.js";
import { numeric, table, textual } from "./tables.js";

/** The section on changes from one rule set to another: one row per case, one dot per engine. @param {import("./data.js").Pair[]} pairs @returns {HTMLElement?} */
export function changesSection(pairs) {
  const known = pairs.filter((pair) => costsOf(pair).length);
  if (!known.length) return null;
  const place = h("div");
  const show = (pair) => place.replaceChildren(...ofPair(pair));
  show(known[0]);
  return h(
    "section",
    { id: "changes", "aria-labelledby": "changes-title" },
    h("h2", { id: "changes-title" }, "What the new rules changed"),
    known.length > 1 && choice("Suite", known.map(({ suite }, at) => ({ value: String(at), text: suite })), "0", (value) => show(known[Number(value)])),
    place,
  );
}

/** Costs that both reports contain for some case. */
function costsOf(pair) {
  return Object.keys(COSTS).filter((cost) => changes(pair, cost).length);
}

function ofPair(pair) {
  const costs = costsOf(pair);
  const asked = { cost: costs[0], section: changes(pair, costs[0])[0].section };
  const from = rulesOf(pair.old);
  const to = rulesOf(pair.new);
  const rows = () => changes(pair, asked.cost).filter((row) => row.section === asked.section);
  const sections = () => unique(changes(pair, asked.cost).map((row) => row.section));
  const label = (section) => about(pair.new, section);
  const ratios = h("div");
  const change = () => {
    if (!sections().includes(asked.section)) [asked.section] = sections();
    ratios.replaceChildren(ratioTable(pair, rows(), `${from} → ${to}, ${COSTS[asked.cost][0]}: ${label(asked.section)}`));
    made.redraw();
  };
  const made = figure({
    title: `${from} → ${to}, case by case`,
    about: `The cost under the rules ${to}, divided by the cost under ${from}: a mark to the right of 1 means more expensive now. Only cases with the same sizes in both files are shown.`,
    level: 3,
    file: `${slug(pair.suite)}-rules`,
    command: `stablebench compare ${pair.old.file} ${pair.new.file}`,
    table: ratios,
    controls: [
      choice("Section", sections().map((value) => ({ value, text: label(value) })), asked.section, (value) => { asked.section = value; change(); }),
      costs.length > 1 && choice("Cost", costs.map((value) => ({ value, text: COSTS[value][0] })), asked.cost, (value) => { asked.cost = value; change(); }),
    ].filter(Boolean),
    draw: (context) => {
      const own = rows();
      const looks = series(pair.new, configurationsOf(pair.new, own));
      const points = own.map((row) => ({
        row: row.name, key: row.configuration, x: row.ratio,
        title: `${row.name}, ${heading(pair.new, row.configuration)}: ${whole(row.old)} → ${whole(row.new)}, ${times(row.ratio)}`,
      }));
      return dots(context, {
        title: `${from} → ${to}: ${label(asked.section)}`,
        description: ofDots(points, looks, `${COSTS[asked.cost][0]} under ${to} / under ${from}, logarithmic`, times),
        x: `${COSTS[asked.cost][0]}, ${to} / ${from} →`,
        base: 1, series: looks, dots: points,
      });
    },
  });
  change();
  return [made.element];
}

function ratioTable(pair, rows, caption) {
  const keys = configurationsOf(pair.new, rows);
  const found = new Map(rows.map((row) => [`${row.name}\n${row.configuration}`, row]));
  const ratio = (name, key) => found.get(`${name}\n${key}`)?.ratio ?? NaN;
  return table({
    caption,
    rows: unique(rows.map((row) => row.name)),
    columns: [
      textual("Case", (name) => name),
      ...keys.map((key) => ({ ...numeric(heading(pair.new, key), (name) => ratio(name, key), times), floor: isFloor(pair.new, key) })),
    ],
  });
}

/** The section that compares two configurations of a file: by section, then case by case. @param {import("./data.js").Report[]} reports @returns {HTMLElement?} */
export function multipliers(reports) {
  const comparable = reports.filter((report) => configurations(report).length > 1);
  if (!comparable.length) return null;
  const place = h("div", { class: "pair" });
  const show = (report) => place.replaceChildren(pair(report));
  show(comparable[0]);
  return h(
    "section",
    { id: "multipliers", "aria-labelledby": "multipliers-title" },
    h("h2", { id: "multipliers-title" }, "One against the other"),
    h("p", { class: "about" }, "The other's instructions divided by the base's: more than 1 is worse. For the number of operations that fit into a message, base / other."),
    comparable.length > 1 && choice("From", comparable.map((report, at) => ({ value: String(at), text: report.topic })), "0", (value) => show(comparable[Number(value)])),
    place,
  );
}

function configurations(report) {
  return configurationsOf(report, report.results.cases.filter(measured));
}

function pair(report) {
  const keys = configurations(report);
  const chosen = { base: keys[0], other: keys[1] };
  const place = h("div", { "aria-live": "off" });
  const options = keys.map((value) => ({ value, text: heading(report, value) }));
  const show = () => place.replaceChildren(...comparison(report, chosen));
  const select = (label, name) => choice(label, options, chosen[name], (value) => { chosen[name] = value; show(); });
  show();
  return h("div", {}, h("div", { class: "controls" }, select("Other", "other"), select("Base", "base")), place);
}

function comparison(report, { base, other }) {
  const rows = ratios(report, base, other);
  const title = `${heading(report, other)} / ${heading(report, base)}`;
  if (!rows.length) return [h("p", { class: "about" }, `${title}: no case was measured with both.`)];
  const section = (row) => (row.section === null ? "All" : about(report, row.section));
  const command = `stablebench compare ${report.file} --configurations ${base} ${other}`;
  const all = means(rows);
  return [
    h("p", { class: "answer" }, h("strong", {}, times(all[all.length - 1].geometric)), ` is the geometric mean of ${whole(rows.length)} cases: ${title}.`),
    fold("By section", table({
      caption: `${title}, by section`,
      rows: all,
      columns: [
        textual("Section", section),
        numeric("Cases", (row) => row.cases, whole),
        numeric("Geometric mean", (row) => row.geometric, times),
        numeric("Arithmetic mean", (row) => row.arithmetic, times),
        numeric("Least", (row) => row.least, times),
        numeric("Most", (row) => row.most, times),
      ],
    })),
    h(
      "details",
      {},
      h("summary", {}, `Case by case (${rows.length})`),
      table({
        caption: `${title}, case by case`,
        rows,
        columns: [
          textual("Case", (row) => row.name),
          textual("Section", (row) => row.section),
          numeric(heading(report, base), (row) => row.base, whole),
          numeric(heading(report, other), (row) => row.other, whole),
          numeric("Ratio", (row) => row.ratio, times),
        ],
      }),
    ),
    copyable(command, title),
  ];
}

/** The costs that can be compared. @type {Object<string, [string, (of: import("./data.js").Case) => number]>} */
const COSTS = {
  charge: ["whole charge", (of) => Number(inside(of)?.charge ?? NaN)],
  instructions: ["instructions of the work", (of) => Number(measured(of).instructions)],
};

/** Two configurations of a file, case by case. @param {import("./data.js").Report} report @param {string} base @param {string} other @returns {RatioRow[]} */
export function ratios(report, base, other) {
  const key = (of) => `${of.section}\n${of.name}`;
  const theirs = new Map(report.results.cases.filter((of) => of.configuration === other).map((of) => [key(of), of]));
  return report.results.cases
    .filter((of) => of.configuration === base)
    .flatMap((of) => divided(of, theirs.get(key(of)), "instructions").map((found) => ({ section: of.section, name: of.name, ...found })));
}

/**
 * The cases of a suite under two rule sets.
 * @param {import("./data.js").Pair} pair
 * @param {string} cost a key of COSTS
 * @returns {Change[]} for cases that both reports measured with the same sizes
 */
export function changes(pair, cost) {
  const key = ({ section, name, configuration, rows, payload, state }) => JSON.stringify([section, name, configuration, rows, payload, state]);
  const later = new Map(pair.new.results.cases.map((of) => [key(of), of]));
  return pair.old.results.cases.flatMap((before) => {
    const { section, name, configuration } = before;
    return divided(before, later.get(key(before)), cost).map(({ base, other, ratio }) => ({ section, name, configuration, old: base, new: other, ratio }));
  });
}

/** The ratio of two cases, if there is one. */
function divided(before, after, cost) {
  const [one, two] = [measured(before), measured(after)];
  if (!one || !two) return [];
  const found = (base, other, ratio) => (Number.isFinite(ratio) && ratio > 0 ? [{ base, other, ratio }] : []);
  if (one.capacity && two.capacity) {
    const [fits, others] = [Number(one.capacity.fits), Number(two.capacity.fits)];
    return found(fits, others, fits / others);
  }
  // A ratio of different amounts of work would be meaningless.
  if (Number(one.operations) !== Number(two.operations)) return [];
  const [base, other] = [before, after].map(COSTS[cost][1]);
  return found(base, other, other / base);
}

/** The means of each section, then of all cases. @param {RatioRow[]} rows @returns {Mean[]} */
export function means(rows) {
  const sections = new Map();
  for (const row of rows) sections.set(row.section, [...(sections.get(row.section) ?? []), row.ratio]);
  const each = [...sections].map(([section, of]) => mean(section, of));
  return each.length > 1 ? [...each, mean(null, rows.map((row) => row.ratio))] : each;
}

function mean(section, of) {
  return {
    section,
    cases: of.length,
    geometric: Math.exp(of.reduce((sum, ratio) => sum + Math.log(ratio), 0) / of.length),
    arithmetic: of.reduce((sum, ratio) => sum + ratio, 0) / of.length,
    least: Math.min(...of),
    most: Math.max(...of),
  };
}
