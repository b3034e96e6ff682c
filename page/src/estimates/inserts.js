/**
 * The cost of a message with new rows at sizes that may not have been measured, from the measured points around them.
 *
 *     inserts   other numbers of new rows, usual length and table
 *     curve     tables of other sizes, usual length, the usual number of new rows
 *     lengths   rows of other lengths, the usual number of new rows, tables of their own sizes
 *
 * These lines meet in one point and leave the space between them empty. Two assumptions fill it, for compute and pages
 * apart. Compute has a fixed part and a part for each row: what longer rows add is added for each row. Pages depend on
 * the bytes of the message: 5 rows of 300 bytes touch what 15 of 100 do, and whether a commit goes through the whole
 * cache of SQLite depends on how many pages it splits, not on the rows. Where two ways lead to a figure, the nearer one
 * counts, and the range contains both. `docs/report.md` has the errors.
 *
 * The measured points are messages of the suite users that insert rows into a warm table, and those with operations of
 * one other kind. All estimates are made from these.
 *
 * The cost of a message has parts that add up to its cycles:
 *
 *     compute   the instructions of the work, without charges for pages
 *     touched   the part of the work charged for heap pages
 *     stable    the part of the work charged for pages of stable memory
 *     heap      the charge for changed heap pages at the end of the message
 *     around    the instructions around the work: this canister's own checks
 *     fee       the cycles beyond the charge: submitting the message
 *
 * If the replica does not report pages, `compute` is the whole work.
 *
 * @typedef {{compute: number, touched: number?, stable: number?, heap: number?, around: number?, fee: number?}} Parts
 * @typedef {{n: number, rows: number, payload: number, place: string, parts: Parts}} Point
 * @typedef {{key: string, points: Point[]}} Column
 * @typedef {{rows: number, payload: number, places: string[], columns: Column[], limit: number?,
 *   page: number}} Points
 *   `rows` and `payload` are the usual sizes: those of the section insert; `page` is the charge for a written
 *   page, 0 if pages have no such charge
 * @typedef {"insert"|"read"|"update"|"delete"|"scan"} Operation `scan` reads a range of 100 rows
 * @typedef {Point & {operation: Operation}} Measured
 * @typedef {{key: string, measured: Measured[], inserts: Column, capacity: {touched: number, stable: number}}} Engine
 *   `capacity` is the charge if every page of the usual table, and every page of the heap that messages touch, were written
 * @typedef {{rows: number, payload: number, page: number, places: string[], limit: number?,
 *   inserts: Points, engines: Engine[]}} Measurements the sizes and the page are those of `inserts`
 * @typedef {{x: number, y: number}} Position a point on a line
 * @typedef {"linear"|"logarithmic"|"steps"} Shape `steps`: pages, which stay as they are until something begins
 * @typedef {{y: number, low: number, high: number}} Span a value, and its range
 * @typedef {"measured"|"interpolated"|"estimated"|"none"} Kind
 * @typedef {{kind: Kind, cost: ReturnType<typeof sum>?, low: number, high: number, how: string, error: number?}} Estimate
 *   `low` and `high` limit the instructions; `error` is the larger factor between them and the estimate, minus 1;
 *   `null` if measured
 * @typedef {{errors: number[], within: number}} Errors shares of the measured values in ascending order, and the number of
 *   values within the stated range
 * @typedef {{n: number, payload: number, rows: number}} Sizes
 * @typedef {{usual: Sizes, inserts: Point[], curve: Point[], lengths: Point[], page: number}} Lines points in ascending order;
 *   `usual.n` is the number of new rows of `curve` and `lengths`; `page` is the charge for a written page
 */

import { measured, unique, workParts } from "../data.js";
import { fixed, percent, short, whole } from "../format.js";
import * as names from "../names.js";

