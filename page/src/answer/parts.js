/**
 * One part of a message's cost at sizes that may not have been measured, from the measured points around them.
 *
 *     inserts   other numbers of new rows, usual length and table
 *     curve     tables of other sizes, usual length, the usual number of new rows
 *     lengths   rows of other lengths, the usual number of new rows, tables of their own sizes
 *
 * These lines meet in one point and leave the space between them empty. Two assumptions fill it. Compute has a
 * fixed part and a part for each row: what longer rows add is added for each row. Pages depend on the bytes of
 * the message: 5 rows of 300 bytes touch what 15 of 100 do, and whether a commit goes through the whole cache of
 * SQLite depends on how many pages it splits, not on the rows. Where two ways lead to a figure, the nearer one
 * counts, and the range contains both.
 *
 * @typedef {import("./points.js").Point} Point
 * @typedef {import("./interpolate.js").Span} Span
 * @typedef {{n: number, payload: number, rows: number}} Sizes
 * @typedef {{usual: Sizes, inserts: Point[], curve: Point[], lengths: Point[], page: number}} Lines points in ascending order;
 *   `usual.n` is the number of new rows of `curve` and `lengths`; `page` is the charge for a written page
 */

import { interpolate, span, spanning } from "./interpolate.js";

/** Bytes that a row takes beside its payload: the key, lengths, a pointer to it. */
const ROW = 12;
/** Ways whose figures differ by more than this are alternatives: their mean would be neither. */
const ALTERNATIVES = 2;
/** Longer rows touch at most this many times more pages, if nothing else begins. */
const LONGER = 4;
/** Also a part that does not grow with the rows of a message may grow with this power of the table. */
const DEPTH = 0.1;
/** Pages that a message touches by chance, as a share. */
const NOISE = 0.2;

/**
 * @param {import("./points.js").Points} all
 * @param {Point[]} here points of one column at one place
 * @returns {Lines}
 */
export function lines(all, here) {
  const usually = here.filter((of) => of.payload === all.payload);
  const others = here.filter((of) => of.payload !== all.payload || of.rows !== all.rows);
  const n = Math.max(...others.map((of) => of.n), 0);
  return {
    usual: { n, payload: all.payload, rows: all.rows },
    page: all.page,
    inserts: ascending(usually.filter((of) => of.rows === all.rows), "n"),
    curve: ascending(usually.filter((of) => of.n === n), "rows"),
    lengths: ascending(here.filter((of) => of.n === n && of.payload !== all.payload), "payload"),
  };
}

/** Points in ascending order, each size once. */
function ascending(points, axis) {
  const sorted = [...points].sort((one, other) => one[axis] - other[axis]);
  return sorted.filter((of, at) => at === 0 || of[axis] !== sorted[at - 1][axis]);
}

/** The values of a part along a line. */
export function series(points, part, x) {
  return points.map((of) => ({ x: x(of), y: of.parts[part] }));
}

/** The part that grows with rows. @param {Lines} of @param {string} part @param {Sizes} at @returns {Span} */
export function growing(of, part, at) {
  const { usual } = of;
  const inserted = interpolate(series(of.inserts, part, ({ n }) => n), at.n, "linear");
  const short = moved(of, part, inserted, { n: at.n, rows: usual.rows }, at);
  if (at.payload === usual.payload) return short;
  // What other lengths add to the usual one, in tables of the same size.
  const added = of.lengths.flatMap((point) => {
    const base = curveAt(of, part, point.rows);
    return base ? [{ x: point.payload, y: point.parts[part] - base.y, ratio: base.y ? point.parts[part] / base.y : 1 }] : [];
  });
  const around = [...added, { x: usual.payload, y: 0, ratio: 1 }].sort((one, other) => one.x - other.x);
  const extra = interpolate(around, at.payload, "linear");
  const ratio = interpolate(around.map(({ x, ratio: y }) => ({ x, y })), at.payload, "linear");
  const per = at.n / usual.n;
  const scaled = (value) => Math.max(0, value);
  const base = fixed(of, part, usual.rows);
  const multiplied = base + Math.max(0, short.y - base) * ratio.y;
  return spanning(scaled(short.y + extra.y * per), scaled(short.low + extra.low * per), scaled(short.high + extra.high * per), multiplied);
}

