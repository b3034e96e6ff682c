/**
 * The bill of every engine, the cheapest first, floors after the engines.
 *
 * @typedef {{perDay: number, n: number, payload: number, rows: number, place: string,
 *   gib: number?, nodes: number, usd: number, by: "work"|"message"}} Asked
 *   `gib` is the storage of all engines, or null where measured stores tell it
 * @typedef {{key: string, heading: string, floor: boolean, estimate: import("../answer/estimate.js").Estimate,
 *   memory: ReturnType<typeof memory>, gib: number, instructions: number, clamped: number?,
 *   month: import("./month.js").Month?, usd: number, rank: number?}} Billed
 */

import { estimate } from "../answer/estimate.js";
import { fits } from "../answer/rank.js";
import { heading, isFloor } from "../data.js";
import { memory } from "./memory.js";
import { month } from "./month.js";

/**
 * @param {import("../data.js").Report} report
 * @param {import("../answer/points.js").Points} all
 * @param {Asked} asked
 * @param {{rows: [number, number]}} ranges of measured sizes
 * @param {number} chargedNodes nodes that the prices are for
 * @returns {Billed[]}
 */
export function billed(report, all, asked, ranges, chargedNodes) {
  const { fees } = report.rules;
  const within = Math.min(Math.max(asked.rows, ranges.rows[0]), ranges.rows[1]);
  const rows = all.columns.map((column) => {
    const found = estimate(all, column, { ...asked, rows: within });
    const told = memory(report, column.key, asked);
    const gib = asked.gib ?? told?.gib ?? NaN;
    const instructions = charged(found.cost, asked.by);
    const use = { perDay: asked.perDay, instructions, bytes: asked.n * asked.payload + envelope(found.cost, fees), gib };
    const bill = Number.isFinite(instructions) && fits(all, found.cost) ? month(fees, use, asked.nodes / chargedNodes) : null;
    const usd = bill ? (bill.total / 1e12) * asked.usd : NaN;
    return {
      key: column.key, heading: heading(report, column.key), floor: isFloor(report, column.key), estimate: found,
      fits: fits(all, found.cost), memory: asked.gib === null ? told : null, gib, instructions,
      clamped: within === asked.rows ? null : within, month: bill, usd, rank: null,
    };
  });
  const order = (row) => (Number.isFinite(row.usd) ? Number(row.floor) : 2);
  rows.sort((one, other) => order(one) - order(other) || one.usd - other.usd || 0);
  rows.filter((row) => order(row) === 0).forEach((row, at) => { row.rank = at + 1; });
  return rows;
}

/** Instructions that are paid for; those of the work where the replica tells no charge. */
function charged(cost, by) {
  if (!cost) return NaN;
  const charge = by === "message" ? cost.message.charge : cost.charge;
  return charge ?? cost.instructions;
}

/** Bytes of a message besides its rows: measured messages say how many rows to make, and hold none. */
export function envelope(cost, fees) {
  if (!cost || cost.charge === null || cost.cycles === null) return 0;
  const bytes = (cost.cycles - cost.charge * fees.instruction - fees.execution - fees.ingress) / fees.ingress_byte;
  return Math.max(0, Math.round(bytes));
}
