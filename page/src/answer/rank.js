/**
 * The cost of every configuration at the requested sizes, the cheapest first, floors after the engines.
 *
 * @typedef {{key: string, heading: string, floor: boolean, insteadOf: string?, estimate: import("./estimate.js").Estimate,
 *   instructions: number, charge: number, cycles: number, usd: number, fits: boolean, rank: number?}} Ranked
 */

import { heading, insteadOf, isFloor, unique } from "../data.js";
import { estimate } from "./estimate.js";

/**
 * @param {import("../data.js").Report} report
 * @param {{columns: Array<{key: string}>, limit: number?}} all
 * @param {import("../asked.js").Asked} asked
 * @param {number} chargedNodes the subnet size for which the results contain cycles
 * @param {(column: any, asked: any) => import("./estimate.js").Estimate} [cost] of one column; of new rows if missing
 * @returns {{rows: Ranked[], by: "cycles"|"instructions"}}
 */
export function ranked(report, all, asked, chargedNodes, cost = (column) => estimate(all, column, asked)) {
  const rows = all.columns.map((column) => {
    const found = cost(column, asked);
    const costs = found.cost ?? {};
    const paid = (asked.by === "message" ? costs.message : costs) ?? {};
    const cycles = number(paid.cycles) * (asked.nodes / chargedNodes);
    return {
      key: column.key,
      heading: heading(report, column.key),
      floor: isFloor(report, column.key),
      insteadOf: insteadOf(report, column.key),
      estimate: found,
      instructions: number(costs.instructions),
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

/**
 * The rows that the answer names beside the cheapest: the next one, and the most expensive. Where a library is
 * ranked as its users should set it and as it is shipped, both are named instead of the most expensive.
 * @param {Ranked[]} rows as ranked
 * @returns {Array<{row: Ranked, name: string}>}
 */
export function compared(rows) {
  const all = rows.filter((row) => row.rank !== null);
  const advised = all.find((row) => all.some((other) => other.key === row.insteadOf));
  const shipped = advised && all.find((row) => row.key === advised.insteadOf);
  const others = advised ? [all[1], advised, shipped] : [all[1], all.at(-1)];
  return unique(others)
    .filter((row) => row && row.rank > 1)
    .map((row) => ({ row, name: row === shipped ? `${row.heading}, as it is shipped,` : row.heading }));
}

/** Returns `true` if the cost fits into one message. @param {{limit: number?}} all @param {import("./estimate.js").Estimate["cost"]} cost */
export function fits(all, cost) {
  return !(all.limit && Math.max(number(cost?.message.charge) || 0, number(cost?.instructions) || 0) > all.limit);
}

function number(value) {
  return value === null || value === undefined ? NaN : Number(value);
}
