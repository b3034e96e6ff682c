/**
 * The cost of a message with several operations, from messages with operations of one kind.
 *
 * Each part of a cost has a fixed share, which a message pays once whatever it does (statements, the beginning and
 * the end of a transaction, the root of the tree), and a share of its operations:
 *
 *     compute   fixed + the sum of the operations
 *     pages     fixed + the pages that any operation touches
 *
 * A page that two operations touch is paid once. At random places, operations meet by chance: of C pages, shares a
 * and b leave (1 − a)(1 − b) untouched. In the middle and at the end they work on the same few pages: the most that
 * one of them touches counts, and some of the pages that their rows are in. The range reaches to pages of their own.
 * Operations may also have compute in common: the range reaches from half of that of further operations.
 *
 * @typedef {import("../answer/estimate.js").Estimate} Estimate
 * @typedef {import("../answer/interpolate.js").Span} Span
 * @typedef {{insert: number, read: number, update: number, delete: number, scan: number, indexes: number,
 *   rows: number, payload: number, place: string}} Mix
 * @typedef {{spans: Object<string, Span?>, fixed: Object<string, number>}} Share the cost of the operations of one kind
 */

import { estimate, none, partsAt, ranged } from "../answer/estimate.js";
import { sum } from "../answer/points.js";
import { OPERATIONS } from "./operations.js";
import { PAGES, PARTS, ROW, fixed, near, scattered } from "./shares.js";

/** Pages that a message touches by chance, as a share. */
const NOISE = 0.15;
/** Further pages of the heap, read or written, that code and buffers of several kinds of operations touch. */
const HEAP = 6;
/** The least share of their compute that further operations do not have in common with the first, as loading pages. */
const ALONE = 0.5;
/** Rows of a place: those that a mix in the middle or at the end works on. */
const REGION = 1_000;
/** Bytes of a page of SQLite, which may be anywhere in the heap: its cache. */
const LEAF = 4_096;
/** The share of these that lies in pages of the heap that are not touched anyway. */
const ELSEWHERE = 0.2;
/** What happens in some messages only may happen this many times more often than on the mean. */
const OFTEN = 1.5;

/**
 * @param {import("./operations.js").Measurements} all
 * @param {import("./operations.js").Engine} engine
 * @param {Mix} mix
 * @returns {Estimate}
 */
export function estimateMix(all, engine, mix) {
  const done = OPERATIONS.filter((operation) => mix[operation] > 0);
  if (!done.length) return none("the message does nothing");
  if (mix.indexes > 0) return none("secondary indexes are not in these measurements");
  if (done.length === 1) {
    const alone = estimateAlone(all, engine, done[0], mix);
    if (alone) return alone;
  }
  const shares = done.map((operation) => share(all, engine, operation, mix));
  const refused = shares.flatMap((of) => of.refused ?? []);
  if (refused.length) return none(refused.join("; "));
  const spans = Object.fromEntries(PARTS.map((part) => [part, together(shares, part, engine.capacity[part], mix, all.page)]));
  return { ...ranged(spans), kind: "estimated", how: how(done) };
}

/**
 * The error of estimates of measured messages with one kind of operation: each is left out in turn and estimated from
 * the others, which are then further apart than in use.
 * @param {import("./operations.js").Measurements} all
 * @param {import("./operations.js").Engine} engine
 * @returns {Object<string, {errors: number[], within: number}>} by operation: shares of the measured values in ascending
 *   order, and the number of values within the stated range
 */
export function leaveOneOut(all, engine) {
  const found = OPERATIONS.filter((operation) => operation !== "insert").map((operation) => {
    const points = engine.measured.filter((of) => of.operation === operation);
    const different = points.filter((of, at) => points.findIndex((other) => alike(of, other)) === at);
    const missed = different.flatMap((point) => {
      const others = { ...engine, measured: engine.measured.filter((of) => !alike(of, point)) };
      const { rows, payload, place, n } = point;
      const guess = estimateMix(all, others, { ...NOTHING, [operation]: n, rows, payload, place });
      const real = sum(point.parts).instructions;
      return guess.cost ? [{ error: Math.abs(guess.cost.instructions / real - 1), within: guess.low <= real && real <= guess.high }] : [];
    });
    const errors = missed.map((of) => of.error).sort((one, other) => one - other);
    return [operation, { errors, within: missed.filter((of) => of.within).length }];
  });
  return Object.fromEntries(found);
}

const NOTHING = { insert: 0, read: 0, update: 0, delete: 0, scan: 0, indexes: 0 };

/** Returns `true` for the same message, which several sections may have measured; a single operation is the same everywhere. */
function alike(one, other) {
  return ["operation", "n", "rows", "payload"].every((name) => one[name] === other[name]) && (one.place === other.place || one.n === 1);
}