/** The part that consists of charges for pages. @param {Lines} of @param {string} part @param {Sizes} at @returns {Span} */
export function pages(of, part, at) {
  const { usual } = of;
  const length = (payload) => (payload + ROW) / (usual.payload + ROW);
  // Messages and tables of the usual rows with as many bytes.
  const like = (sizes) => ({ n: sizes.n * length(sizes.payload), rows: sizes.rows * length(sizes.payload) });
  const asked = like(at);
  const counts = series(of.inserts, part, ({ n }) => n);
  const ways = [way(counts, asked.n, apart(at.payload, usual.payload) + apart(asked.rows, usual.rows) / 2, (found) => moved(of, part, found, usual, asked))];
  const there = curveAt(of, part, within(of, asked.rows));
  if (of.lengths.length && there) {
    const others = of.lengths.map((point) => ({ ...like(point), value: moved(of, part, span(point.parts[part]), like(point), asked) }));
    const along = [...others, { n: usual.n, value: there }].sort((one, other) => one.n - other.n);
    const [y, low, high] = ["y", "low", "high"].map((which) => way(along.map(({ n, value }) => ({ x: n, y: value[which] })), asked.n, apart(at.n, usual.n)));
    ways.push({ ...y, low: low.low, high: high.high });
  }
  const found = spanningLonger(of, part, at, together(ways), counts);
  // A table with more bytes than any measured one.
  const beyond = Math.max(1, asked.rows / within(of, asked.rows));
  const less = Math.min(found.low * (1 - NOISE), found.low - of.page);
  return spanning(found.y, Math.max(0, less), Math.max(found.high * (1 + NOISE), found.high + of.page) * beyond);
}

/**
 * Extends the range to as many times more pages as longer rows touch, as in a map whose nodes become larger.
 * If that is much more, something else begins, which depends on the bytes.
 */
function spanningLonger(of, part, at, found, counts) {
  const short = interpolate(counts, at.n, "steps");
  const ratios = of.lengths.flatMap((point) => {
    const base = curveAt(of, part, within(of, point.rows));
    return base?.y > 0 ? [{ x: point.payload, y: point.parts[part] / base.y }] : [];
  });
  const all = [...ratios, { x: of.usual.payload, y: 1 }].sort((one, other) => one.x - other.x);
  const longer = interpolate(all, at.payload, "linear");
  if (!short || !longer || longer.y > LONGER) return found;
  const times = moved(of, part, short, { n: at.n, rows: of.usual.rows }, at);
  return spanning(found.y, found.low, found.high, times.y * longer.y);
}

/** Pages of a message of this size; beyond the points as at the last one, or in proportion to the size. */
function way(points, x, distance, change = (found) => found) {
  const [first, last] = [points[0], points.at(-1)];
  const found = x < first.x ? span(first.y) : x > last.x ? spanning((last.y * x) / last.x, last.y) : interpolate(points, x, "steps");
  return { ...change(found), distance, beyond: x < first.x || x > last.x };
}

/** One figure of several ways to it. */
function together(ways) {
  const surrounded = ways.filter((of) => !of.beyond);
  const [near, far] = (surrounded.length ? surrounded : ways).sort((one, other) => one.distance - other.distance);
  if (!far || near.distance === 0) return near;
  const range = [near.low, near.high, far.low, far.high];
  const unlike = Math.max(near.y, far.y) > Math.min(near.y, far.y) * ALTERNATIVES;
  const share = near.distance / (near.distance + far.distance);
  return spanning(unlike ? near.y : near.y + (far.y - near.y) * share, ...range);
}

/** The distance of two sizes. */
function apart(one, other) {
  return Math.abs(Math.log(one / other));
}

/** The size of a table, limited to those of the curve. */
function within({ curve, usual }, rows) {
  const sizes = [...curve.map((of) => of.rows), usual.rows];
  return Math.min(Math.max(rows, Math.min(...sizes)), Math.max(...sizes));
}

function curveAt(of, part, rows) {
  return interpolate(series(of.curve, part, (point) => point.rows), rows, "logarithmic");
}

/** The part of a message's cost that does not grow with its rows. */
function fixed(of, part, rows) {
  const [one, two] = of.inserts;
  const first = one.parts[part];
  const slope = two ? (two.parts[part] - first) / (two.n - one.n) : 0;
  const usually = Math.min(first, Math.max(0, first - slope * one.n));
  if (rows === of.usual.rows) return usually;
  return Math.min(usually, curveAt(of, part, rows)?.y ?? usually);
}

/**
 * A value in a table of another size: the fixed part stays, the rest changes as in the curve. For another number
 * of new rows it may also stay as it is.
 */
function moved(of, part, value, before, after) {
  const [from, to] = [within(of, before.rows), within(of, after.rows)];
  const [here, there] = [curveAt(of, part, from), curveAt(of, part, to)];
  if (from === to || !here || !there) return value;
  const [base, other] = [fixed(of, part, from), fixed(of, part, to)];
  const move = (y, goal) => {
    if (y > base && here.y > base) return other + ((y - base) * Math.max(0, goal - other)) / (here.y - base);
    if (base > 0) return (y * other) / base;
    return here.y > 0 ? (y * goal) / here.y : y;
  };
  const y = move(value.y, there.y);
  const unchanged = y + (value.y - y) * Math.min(1, apart(before.n, of.usual.n));
  const deeper = value.y * (to / from) ** DEPTH;
  return spanning(y, move(value.low, there.low), move(value.high, there.high), unchanged, deeper);
}
