/**
 * The cost of the reader's question with every configuration, the cheapest first, floors after the engines: of one message
 * (`ranked`), and of a canister in a month of 30 days (`billed`), in cycles:
 *
 *     instructions   messages × instructions × price of an instruction
 *     messages       messages × (execution + ingress + bytes × price of an ingress byte)
 *     storage        GiB × seconds × price of a GiB-second
 *     base           seconds × base fee of a canister
 *
 * each × nodes / 13. `docs/report.md` lists the prices and their source.
 *
 * @typedef {import("../question.js").Asked} Asked
 * @typedef {import("./inserts.js").Estimate} Estimate
 * @typedef {{key: string, heading: string, floor: boolean, insteadOf: string?, estimate: Estimate,
 *   instructions: number, charge: number, cycles: number, usd: number, fits: boolean, rank: number?}} Ranked
 * @typedef {{execution: number, ingress: number, ingress_byte: number, instruction: number,
 *   storage_gib_second: number, canister_second: number}} Fees cycles on a subnet of 13 nodes
 * @typedef {{perDay: number, instructions: number, bytes: number, gib: number}} Use
 *   instructions and bytes are those of one message
 * @typedef {{instructions: number, messages: number, storage: number, base: number, total: number}} Month
 * @typedef {{key: string, heading: string, floor: boolean, estimate: Estimate, fits: boolean,
 *   memory: ReturnType<typeof memory>, gib: number, instructions: number, clamped: number?,
 *   month: Month?, usd: number, rank: number?}} Billed
 */

import { heading, insteadOf, isFloor, unique } from "../data.js";
import { estimate } from "./inserts.js";

export const DAYS = 30;
const SECONDS = DAYS * 24 * 60 * 60;
const WASM_PAGE = 65_536;
const GIB = 2 ** 30;

/**
 * @param {import("../data.js").Report} report
 * @param {{columns: Array<{key: string}>, limit: number?}} all
 * @param {Asked} asked
 * @param {number} chargedNodes the subnet size for which the results contain cycles
 * @param {(column: any, asked: any) => Estimate} [cost] of one column; of new rows if missing
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

/** Returns `true` if the cost fits into one message. @param {{limit: number?}} all @param {Estimate["cost"]} cost */
function fits(all, cost) {
  return !(all.limit && Math.max(number(cost?.message.charge) || 0, number(cost?.instructions) || 0) > all.limit);
}

function number(value) {
  return value === null || value === undefined ? NaN : Number(value);
}

/** @param {Fees} fees @param {Use} use @param {number} share nodes of the subnet / nodes of the prices @returns {Month} */
export function month(fees, use, share) {
  const messages = use.perDay * DAYS;
  const instructions = share * messages * use.instructions * fees.instruction;
  const taken = share * messages * (fees.execution + fees.ingress + use.bytes * fees.ingress_byte);
  const storage = share * use.gib * SECONDS * fees.storage_gib_second;
  const base = share * SECONDS * fees.canister_second;
  return { instructions, messages: taken, storage, base, total: instructions + taken + storage + base };
}

/**
 * The memory of a canister with a given number of rows: heap and stable memory of the measured fixture with the
 * nearest row length and then the nearest number of rows, in proportion to rows × bytes.
 * @param {import("../data.js").Report} report
 * @param {string} configuration
 * @param {{rows: number, payload: number}} at
 * @returns {{gib: number, rows: number, payload: number, exact: boolean}?} `rows` and `payload`
 *   are those of the measured fixture; `null` if no fixture of the configuration was measured
 */
export function memory(report, configuration, at) {
  const fixtures = report.results.fixtures.filter((of) => of.configuration === configuration && of.outcome.measured && of.rows * of.payload > 0);
  if (!fixtures.length) return null;
  const apart = (one, other) => Math.abs(Math.log(one / other));
  const [nearest] = fixtures.sort(
    (one, other) => apart(one.payload, at.payload) - apart(other.payload, at.payload) || apart(one.rows, at.rows) - apart(other.rows, at.rows),
  );
  const { rows, payload, outcome } = nearest;
  const bytes = (Number(outcome.measured.heap_pages) + Number(outcome.measured.stable_pages)) * WASM_PAGE;
  const share = (at.rows * at.payload) / (rows * payload);
  return { gib: (bytes * share) / GIB, rows, payload, exact: rows === at.rows && payload === at.payload };
}

/**
 * The bill of every engine, the cheapest first, floors after the engines.
 * @param {import("../question.js").Source} source
 * @param {Asked} asked
 * @param {number} chargedNodes the subnet size of the prices
 * @returns {Billed[]}
 */
export function billed(source, asked, chargedNodes) {
  const { report, columns } = source;
  const { fees } = report.rules;
  const within = Math.min(Math.max(asked.rows, source.rows[0]), source.rows[1]);
  const rows = columns.map((column) => {
    const found = source.cost(column, { ...asked, rows: within });
    const stored = memory(report, column.key, asked);
    const gib = asked.gib ?? stored?.gib ?? NaN;
    const instructions = charged(found.cost, asked.by);
    const use = { perDay: asked.perDay, instructions, bytes: sent(asked) + envelope(found.cost, fees), gib };
    const bill = Number.isFinite(instructions) && fits(source, found.cost) ? month(fees, use, asked.nodes / chargedNodes) : null;
    const usd = bill ? (bill.total / 1e12) * asked.usd : NaN;
    return {
      key: column.key, heading: heading(report, column.key), floor: isFloor(report, column.key), estimate: found,
      fits: fits(source, found.cost), memory: asked.gib === null ? stored : null, gib, instructions,
      clamped: within === asked.rows ? null : within, month: bill, usd, rank: null,
    };
  });
  const order = (row) => (Number.isFinite(row.usd) ? Number(row.floor) : 2);
  rows.sort((one, other) => order(one) - order(other) || one.usd - other.usd || 0);
  rows.filter((row) => order(row) === 0).forEach((row, at) => { row.rank = at + 1; });
  return rows;
}

/** Bytes of the rows that a message contains: new rows, and what replaces others. @param {Asked} asked */
function sent({ insert, update, payload }) {
  return (insert + update) * payload;
}

/** Instructions paid for; those of the work if the replica does not report the charge. */
function charged(cost, by) {
  if (!cost) return NaN;
  const charge = by === "message" ? cost.message.charge : cost.charge;
  return charge ?? cost.instructions;
}

/** Bytes of a message without its rows, as in the measured messages, which contain no rows. */
export function envelope(cost, fees) {
  if (!cost || cost.charge === null || cost.cycles === null) return 0;
  const bytes = (cost.cycles - cost.charge * fees.instruction - fees.execution - fees.ingress) / fees.ingress_byte;
  return Math.max(0, Math.round(bytes));
}