/** A message with one kind of operation, if it was measured, or is one with new rows. */
function estimateAlone(all, engine, operation, mix) {
  const n = mix[operation];
  if (operation === "insert") {
    const found = estimate(all.inserts, engine.inserts, { n, rows: mix.rows, payload: mix.payload, place: mix.place });
    return found.cost ? found : null;
  }
  const like = engine.measured.filter((of) => of.operation === operation && of.n === n && of.rows === mix.rows && of.payload === mix.payload);
  // A single operation costs the same everywhere.
  const exact = like.find((of) => of.place === mix.place) ?? like.find((of) => n === 1 && of.place === "random");
  if (!exact) return null;
  const cost = sum(exact.parts);
  return { kind: "measured", cost, low: cost.instructions, high: cost.instructions, how: "", error: null };
}

/** @returns {Share|{refused: string}} */
function share(all, engine, operation, mix) {
  const at = { n: mix[operation], rows: mix.rows, payload: mix.payload, place: mix.place };
  if (operation === "insert" && at.place !== "random") {
    const found = partsAt(all.inserts, engine.inserts.points.filter((point) => point.place === at.place), at);
    if (found.refused) return { refused: `insertions: ${found.refused}` };
    return { spans: occasional(found.spans, found.of.inserts, at.n), fixed: fixed(found.of.inserts) };
  }
  return at.place === "random" ? scattered(all, engine, operation, at) : near(all, engine, operation, at);
}

/**
 * Splitting a page makes SQLite go through its whole cache, from a number of neighbouring rows on in every message,
 * below in some of them. Their mean lies on the line to the messages that always do.
 */
function occasional(spans, inserts, n) {
  const changed = PAGES.flatMap((part) => {
    if (!spans[part]) return [];
    const mean = hull(inserts.map((of) => ({ x: of.n, y: of.parts[part] })), n);
    const { y, low, high } = spans[part];
    return mean > y ? [[part, { y: mean, low, high: Math.max(mean * OFTEN, high) }]] : [];
  });
  return { ...spans, ...Object.fromEntries(changed) };
}

/** The height at `x` of the lowest line without dents that is nowhere below points. */
function hull(points, x) {
  const lines = points.flatMap((one) => points.filter((other) => one.x <= x && x <= other.x).map((other) =>
    one.x === other.x ? one.y : one.y + ((other.y - one.y) * (x - one.x)) / (other.x - one.x)));
  return Math.max(...lines, 0);
}

/** One part of the cost of all operations of a message. @param {Share[]} shares @param {string} part @param {number} [capacity] @param {Mix} mix @param {number} page @returns {Span?} */
function together(shares, part, capacity, mix, page) {
  const spans = shares.map((of) => of.spans[part]);
  if (spans.some((of) => of === null)) return null;
  // What is around the work is done once.
  if (part === "around" || part === "fee") return spans.reduce((one, other) => (other.y > one.y ? other : one));
  const base = Math.max(...shares.map((of) => of.fixed[part]));
  const own = (which) => shares.map((of) => Math.max(0, of.spans[part][which] - of.fixed[part]));
  const added = (values) => values.reduce((all, value) => all + value, 0);
  const most = (values) => Math.max(...values);
  if (part === "compute") {
    const shared = (values) => most(values) + (added(values) - most(values)) * ALONE;
    return { y: base + added(own("y")), low: base + shared(own("low")), high: base + added(own("high")) };
  }
  const union = (values) => met(values, Math.max(...values, (capacity ?? Infinity) - base));
  const random = mix.place === "random";
  const others = random || part !== "touched" ? 0 : leaves(mix) * page;
  const [y, low, high] = random ? ["y", "low", "high"].map((which) => union(own(which))) : [most(own("y")) + others * ELSEWHERE, most(own("low")), added(own("high")) + others];
  return {
    y: base + y,
    low: Math.max(0, Math.min((base + low) * (1 - NOISE), base + low - page)),
    high: Math.max((base + high) * (1 + NOISE), base + high + page * (part === "touched" ? HEAP : 1)),
  };
}

/**
 * Pages of the table that operations touch, each at one of the rows of a place. Measured messages work on neighbouring
 * rows, in fewer pages. Each may lie in a page of the heap of its own, or in one that is touched anyway.
 */
function leaves(mix) {
  const all = Math.max(1, (REGION * (mix.payload + ROW)) / LEAF);
  const touched = mix.insert + mix.read + mix.update + mix.delete + mix.scan;
  return all * (1 - Math.exp(-touched / all));
}

/** Pages that are touched by any of several operations, each of which touches some of `capacity`. */
function met(values, capacity) {
  if (!Number.isFinite(capacity)) return values.reduce((all, value) => all + value, 0);
  return capacity * (1 - values.reduce((free, value) => free * (1 - value / capacity), 1));
}

function how(done) {
  return `from messages that only ${done.join(", and messages that only ")}`;
}
