/**
 * The cost of operations of one kind at sizes that may not have been measured.
 *
 * At random places, the number of operations varies in the usual table; other tables and rows of other lengths were
 * measured with one number of operations. Their ratio to the usual table is applied to the share of the operations:
 *
 *     share(n, rows, length) = share(n) × table(rows × length) × length
 *
 * `table` is that of reads or of insertions, `length` that of reads or of updates, which are the operations that were
 * measured so. Between two measured numbers of operations, a part grows as it does for insertions, which were
 * measured with more numbers. In the middle and at the end, operations work on the same few pages.
 *
 * @typedef {import("../answer/interpolate.js").Span} Span
 * @typedef {import("./operations.js").Measured} Measured
 * @typedef {{n: number, rows: number, payload: number, place: string}} At
 */

import { outside } from "../answer/estimate.js";
import { interpolate, span, spanning } from "../answer/interpolate.js";

/** The parts of a cost. */
export const PARTS = ["compute", "touched", "stable", "heap", "around", "fee"];
export const PAGES = ["touched", "stable", "heap"];
/** What a message pays once. */
const ONCE = ["around", "fee"];
/** Bytes that a row takes beside its payload. */
export const ROW = 12;
/** Operations at a place touch at most this many times more pages if rows are longer. */
const LONGER = 4;
/** The number of operations from which the fixed share is extrapolated. */
const FEW = 10;

/** The operation of which other tables were measured, and that of rows of other lengths. */
const TABLES = { insert: "insert", read: "read", update: "insert", delete: "insert", scan: "read" };
const LENGTHS = { insert: "update", read: "read", update: "update", delete: "update", scan: "read" };
const NAMES = { insert: "insertions", read: "reads", update: "updates", delete: "deletions", scan: "scans" };

/** The share of each part that does not grow with the operations. @param {Array<{n: number, parts: any}>} line ascending */
export function fixed(line) {
  return Object.fromEntries(PARTS.map((part) => [part, intercept(line.map((of) => ({ x: of.n, y: of.parts[part] ?? 0 })))]));
}

function intercept(points) {
  const [one, two] = points;
  if (!two) return one.y;
  return Math.min(one.y, Math.max(0, one.y - ((two.y - one.y) / (two.x - one.x)) * one.x));
}

/**
 * @param {import("./operations.js").Measurements} all
 * @param {import("./operations.js").Engine} engine
 * @param {string} operation
 * @param {At} at at random places
 * @returns {import("./estimate.js").Share|{refused: string}}
 */
export function scattered(all, engine, operation, at) {
  const random = (of) => lineOf(all, engine, of, (point) => point.place === "random");
  const own = random(operation);
  const refused = refusal(all, engine, operation, at, own);
  if (refused) return { refused };
  const guide = random("insert");
  const spans = {};
  const base = {};
  for (const part of PARTS) {
    if (own.some((of) => of.parts[part] === null)) {
      [spans[part], base[part]] = [null, 0];
      continue;
    }
    const count = (n) => guided(values(own, part), values(guide, part), n, part);
    const few = [own[0].n, FEW].map((n) => ({ x: n, y: count(n)?.y })).filter(({ y }) => y !== undefined);
    base[part] = intercept(few.length > 1 ? few : values(own, part));
    spans[part] = ONCE.includes(part) ? count(at.n) : scaled(count(at.n), base[part], factor(all, engine, operation, part, at));
  }
  return { spans, fixed: base };
}

/** Operations in the middle or at the end. The parameters are those of `scattered`. */
export function near(all, engine, operation, at) {
  // A single operation costs the same everywhere.
  const own = lineOf(all, engine, operation, (point) => point.place === "middle" || (point.place === "random" && point.n === 1));
  const refused = refusal(all, engine, operation, at, own);
  if (refused) return { refused };
  const base = fixed(own);
  const spans = Object.fromEntries(PARTS.map((part) => {
    if (own.some((of) => of.parts[part] === null)) return [part, null];
    const found = interpolate(values(own, part), at.n, PAGES.includes(part) ? "steps" : "linear");
    if (ONCE.includes(part)) return [part, found];
    if (part === "compute") return [part, scaled(found, base[part], factor(all, engine, operation, part, at))];
    const longer = Math.min(LONGER, Math.max(1, (at.payload + ROW) / (all.payload + ROW)));
    return [part, spanning(found.y, found.low - all.page, Math.max(found.high, found.y * longer) + all.page)];
  }));
  return { spans, fixed: base };
}

/** Points of one operation in the usual table, ascending, each number once. */
function lineOf(all, engine, operation, has) {
  return ascending(engine.measured.filter((of) => of.operation === operation && of.rows === all.rows && of.payload === all.payload && has(of)), "n");
}

