/**
 * What a canister costs in a month of 30 days, in cycles:
 *
 *     instructions   messages × instructions × price of an instruction
 *     messages       messages × (execution + ingress + bytes × price of an ingress byte)
 *     storage        GiB × seconds × price of a GiB-second
 *     base           seconds × base fee of a canister
 *
 * each × nodes / 13. `docs/bill.md` has the prices and their source.
 *
 * @typedef {{execution: number, ingress: number, ingress_byte: number, instruction: number,
 *   storage_gib_second: number, canister_second: number}} Fees cycles on a subnet of 13 nodes
 * @typedef {{perDay: number, instructions: number, bytes: number, gib: number}} Use
 *   instructions and bytes are those of one message
 * @typedef {{instructions: number, messages: number, storage: number, base: number, total: number}} Month
 */

export const DAYS = 30;
const SECONDS = DAYS * 24 * 60 * 60;

/** @param {Fees} fees @param {Use} use @param {number} share nodes of the subnet / nodes of the prices @returns {Month} */
export function month(fees, use, share) {
  const messages = use.perDay * DAYS;
  const instructions = share * messages * use.instructions * fees.instruction;
  const taken = share * messages * (fees.execution + fees.ingress + use.bytes * fees.ingress_byte);
  const storage = share * use.gib * SECONDS * fees.storage_gib_second;
  const base = share * SECONDS * fees.canister_second;
  return { instructions, messages: taken, storage, base, total: instructions + taken + storage + base };
}