/** The operations of a message, in the order of their options. @type {Operation[]} */
export const OPERATIONS = ["insert", "read", "update", "delete", "scan"];
/** A message without operations. */
export const NOTHING = { insert: 0, read: 0, update: 0, delete: 0, scan: 0, indexes: 0 };
/** Bytes that a row takes beside its payload: the key, lengths, a pointer to it. */
export const ROW = 12;

/** @param {import("../data.js").Report} report @returns {Points?} `null` if the section insert is missing */
export function points(report) {
  if (report.results.suite !== "users") return null;
  const { cases } = report.results;
  const first = cases.find((of) => of.section === "insert" && names.insert(of.name));
  if (!first) return null;
  const { rows, payload } = first;
  const columns = new Map();
  let limit = null;
  for (const of of cases) {
    const found = measured(of);
    limit ??= found?.capacity && Number(found.capacity.limit);
    const sizes = found && of.state === "warm" && names.newRows(of.section, of.name);
    if (!sizes) continue;
    if (!columns.has(of.configuration)) columns.set(of.configuration, { key: of.configuration, points: [], inserts: false });
    const column = columns.get(of.configuration);
    column.inserts ||= of.section === "insert";
    column.points.push({ ...sizes, rows: of.rows, payload: of.payload, parts: parts(of, found) });
  }
  const kept = [...columns.values()].filter((column) => column.inserts).map(({ key, points: all }) => ({ key, points: all }));
  const usual = kept.flatMap((column) => column.points.filter((of) => of.rows === rows && of.payload === payload));
  const measuredPlaces = new Set(usual.map((of) => of.place));
  return { rows, payload, places: ["middle", "end", "random"].filter((place) => measuredPlaces.has(place)), columns: kept, limit, page: pageCharge(cases) };
}

/** The parts of a measured cost. @param {import("../data.js").Case} of @param {any} found its measurement @returns {Parts} */
export function parts(of, found) {
  const work = Number(found.instructions);
  const [compute, touched, stable] = workParts(of) ?? [work, null, null];
  const cost = found.detail?.cost;
  const cycles = cost ? Number(cost.cycles) : null;
  if (!cost?.inside) return { compute, touched, stable, heap: null, around: null, fee: cycles === null ? null : cycles - work };
  const charge = Number(cost.inside.charge);
  const counted = Number(cost.inside.instructions);
  return { compute, touched, stable, heap: charge - counted, around: counted - work, fee: cycles - charge };
}

/** The charge for a page that a message writes; a page that it reads only costs half of it. */
function pageCharge(cases) {
  const pages = cases.map((of) => measured(of)?.detail?.pages).find((of) => of?.touched?.stable_written);
  return pages ? (2 * Number(pages.stable)) / (Number(pages.touched.stable) + Number(pages.touched.stable_written)) : 0;
}

/** The instructions of the work. @param {Parts} of */
function work(of) {
  return of.compute + (of.touched ?? 0) + (of.stable ?? 0);
}

/**
 * Sums of the parts: `charge` and `cycles` of the work, and `message` of the whole message.
 * @param {Parts} of
 */
function sum(of) {
  const instructions = work(of);
  const charge = of.heap === null ? null : instructions + of.heap;
  const message = charge === null || of.around === null ? null : charge + of.around;
  const cycles = (charged) => (of.fee === null ? null : (charged ?? instructions) + of.fee);
  return { instructions, charge, cycles: cycles(charge), message: { charge: message, cycles: cycles(message) } };
}

/** The sizes for which there are figures. @param {Points} all @returns {{n: [number, number], payload: [number, number], rows: [number, number]}} */
export function rangesOf(all) {
  const every = all.columns.flatMap((column) => column.points);
  const ends = (list) => [Math.min(...list), Math.max(...list)];
  const usual = (of) => of.payload === all.payload;
  return {
    n: ends(every.filter((of) => usual(of) && of.rows === all.rows).map((of) => of.n)),
    payload: ends(every.map((of) => of.payload)),
    rows: ends(every.filter(usual).map((of) => of.rows)),
  };
}

