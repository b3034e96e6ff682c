/**
 * Two configurations, case by case: the other's instructions divided by the base's. For capacities, the
 * base's number of operations divided by the other's. More than 1 is worse.
 *
 * @typedef {{section: string, name: string, base: number, other: number, ratio: number}} RatioRow
 * @typedef {{section: string?, cases: number, geometric: number, arithmetic: number, least: number, most: number}} Mean
 */

import { measured } from "../data.js";

/** @param {import("../data.js").Report} report @param {string} base @param {string} other @returns {RatioRow[]} */
export function ratios(report, base, other) {
  const key = (of) => `${of.section}\n${of.name}`;
  const theirs = new Map(report.results.cases.filter((of) => of.column === other).map((of) => [key(of), of]));
  return report.results.cases
    .filter((of) => of.column === base)
    .flatMap((of) => {
      const [one, two] = [measured(of), measured(theirs.get(key(of)))];
      if (!one || !two) return [];
      if (one.capacity && two.capacity) {
        const [fits, others] = [Number(one.capacity.fits), Number(two.capacity.fits)];
        return [{ section: of.section, name: of.name, base: fits, other: others, ratio: fits / others }];
      }
      const [first, second] = [Number(one.instructions), Number(two.instructions)];
      // A ratio of different amounts of work would be meaningless.
      if (Number(one.operations) !== Number(two.operations)) return [];
      return [{ section: of.section, name: of.name, base: first, other: second, ratio: second / first }];
    })
    .filter((row) => Number.isFinite(row.ratio) && row.ratio > 0);
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
