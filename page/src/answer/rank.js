/**
 * The cost of every configuration at the requested sizes, the cheapest first, floors after the engines.
 *
 * @typedef {{key: string, heading: string, floor: boolean, estimate: import("./estimate.js").Estimate,
 *   instructions: number, charge: number, cycles: number, usd: number, fits: boolean, rank: number?}} Ranked
 */

import { heading, isFloor } from "../data.js";
import { estimate } from "./estimate.js";

/**
 * @param {import("../data.js").Report} report
 * @param {import("./points.js").Points} all
 * @param {import("./controls.js").Asked} asked
 * @param {number} chargedNodes the subnet size for which the results contain cycles
 * @returns {{rows: Ranked[], by: "cycles"|"instructions"}}
 */
export function ranked(report, all, asked, chargedNodes) {
  const rows = all.columns.map((column) => {
    const found = estimate(all, column, asked);
    const cost = found.cost ?? {};
    const paid = (asked.by === "message" ? cost.message : cost) ?? {};
    const cycles = number(paid.cycles) * (asked.nodes / chargedNodes);
    return {
      key: column.key,
      heading: heading(report, column.key),
      floor: isFloor(report, column.key),
      estimate: found,
      instructions: number(cost.instructions),
      charge: number(paid.charge),
      cycles: Math.floor(cycles),
      usd: (cycles / 1e12) * asked.usd,
      fits: fits(all, found.cost),
      rank: null,
    };
  });
  // Rank by instructions if some have no cycles.
  const known = rows.filter((row) => row.estimate.cost);
  const by = asked.by !== "instructions" && known.every((row) => Number.isFinite(row.cycles)) ? "cycles" : "instructions";
  const order = (row) => (row.estimate.cost ? Number(!row.fits) + 2 * Number(row.floor) : 4);
  rows.sort((one, other) => order(one) - order(other) || one[by] - other[by] || 0);
  let rank = 0;
  for (const row of rows) {
    if (row.estimate.cost && !row.floor && row.fits) row.rank = rank += 1;
  }
  return { rows, by };
}

/** Returns `true` if the cost fits into one message. @param {import("./points.js").Points} all @param {import("./estimate.js").Estimate["cost"]} cost */
export function fits(all, cost) {
  return !(all.limit && Math.max(number(cost?.message.charge) || 0, number(cost?.instructions) || 0) > all.limit);
}

function number(value) {
  return value === null || value === undefined ? NaN : Number(value);
}