/** The initial number of rows per message: 100, or else the median of those measured. */
export function usual([low, high], all) {
  const found = unique(all.columns.flatMap((column) => column.points).filter((of) => of.payload === all.payload && of.rows === all.rows).map((of) => of.n));
  return found.includes(100) ? 100 : found.sort((one, other) => one - other)[found.length >> 1] ?? Math.round((low + high) / 2);
}

/** @param {import("../data.js").Report} report @returns {Measurements?} `null` if the section insert of the suite users is missing */
export function measurements(report) {
  const inserts = points(report);
  if (!inserts) return null;
  const { rows, payload, page, places, limit, columns } = inserts;
  const engines = columns.map((column) => {
    const found = report.results.cases.filter((of) => of.configuration === column.key && of.state === "warm").flatMap(ofCase);
    return { key: column.key, measured: found, inserts: column, capacity: capacity(report, column.key, found, inserts) };
  });
  return { rows, payload, page, places, limit, inserts, engines };
}

/** @param {import("../data.js").Case} of @returns {Measured[]} one or none */
function ofCase(of) {
  const found = measured(of);
  const work = found && names.operation(of.section, of.name);
  return work ? [{ ...work, rows: of.rows, payload: of.payload, parts: parts(of, found) }] : [];
}

/** A small cache of SQLite is the most of a heap that a message touches, however much it does. */
const MORE = 1.1;

function capacity(report, key, found, { rows, payload, page }) {
  const fixture = report.results.fixtures.find((of) => of.configuration === key && of.rows === rows && of.payload === payload && of.outcome.measured);
  if (!fixture || !page) return { touched: Infinity, stable: Infinity };
  const { heap_pages: heap, stable_pages: stable } = fixture.outcome.measured;
  const most = Math.max(...found.filter((of) => of.rows === rows && of.payload === payload).map((of) => of.parts.touched ?? 0));
  return { touched: Math.min(2 * page * Number(heap), MORE * most), stable: 2 * page * Number(stable) };
}

/** Points in ascending order, each size once. @template {Point} T @param {T[]} points @param {string} axis @returns {T[]} */
export function ascending(points, axis) {
  const sorted = [...points].sort((one, other) => one[axis] - other[axis]);
  return sorted.filter((of, at) => at === 0 || of[axis] !== sorted[at - 1][axis]);
}

/** The values of a part along an axis. @param {Point[]} points @param {string} part @param {string} axis */
export function values(points, part, axis) {
  return points.map((of) => ({ x: of[axis], y: of.parts[part] }));
}

/** A step is steeper than the lines before and after it by this factor. */
const STEEPER = 1.5;
/** A value that grows faster than this power of the size has a step. */
const FASTEST = { linear: 1.05, logarithmic: 1.05, steps: 0.7 };

/**
 * Interpolation between measured points, with the range in which the true value is expected. There is no
 * figure beyond the first and the last point.
 *
 * A message has a fixed cost and a cost per row, and a row has a fixed cost and a cost per byte: these lie on a
 * straight line. The depth of a tree grows with the logarithm of its rows: both axes are logarithmic. The range
 * is from one of these lines to the other, and wider in two cases:
 *
 *     step   If the value grows faster than the size, or faster than before and after, something begins between
 *            the points (SQLite goes through its whole cache): the value may be that of either point.
 *     miss   If a surrounding point is outside of the range that its own neighbours give, the range is extended
 *            by as much.
 *
 * @param {Position[]} points ascending in x
 * @param {number} x
 * @param {Shape} shape
 * @returns {(Span & {from: number, to: number})?} `from` equals `to` at a measured point
 */
export function interpolate(points, x, shape) {
  const exact = points.find((point) => point.x === x);
  if (exact) return { ...span(exact.y), from: x, to: x };
  const after = points.findIndex((point) => point.x > x);
  if (after < 1) return null;
  const found = between(points, after, x, shape);
  const misses = [after - 1, after].filter((at) => at > 0 && at < points.length - 1).map((at) => miss(points, at, shape));
  return {
    y: found.y,
    low: found.low * Math.min(1, ...misses.map((of) => of.low)),
    high: found.high * Math.max(1, ...misses.map((of) => of.high)),
    from: points[after - 1].x,
    to: points[after].x,
  };
}

