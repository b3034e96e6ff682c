/**
 * Costs of the same work, divided: a configuration's by that of a base (`ratios`), and that under new rules by that under
 * old ones (`changes`). For capacities, the numbers of operations are divided the other way round. More than 1 is worse.
 *
 * @typedef {{section: string, name: string, base: number, other: number, ratio: number}} RatioRow
 * @typedef {{section: string?, cases: number, geometric: number, arithmetic: number, least: number, most: number}} Mean
 * @typedef {{section: string, name: string, configuration: string, old: number, new: number, ratio: number}} Change
 */

import { inside, measured } from "./data.js";

/** The costs that can be compared. @type {Object<string, [string, (of: import("./data.js").Case) => number]>} */
export const COSTS = {
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