function ascending(points, axis) {
  const sorted = [...points].sort((one, other) => one[axis] - other[axis]);
  return sorted.filter((of, at) => at === 0 || of[axis] !== sorted[at - 1][axis]);
}

function values(points, part, x = "n") {
  return points.map((of) => ({ x: of[x], y: of.parts[part] }));
}

function refusal(all, engine, operation, at, own) {
  const name = NAMES[operation];
  if (!own.length) return `${name} were not measured ${at.place === "random" ? "at random places" : "there"}`;
  const { tables, lengths } = donors(all, engine, operation);
  const reasons = [
    ...outside(own.map((of) => of.n), at.n, `${name} per message`),
    ...outside([all.rows, ...tables.map((of) => of.rows)], at.rows, "rows in the table"),
    ...outside([all.payload, ...lengths.map((of) => of.payload)], at.payload, "bytes per row"),
  ];
  return reasons.length ? `${name}: ${reasons.join("; ")}` : null;
}

/** Tables of other sizes, and rows of other lengths, at random places. */
function donors(all, engine, operation) {
  const random = engine.measured.filter((of) => of.place === "random");
  const tables = random.filter((of) => of.operation === TABLES[operation] && of.payload === all.payload);
  const n = tables.find((of) => of.rows !== all.rows)?.n;
  const lengths = random.filter((of) => of.operation === LENGTHS[operation]);
  const m = lengths.find((of) => of.payload !== all.payload)?.n;
  return {
    tables: ascending(tables.filter((of) => of.n === n), "rows"),
    lengths: ascending(lengths.filter((of) => of.n === m), "payload"),
  };
}

/**
 * A part for a number of operations. Between two points it grows as that of insertions, whose points are closer. The
 * range is extended by what the surrounding points are missed by if they are left out.
 */
function guided(own, guide, n, part) {
  const shape = PAGES.includes(part) ? "logarithmic" : "linear";
  const found = interpolate(own, n, shape);
  if (!found || found.from === found.to) return found;
  const y = alike(own, guide, n, shape, found);
  if (!Number.isFinite(y)) return found;
  const misses = own.slice(1, -1).filter(({ x }) => x === found.from || x === found.to).map((point) => {
    const others = own.filter((of) => of !== point);
    return point.y / alike(others, guide, point.x, shape, interpolate(others, point.x, shape));
  }).filter((miss) => miss > 0 && Number.isFinite(miss));
  const { low, high } = spanning(y, found.y);
  return { y, low: low * Math.min(1, ...misses), high: high * Math.max(1, ...misses) };
}

/** A value between two points, whose ratio to the guide is interpolated. */
function alike(own, guide, n, shape, { from, to }) {
  const by = (x) => interpolate(guide, x, shape)?.y;
  const ratios = [from, to].map((x) => ({ x, y: own.find((point) => point.x === x).y / by(x) }));
  return interpolate(ratios, n, "logarithmic").y * by(n);
}

/** The share of the operations, times a factor. @param {Span} found @param {number} base @param {Span} by */
function scaled(found, base, by) {
  const of = (value, times) => (value > base ? base + (value - base) * times : value);
  return { y: of(found.y, by.y), low: of(found.low, by.low), high: of(found.high, by.high) };
}

/** How much more an operation costs in this table with rows of this length than in the usual one. @returns {Span} */
function factor(all, engine, operation, part, at) {
  const { tables, lengths } = donors(all, engine, operation);
  const size = (payload) => (payload + ROW) / (all.payload + ROW);
  // Pages depend on the bytes of the table, compute on its rows.
  const like = (rows, payload) => (PAGES.includes(part) ? rows * size(payload) : rows);
  const line = values(tables, part, "rows");
  const table = (rows) => {
    if (!line.length) return span(1);
    const within = Math.min(Math.max(rows, line[0].x), line.at(-1).x);
    const usual = interpolate(line, all.rows, "logarithmic");
    const found = interpolate(line, within, "logarithmic");
    if (!(usual?.y > 0)) return span(1);
    return { y: found.y / usual.y, low: found.low / usual.y, high: (found.high / usual.y) * Math.max(1, Math.sqrt(rows / within)) };
  };
  const usual = lengths.find((of) => of.payload === all.payload)?.parts[part];
  const ratios = lengths.map((of) => ({ x: of.payload, y: of.parts[part] / usual / table(like(of.rows, of.payload)).y }));
  const long = usual > 0 ? interpolate(ratios, at.payload, "linear") ?? span(1) : span(1);
  const other = table(like(at.rows, at.payload));
  return { y: other.y * long.y, low: other.low * long.low, high: other.high * long.high };
}
