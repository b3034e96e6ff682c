/**
 * The same case under two rule sets: the new cost / the old cost. Where a case says how many
 * operations fit into a message, it is old / new of those. More than 1 is worse.
 *
 * @typedef {{section: string, name: string, column: string, old: number, new: number, ratio: number}} Change
 */

import { inside, measured } from "../data.js";

/** What is compared. @type {Object<string, [string, (of: import("../data.js").Case) => number]>} */
export const COSTS = {
  charge: ["whole charge", (of) => Number(inside(of)?.charge ?? NaN)],
  instructions: ["instructions of the work", (of) => Number(measured(of).instructions)],
};

/**
 * @param {import("../rules.js").Pair} pair
 * @param {string} cost a key of COSTS
 * @returns {Change[]} of cases that both measured with the same sizes
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
