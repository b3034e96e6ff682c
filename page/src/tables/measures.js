/**
 * All numeric values of a case.
 *
 * @typedef {{key: string, text: string, value: (of: import("../data.js").Case) => number}} Measure
 */

import { chargeParts, eachOperation, inside, measured, workParts } from "../data.js";

const detail = (of) => measured(of)?.detail;
const each = (of) => measured(of)?.each;

/** @param {any} value @returns {number} NaN where there is none */
function number(value) {
  return value === null || value === undefined ? NaN : Number(value);
}

/** @type {Measure[]} */
export const MEASURES = [
  ["each", "Instructions per operation", eachOperation],
  ["instructions", "Instructions of the work", (of) => number(measured(of)?.instructions)],
  ["operations", "Operations", (of) => number(measured(of)?.operations)],
  ["charge", "Charge: instructions paid for", (of) => number(inside(of)?.charge)],
  ["cycles", "Cycles (13 nodes)", (of) => number(detail(of)?.cost.cycles)],
  ["end", "Instructions when the messages end", (of) => number(inside(of)?.instructions)],
  ["message", "Instructions after the work, checks included", (of) => number(detail(of)?.message_instructions)],
  ["messages", "Messages", (of) => number(detail(of)?.messages)],
  ["overhead", "Instructions of reading the counter twice", (of) => number(detail(of)?.counter_overhead)],
  ["rows", "Rows written, found or removed", (of) => number(detail(of)?.rows)],
  ["bytes", "Bytes of their texts", (of) => number(detail(of)?.bytes)],
  ["workCompute", "Work: compute", (of) => number(workParts(of)?.[0])],
  ["workHeap", "Work: heap pages, instructions", (of) => number(workParts(of)?.[1])],
  ["workStable", "Work: stable pages, instructions", (of) => number(workParts(of)?.[2])],
  ["chargeCompute", "Charge: compute", (of) => number(chargeParts(of)?.[0])],
  ["chargeHeap", "Charge: heap pages, instructions", (of) => number(chargeParts(of)?.[1])],
  ["chargeStable", "Charge: stable pages, instructions", (of) => number(chargeParts(of)?.[2])],
  ["heapTouched", "Heap touched (64 KiB)", (of) => number(inside(of)?.pages?.touched?.heap)],
  ["heapWritten", "Heap written (64 KiB)", (of) => number(inside(of)?.pages?.touched?.heap_written)],
  ["stableTouched", "Stable memory touched (64 KiB)", (of) => number(inside(of)?.pages?.touched?.stable)],
  ["stableWritten", "Stable memory written (64 KiB)", (of) => number(inside(of)?.pages?.touched?.stable_written)],
  ["heap", "Heap pages changed (4 KiB)", (of) => number(inside(of)?.heap_pages_changed)],
  ["accessed", "Stable pages accessed (4 KiB)", (of) => number(inside(of)?.stable_pages_accessed)],
  ["written", "Stable pages written (4 KiB)", (of) => number(inside(of)?.stable_pages_written)],
  ["reads", "Reads of stable memory", (of) => number(inside(of)?.stable_calls?.reads)],
  ["bytesRead", "Bytes read", (of) => number(inside(of)?.stable_calls?.bytes_read)],
  ["writes", "Writes of stable memory", (of) => number(inside(of)?.stable_calls?.writes)],
  ["bytesWritten", "Bytes written", (of) => number(inside(of)?.stable_calls?.bytes_written)],
  ["min", "Cheapest operation", (of) => number(each(of)?.min)],
  ["p50", "Operation, p50", (of) => number(each(of)?.p50)],
  ["p90", "Operation, p90", (of) => number(each(of)?.p90)],
  ["p99", "Operation, p99", (of) => number(each(of)?.p99)],
  ["max", "Most expensive operation", (of) => number(each(of)?.max)],
  ["stored", "Bytes stored afterwards", (of) => number(detail(of)?.stored?.bytes)],
  ["heapBefore", "Heap before (64 KiB)", (of) => number(detail(of)?.heap_pages_before)],
  ["heapAfter", "Heap after (64 KiB)", (of) => number(detail(of)?.heap_pages_after)],
  ["stableBefore", "Stable memory before (64 KiB)", (of) => number(detail(of)?.stable_pages_before)],
  ["stableAfter", "Stable memory after (64 KiB)", (of) => number(detail(of)?.stable_pages_after)],
  ["capacity", "Operations that exceed the limit", (of) => number(measured(of)?.capacity?.exceeds)],
  ["limit", "Limit of a message, instructions", (of) => number(measured(of)?.capacity?.limit)],
].map(([key, text, value]) => ({ key, text, value }));

/** The measures that some of the cases have. @param {import("../data.js").Case[]} cases */
export function available(cases) {
  return MEASURES.filter((measure) => cases.some((of) => Number.isFinite(measure.value(of))));
}

/** The default measure of a section. @param {string} section @param {import("../data.js").Case[]} cases */
export function usual(section, cases) {
  if (cases.some((of) => measured(of)?.capacity)) return "operations";
  return section === "insert" ? "instructions" : "each";
}

/** Returns `true` if less is better. @param {string} key */
export function isCost(key) {
  return !["operations", "messages", "rows", "bytes", "capacity", "limit", "overhead"].includes(key);
}
