/**
 * The cost of a message with new rows at sizes that may not have been measured. Compute and pages are estimated
 * apart: `parts.js` describes the assumptions, `docs/report.md` the errors.
 *
 * @typedef {"measured"|"interpolated"|"estimated"|"none"} Kind
 * @typedef {{kind: Kind, cost: ReturnType<typeof sum>?, low: number, high: number, how: string, error: number?}} Estimate
 *   `low` and `high` limit the instructions; `error` is the larger factor between them and the estimate, minus 1;
 *   `null` if measured
 */

import { span } from "./interpolate.js";
import { growing, lines, pages } from "./parts.js";
import { sum, work } from "./points.js";
import { fixed, percent, short, whole } from "../format.js";
import { unique } from "../data.js";

/** An estimate with a larger error answers nothing: the page asks to measure. */
export const UNCERTAIN = 0.25;
/** The smallest range of an estimate. */
const LEAST = 0.05;

/** The parts of a cost, and their models. */
const MODELS = { compute: growing, touched: pages, stable: pages, heap: pages, around: growing, fee: growing };
const WORK = ["compute", "touched", "stable"];
const SIZES = [
  ["n", "rows per message"],
  ["payload", "bytes per row"],
  ["rows", "rows in the table"],
];

/**
 * @param {import("./points.js").Points} all
 * @param {import("./points.js").Column} column
 * @param {{n: number, payload: number, rows: number, place: string}} at
 * @returns {Estimate}
 */
export function estimate(all, column, at) {
  const here = column.points.filter((point) => point.place === at.place);
  const exact = here.find((of) => SIZES.every(([axis]) => of[axis] === at[axis]));
  if (exact) {
    const cost = sum(exact.parts);
    return { kind: "measured", cost, low: cost.instructions, high: cost.instructions, how: "", error: null };
  }
  const found = partsAt(all, here, at);
  if (found.refused) return none(found.refused);
  const { spans, of } = found;
  const off = SIZES.filter(([axis]) => at[axis] !== of.usual[axis] || (axis === "n" && at.n !== of.usual.n));
  return {
    ...ranged(spans),
    kind: kind(of, at),
    how: off.map(([axis, what]) => surrounding(sizesAlong(of, axis), at[axis], what)).join(", "),
  };
}

/**
 * The parts of a cost, with their ranges.
 * @param {import("./points.js").Points} all
 * @param {import("./points.js").Point[]} here points of one column at one place
 * @param {{n: number, payload: number, rows: number}} at
 * @returns {{refused: string}|{refused: null, of: import("./parts.js").Lines, spans: Object<string, import("./interpolate.js").Span?>}}
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

/** The cost of parts, its range and its error. @param {Object<string, import("./interpolate.js").Span?>} spans @returns {Omit<Estimate, "kind"|"how">} */
export function ranged(spans) {
  const cost = sum(Object.fromEntries(Object.entries(spans).map(([part, found]) => [part, found?.y ?? null])));
  const worked = WORK.map((part) => spans[part] ?? span(0));
  const low = Math.min(total(worked, "low"), cost.instructions * (1 - LEAST));
  const high = Math.max(total(worked, "high"), cost.instructions * (1 + LEAST));
  return { cost, low, high, error: Math.max(high / cost.instructions, low > 0 ? cost.instructions / low : Infinity) - 1 };
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

/** The measured sizes along one axis. @param {import("./parts.js").Lines} of @param {string} axis */
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
 * @param {import("./points.js").Points} all
 * @param {import("./points.js").Column} column
 * @param {string} place
 * @returns {Object<string, {errors: number[], within: number}>} by axis: shares of the measured values in
 *   ascending order, and the number of values within the stated range
 */
export function leaveOneOut(all, column, place) {
  const here = column.points.filter((point) => point.place === place);
  const { inserts, curve, lengths } = lines(all, here);
  const found = Object.entries({ n: inserts, payload: lengths, rows: curve }).map(([axis, points]) => {
    const missed = points.flatMap((point) => {
      const others = here.filter((of) => SIZES.some(([size]) => of[size] !== point[size]));
      const guess = estimate(all, { key: column.key, points: others }, point);
      const real = work(point.parts);
      return guess.cost ? [{ error: Math.abs(guess.cost.instructions / real - 1), within: guess.low <= real && real <= guess.high }] : [];
    });
    const errors = missed.map((of) => of.error).sort((one, other) => one - other);
    return [axis, { errors, within: missed.filter((of) => of.within).length }];
  });
  return Object.fromEntries(found);
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