/** A point compared with the range that its neighbours give, as factors. */
function miss(points, at, shape) {
  const { x, y } = points[at];
  const { low, high } = between(points.filter((of) => of.x !== x), at, x, shape);
  return { low: low > 0 && y > 0 ? Math.min(1, y / low) : 1, high: high > 0 ? Math.max(1, y / high) : 1 };
}

/** A value that is known exactly. @param {number} y @returns {Span} */
export function span(y) {
  return { y, low: y, high: y };
}

/** A value with a range that contains it and all others. @param {number} y @param {...number} others @returns {Span} */
export function spanning(y, ...others) {
  return { y, low: Math.min(y, ...others), high: Math.max(y, ...others) };
}

/** The value at x between the points before and at `after`. */
function between(points, after, x, shape) {
  const [low, high] = [points[after - 1], points[after]];
  const straight = low.y + slope(low, high) * (x - low.x);
  // Zero has no logarithm.
  const logarithms = low.x > 0 && low.y > 0 && high.y > 0;
  const share = Math.log(x / low.x) / Math.log(high.x / low.x);
  const curved = logarithms ? low.y * (high.y / low.y) ** share : straight;
  const growth = logarithms ? Math.log(high.y / low.y) / Math.log(high.x / low.x) : high.y > low.y ? Infinity : 0;
  if (growth > FASTEST[shape] || (shape === "linear" && steep(points, after))) {
    const nearest = share < 0.5 ? low.y : high.y;
    return spanning(shape !== "steps" ? straight : growth > 1 ? nearest : curved, low.y, high.y);
  }
  return shape === "logarithmic" ? spanning(curved, straight) : spanning(straight, curved);
}

function slope(low, high) {
  return (high.y - low.y) / (high.x - low.x);
}

/** Returns `true` if the line to a point is steeper than those before and after it. */
function steep(points, after) {
  const lines = [after - 1, after + 1].filter((at) => at > 0 && at < points.length).map((at) => slope(points[at - 1], points[at]));
  return lines.length > 0 && slope(points[after - 1], points[after]) > STEEPER * Math.max(0, ...lines);
}

/** An estimate with a larger error answers nothing: the page asks to measure. */
export const UNCERTAIN = 0.25;
/** The smallest range of an estimate. */
const LEAST = 0.05;

/** The parts of a cost, and their models. */
const MODELS = { compute: growing, touched: pages, stable: pages, heap: pages, around: growing, fee: growing };
export const PARTS = Object.keys(MODELS);
const WORK = ["compute", "touched", "stable"];
const SIZES = [
  ["n", "rows per message"],
  ["payload", "bytes per row"],
  ["rows", "rows in the table"],
];
/** Ways whose figures differ by more than this are alternatives: their mean would be neither. */
const ALTERNATIVES = 2;
/** Longer rows touch at most this many times more pages, if nothing else begins. */
const LONGER = 4;
/** Also a part that does not grow with the rows of a message may grow with this power of the table. */
const DEPTH = 0.1;
/** Pages that a message touches by chance, as a share. */
const NOISE = 0.2;

/**
 * @param {Points} all
 * @param {Column} column
 * @param {{n: number, payload: number, rows: number, place: string}} at
 * @returns {Estimate}
 */
export function estimate(all, column, at) {
  const here = column.points.filter((point) => point.place === at.place);
  const exact = here.find((of) => SIZES.every(([axis]) => of[axis] === at[axis]));
  if (exact) return known(exact.parts);
  const found = partsAt(all, here, at);
  if (found.refused) return none(found.refused);
  const { spans, of } = found;
  const off = SIZES.filter(([axis]) => at[axis] !== of.usual[axis]);
  return {
    ...ranged(spans),
    kind: kind(of, at),
    how: off.map(([axis, what]) => surrounding(sizesAlong(of, axis), at[axis], what)).join(", "),
  };
}

