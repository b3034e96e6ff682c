/** The section on changes from one rule set to another: one row per case, one dot per engine. */
/**
 * The same case under two rule sets: the new cost divided by the old. For capacities, the old number of
 * operations divided by the new. More than 1 is worse.
 *
 * @typedef {{section: string, name: string, column: string, old: number, new: number, ratio: number}} Change
 */

import { dots } from "./charts/dots.js";
import { series } from "./charts/series.js";
import { about, columnsOf, heading, isFloor, unique, inside, measured } from "./data.js";
import { choice, h, slug } from "./dom.js";
import { figure } from "./figure.js";
import { times, whole } from "./format.js";
import { nameOf } from "./rules.js";
import { ofDots } from "./suites/describe.js";
import { table } from "./tables/table.js";

/** @param {import("./rules.js").Pair[]} pairs @returns {HTMLElement?} */
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
  const from = nameOf(pair.old);
  const to = nameOf(pair.new);
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
      const looks = series(pair.new, columnsOf(pair.new, own));
      const points = own.map((row) => ({
        row: row.name, key: row.column, x: row.ratio,
        title: `${row.name}, ${heading(pair.new, row.column)}: ${whole(row.old)} → ${whole(row.new)}, ${times(row.ratio)}`,
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
  const keys = columnsOf(pair.new, rows);
  const found = new Map(rows.map((row) => [`${row.name}\n${row.column}`, row]));
  const ratio = (name, key) => found.get(`${name}\n${key}`)?.ratio ?? NaN;
  return table({
    caption,
    rows: unique(rows.map((row) => row.name)),
    columns: [
      { heading: "Case", value: (name) => name, cell: (name) => name },
      ...keys.map((key) => ({
        heading: heading(pair.new, key), floor: isFloor(pair.new, key), numeric: true,
        value: (name) => ratio(name, key), cell: (name) => times(ratio(name, key)),
      })),
    ],
  });
}

/** The costs that can be compared. @type {Object<string, [string, (of: import("./data.js").Case) => number]>} */
export const COSTS = {
  charge: ["whole charge", (of) => Number(inside(of)?.charge ?? NaN)],
  instructions: ["instructions of the work", (of) => Number(measured(of).instructions)],
};

/**
 * @param {import("./rules.js").Pair} pair
 * @param {string} cost a key of COSTS
 * @returns {Change[]} for cases that both reports measured with the same sizes
 */
export function changes(pair, cost) {
  const key = ({ section, name, column, rows, payload, state }) => JSON.stringify([section, name, column, rows, payload, state]);
  const later = new Map(pair.new.results.cases.map((of) => [key(of), of]));
  return pair.old.results.cases
    .flatMap((before) => {
      const after = later.get(key(before));
      const [one, two] = [measured(before), measured(after)];
      if (!one || !two) return [];
      const { section, name, column } = before;
      if (one.capacity && two.capacity) {
        const [fitted, fits] = [Number(one.capacity.fits), Number(two.capacity.fits)];
        return [{ section, name, column, old: fitted, new: fits, ratio: fitted / fits }];
      }
      if (Number(one.operations) !== Number(two.operations)) return [];
      const [old, now] = [before, after].map(COSTS[cost][1]);
      return [{ section, name, column, old, new: now, ratio: now / old }];
    })
    .filter((row) => Number.isFinite(row.ratio) && row.ratio > 0);
}
