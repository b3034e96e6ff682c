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
 * The share of one kind of operation is needed at sizes that may not have been measured. At random places, the number of
 * operations varies in the usual table; other tables and rows of other lengths were measured with one number of
 * operations. Their ratio to the usual table is applied to the share:
 *
 *     share(n, rows, length) = share(n) × table(rows × length) × length
 *
 * `table` is that of reads or of insertions, `length` that of reads or of updates, which are the operations that were
 * measured so. Between two measured numbers of operations, a part grows as it does for insertions, which were
 * measured with more numbers. In the middle and at the end, operations work on the same few pages.
 *
 * @typedef {import("./inserts.js").Estimate} Estimate
 * @typedef {import("./inserts.js").Span} Span
 * @typedef {{insert: number, read: number, update: number, delete: number, scan: number, indexes: number,
 *   rows: number, payload: number, place: string}} Mix
 * @typedef {{n: number, rows: number, payload: number, place: string}} At
 * @typedef {{spans: Object<string, Span?>, fixed: Object<string, number>}} Share the cost of the operations of one kind
 */

import {
  NOTHING, OPERATIONS, PARTS, ROW, ascending, errorsOf, estimate, interpolate, known, none, outside, partsAt, ranged, span, spanning, values,
} from "./inserts.js";

const PAGES = ["touched", "stable", "heap"];
/** What a message pays once. */
const ONCE = ["around", "fee"];
/** Operations at a place touch at most this many times more pages if rows are longer. */
const LONGER = 4;
/** The number of operations from which the fixed share is extrapolated. */
const FEW = 10;

/** The operation of which other tables were measured, and that of rows of other lengths. */
const TABLES = { insert: "insert", read: "read", update: "insert", delete: "insert", scan: "read" };
const LENGTHS = { insert: "update", read: "read", update: "update", delete: "update", scan: "read" };
const NAMES = { insert: "insertions", read: "reads", update: "updates", delete: "deletions", scan: "scans" };
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
 * @param {import("./inserts.js").Measurements} all
 * @param {import("./inserts.js").Engine} engine
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
 * @param {import("./inserts.js").Measurements} all
 * @param {import("./inserts.js").Engine} engine
 * @returns {Object<string, import("./inserts.js").Errors>} by operation
 */
export function leaveOneOut(all, engine) {
  const others = (point) => ({ ...engine, measured: engine.measured.filter((of) => !same(of, point)) });
  const found = OPERATIONS.filter((operation) => operation !== "insert").map((operation) => {
    const points = engine.measured.filter((of) => of.operation === operation);
    const different = points.filter((of, at) => points.findIndex((other) => same(of, other)) === at);
    const mix = ({ n, rows, payload, place }) => ({ ...NOTHING, [operation]: n, rows, payload, place });
    return [operation, errorsOf(different, (point) => estimateMix(all, others(point), mix(point)))];
  });
  return Object.fromEntries(found);
}

/** Returns `true` for the same message, which several sections may have measured; a single operation is the same everywhere. */
function same(one, other) {
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
  return exact ? known(exact.parts) : null;
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
    const mean = hull(values(inserts, part, "n"), n);
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

/** The share of each part that does not grow with the operations. @param {Array<{n: number, parts: any}>} line ascending */
function fixed(line) {
  return Object.fromEntries(PARTS.map((part) => [part, intercept(line.map((of) => ({ x: of.n, y: of.parts[part] ?? 0 })))]));
}

function intercept(points) {
  const [one, two] = points;
  if (!two) return one.y;
  return Math.min(one.y, Math.max(0, one.y - ((two.y - one.y) / (two.x - one.x)) * one.x));
}

/**
 * @param {import("./inserts.js").Measurements} all
 * @param {import("./inserts.js").Engine} engine
 * @param {string} operation
 * @param {At} at at random places
 * @returns {Share|{refused: string}}
 */
function scattered(all, engine, operation, at) {
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
    const count = (n) => guided(values(own, part, "n"), values(guide, part, "n"), n, part);
    const few = [own[0].n, FEW].map((n) => ({ x: n, y: count(n)?.y })).filter(({ y }) => y !== undefined);
    base[part] = intercept(few.length > 1 ? few : values(own, part, "n"));
    spans[part] = ONCE.includes(part) ? count(at.n) : scaled(count(at.n), base[part], factor(all, engine, operation, part, at));
  }
  return { spans, fixed: base };
}

/** Operations in the middle or at the end. The parameters are those of `scattered`. */
function near(all, engine, operation, at) {
  // A single operation costs the same everywhere.
  const own = lineOf(all, engine, operation, (point) => point.place === "middle" || (point.place === "random" && point.n === 1));
  const refused = refusal(all, engine, operation, at, own);
  if (refused) return { refused };
  const base = fixed(own);
  const spans = Object.fromEntries(PARTS.map((part) => {
    if (own.some((of) => of.parts[part] === null)) return [part, null];
    const found = interpolate(values(own, part, "n"), at.n, PAGES.includes(part) ? "steps" : "linear");
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