/**
 * The parts of a cost, with their ranges.
 * @param {Points} all
 * @param {Point[]} here points of one column at one place
 * @param {{n: number, payload: number, rows: number}} at
 * @returns {{refused: string}|{refused: null, of: Lines, spans: Object<string, Span?>}}
 */
export function partsAt(all, here, at) {
  const of = lines(all, here);
  if (of.inserts.length === 0) return { refused: "not measured at this place" };
  const refused = SIZES.flatMap(([axis, what]) => outside(sizesAlong(of, axis), at[axis], what));
  if (refused.length) return { refused: refused.join("; ") };
  const spans = Object.entries(MODELS).map(([part, model]) => [part, here.some((point) => point.parts[part] === null) ? null : model(of, part, at)]);
  return { refused: null, of, spans: Object.fromEntries(spans) };
}

/** Why there is no figure for a size, if there is none. @param {number[]} sizes measured @param {number} at @param {string} what @returns {string[]} none or one */
export function outside(sizes, at, what) {
  const [low, high] = [Math.min(...sizes), Math.max(...sizes)];
  if (low <= at && at <= high) return [];
  if (low === high) return [`measured with ${whole(low)} ${what} only`];
  return [`${whole(at)} ${what} is outside of the measured range: ${whole(low)} to ${whole(high)}`];
}

/** The cost of parts, its range and its error. @param {Object<string, Span?>} spans @returns {Omit<Estimate, "kind"|"how">} */
export function ranged(spans) {
  const cost = sum(Object.fromEntries(Object.entries(spans).map(([part, found]) => [part, found?.y ?? null])));
  const worked = WORK.map((part) => spans[part] ?? span(0));
  const low = Math.min(total(worked, "low"), cost.instructions * (1 - LEAST));
  const high = Math.max(total(worked, "high"), cost.instructions * (1 + LEAST));
  return { cost, low, high, error: Math.max(high / cost.instructions, low > 0 ? cost.instructions / low : Infinity) - 1 };
}

/** A measured cost. @param {Parts} parts @returns {Estimate} */
export function known(parts) {
  const cost = sum(parts);
  return { kind: "measured", cost, low: cost.instructions, high: cost.instructions, how: "", error: null };
}

/** No figure, and the reason. @param {string} how @returns {Estimate} */
export function none(how) {
  return { kind: "none", cost: null, low: NaN, high: NaN, how, error: null };
}

function total(spans, which) {
  return spans.reduce((all, found) => all + found[which], 0);
}

/** Interpolated if the sizes lie on a line of measured points, which vary one size. */
function kind({ usual }, at) {
  const off = ["payload", "rows"].filter((axis) => at[axis] !== usual[axis]).length;
  return off === 0 || (off === 1 && at.n === usual.n && at.payload === usual.payload) ? "interpolated" : "estimated";
}

/** The measured sizes along one axis. @param {Lines} of @param {string} axis */
function sizesAlong({ usual, inserts, curve, lengths }, axis) {
  const points = { n: inserts, rows: curve, payload: lengths }[axis];
  const usually = axis === "n" ? [] : [usual[axis]];
  return unique([...points.map((point) => point[axis]), ...usually]).sort((one, other) => one - other);
}

function surrounding(sizes, at, what) {
  if (sizes.includes(at)) return `${whole(at)} ${what}`;
  const after = sizes.findIndex((size) => size > at);
  return `between ${whole(sizes[after - 1])} and ${whole(sizes[after])} ${what}`;
}

/**
 * The error of estimates of measured points: each is left out in turn and estimated from the others, which are
 * then further apart than in use.
 * @param {Points} all
 * @param {Column} column
 * @param {string} place
 * @returns {Object<string, Errors>} by axis
 */
export function leaveOneOut(all, column, place) {
  const here = column.points.filter((point) => point.place === place);
  const { inserts, curve, lengths } = lines(all, here);
  const others = (point) => here.filter((of) => SIZES.some(([size]) => of[size] !== point[size]));
  const found = Object.entries({ n: inserts, payload: lengths, rows: curve }).map(([axis, points]) =>
    [axis, errorsOf(points, (point) => estimate(all, { key: column.key, points: others(point) }, point))]);
  return Object.fromEntries(found);
}

/**
 * The errors of estimates of measured points.
 * @template {Point} T
 * @param {T[]} points
 * @param {(point: T) => Estimate} guess from other points
 * @returns {Errors}
 */
export function errorsOf(points, guess) {
  const missed = points.flatMap((point) => {
    const { cost, low, high } = guess(point);
    const real = work(point.parts);
    return cost ? [{ error: Math.abs(cost.instructions / real - 1), within: low <= real && real <= high }] : [];
  });
  const errors = missed.map((of) => of.error).sort((one, other) => one - other);
  return { errors, within: missed.filter((of) => of.within).length };
}

/** The error of an estimate as text; empty for measured figures. @param {Estimate} of */
export function errorText({ error, low, high }) {
  if (error === null) return "";
  return `${short(low)} to ${short(high)} instructions: wrong by ${errorSize(error)}`;
}

/** An error in words. @param {number} error as a share */
export function errorSize(error) {
  return error > 1 ? `up to a factor of ${error < 9 ? fixed(1 + error, 1) : whole(1 + error)}` : `up to ${percent(error)}`;
}

/** Returns `true` if an estimate is too inexact for a decision. @param {Estimate} of */
export function uncertain({ error }) {
  return error !== null && error > UNCERTAIN;
}

/** What is known of a figure. @param {Estimate} of */
export function kindText({ kind }) {
  return kind === "none" ? "no figure" : kind;
}

/**
 * @param {Points} all
 * @param {Point[]} here points of one column at one place
 * @returns {Lines}
 */
function lines(all, here) {
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

/** The part that grows with rows. @param {Lines} of @param {string} part @param {Sizes} at @returns {Span} */
function growing(of, part, at) {
  const { usual } = of;
  const inserted = interpolate(values(of.inserts, part, "n"), at.n, "linear");
  const usually = moved(of, part, inserted, { n: at.n, rows: usual.rows }, at);
  if (at.payload === usual.payload) return usually;
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
  const base = constant(of, part, usual.rows);
  const multiplied = base + Math.max(0, usually.y - base) * ratio.y;
  return spanning(scaled(usually.y + extra.y * per), scaled(usually.low + extra.low * per), scaled(usually.high + extra.high * per), multiplied);
}

/** The part that consists of charges for pages. @param {Lines} of @param {string} part @param {Sizes} at @returns {Span} */
function pages(of, part, at) {
  const { usual } = of;
  const length = (payload) => (payload + ROW) / (usual.payload + ROW);
  // Messages and tables of the usual rows with as many bytes.
  const like = (sizes) => ({ n: sizes.n * length(sizes.payload), rows: sizes.rows * length(sizes.payload) });
  const asked = like(at);
  const counts = values(of.inserts, part, "n");
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
  const usually = interpolate(counts, at.n, "steps");
  const ratios = of.lengths.flatMap((point) => {
    const base = curveAt(of, part, within(of, point.rows));
    return base?.y > 0 ? [{ x: point.payload, y: point.parts[part] / base.y }] : [];
  });
  const all = [...ratios, { x: of.usual.payload, y: 1 }].sort((one, other) => one.x - other.x);
  const longer = interpolate(all, at.payload, "linear");
  if (!usually || !longer || longer.y > LONGER) return found;
  const times = moved(of, part, usually, { n: at.n, rows: of.usual.rows }, at);
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
  return interpolate(values(of.curve, part, "rows"), rows, "logarithmic");
}

/** The part of a message's cost that does not grow with its rows. */
function constant(of, part, rows) {
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
  const [base, other] = [constant(of, part, from), constant(of, part, to)];
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
