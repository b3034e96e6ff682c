/**
 * The cost of a message with new rows at sizes that may not have been measured.
 *
 *     cost(n, payload, rows) = insert(n) × payload ratio × rows ratio
 *
 * `insert` are the points at the sizes of the section insert. The ratios compare messages with the same
 * number of new rows. Each part of a cost is computed separately.
 *
 * @typedef {"measured"|"interpolated"|"scaled"|"none"} Kind
 * @typedef {{kind: Kind, cost: ReturnType<typeof sum>?,
 *   how: string, error: number?, unknown: boolean}} Estimate
 *   `error` is a share of the instructions; `unknown` is true if the error of a step is unknown.
 */
/**
 * One of the three sizes along which measured points lie, and its effect on a figure.
 *
 * @typedef {{of?: (part: string) => number?, how?: string, ratio?: boolean, off?: boolean,
 *   error?: {worst: number}?, refused?: string}} Axis
 *   `of` returns a factor, or the cost itself, of a part; `off` is true if the size lies between points;
 *   `refused` is the reason why there is no figure.
 */

import { interpolate, leaveOneOut, range } from "./interpolate.js";
import { sum } from "./points.js";
import { percent, times, whole } from "../format.js";

const PARTS = ["work", "heap", "around", "fee"];

/**
 * @param {import("./points.js").Points} all
 * @param {import("./points.js").Column} column
 * @param {{n: number, payload: number, rows: number, place: string}} at
 * @returns {Estimate}
 */
export function estimate(all, column, at) {
  const here = column.points.filter((point) => point.place === at.place);
  const exact = here.find((of) => of.n === at.n && of.payload === at.payload && of.rows === at.rows);
  if (exact) return { kind: "measured", cost: sum(exact.parts), how: "", error: null, unknown: false };

  const insert = ascending(here.filter((of) => of.section === "insert"), "n");
  if (insert.length === 0) return none("not measured at this place");
  const axes = [batch(insert, at), payloadRatio(all, here, at), rowsRatio(all, here, at)];
  const refused = axes.flatMap((axis) => axis.refused ?? []);
  if (refused.length) return none(refused.join("; "));

  const factors = axes.filter((axis) => axis.of);
  const product = (part) => {
    const values = factors.map((axis) => axis.of(part));
    return values.includes(null) ? null : values.reduce((one, other) => one * other, 1);
  };
  const scaled = axes.some((axis) => axis.ratio);
  const shown = axes.filter((axis) => axis.how && (scaled || axis.off));
  const errors = axes.filter((axis) => axis.off).map((axis) => axis.error?.worst);
  const known = errors.filter((error) => error !== undefined);
  return {
    kind: scaled ? "scaled" : "interpolated",
    cost: sum(Object.fromEntries(PARTS.map((part) => [part, product(part)]))),
    how: shown.map((axis) => axis.how).join(" "),
    error: known.length ? known.reduce((one, other) => one * (1 + other), 1) - 1 : null,
    unknown: known.length < errors.length,
  };
}

function none(how) {
  return { kind: "none", cost: null, how, error: null, unknown: false };
}

/** The error of an estimate as text; empty for measured figures. @param {Estimate} of */
export function errorText(of) {
  if (of.error !== null) return `surrounding points are missed by up to ${percent(of.error)}${of.unknown ? ", other errors are unknown" : ""}`;
  return of.unknown ? "error not known" : "";
}

/** The axes on which each size is interpolated. @type {Object<string, import("./interpolate.js").Axes>} */
export const AXES = { n: "linear", payload: "linear", rows: "logarithmic" };

/** @param {import("./points.js").Point[]} points of one section @param {string} axis */
export function ascending(points, axis) {
  return [...points].sort((one, other) => one[axis] - other[axis]);
}

/** Points of one part over one size; `null` if a point lacks the part. */
function series(points, axis, part) {
  const values = points.map((of) => ({ x: of[axis], y: of.parts[part] }));
  return values.some((of) => of.y === null) ? null : values;
}

/** The cost by rows per message, at the sizes of the section insert. @returns {Axis} */
export function batch(insert, { n }) {
  const work = series(insert, "n", "work");
  const found = interpolate(work, n, AXES.n);
  if (!found) return outside("rows per message", work, n);
  const off = found.from !== found.to;
  return {
    of: (part) => valueAt(series(insert, "n", part), n, "n"),
    how: off ? `between ${whole(found.from)} and ${whole(found.to)} rows per message` : `${whole(n)} rows per message`,
    ...near(work, found, "n"),
  };
}

/** The ratio for another number of rows in the table. @returns {Axis} */
export function rowsRatio(all, here, { n, rows, payload }) {
  if (rows === all.rows) return {};
  const curve = ascending(here.filter((of) => of.section === "curve"), "rows");
  const work = series(curve, "rows", "work");
  if (!work?.length) return { refused: `measured with ${whole(all.rows)} rows only` };
  const [there, base] = [interpolate(work, rows, AXES.rows), interpolate(work, all.rows, AXES.rows)];
  if (!there) return outside("rows in the table", work, rows);
  if (!base) return outside("rows in the table", work, all.rows);
  const ratio = (part) => {
    const points = series(curve, "rows", part);
    const [one, other] = [valueAt(points, rows, "rows"), valueAt(points, all.rows, "rows")];
    if (one === null || other === null) return null;
    // Zero has no ratio: use that of the work.
    return other === 0 ? ratio("work") : one / other;
  };
  // The same messages were measured with fewer and with more rows.
  const direct = payload === all.payload && n === curve[0].n;
  return {
    of: ratio,
    ratio: !direct,
    how: direct ? `between ${ends(there, " and ")} rows in the table` : `× ${bare(ratio("work"))} (${ends(there)} rows)`,
    ...near(work, there, "rows"),
  };
}

/** The ratio for another length of rows. @returns {Axis} */
export function payloadRatio(all, here, { payload }) {
  if (payload === all.payload) return {};
  const work = lengthRatios(all, here, "work");
  if (!work.length) return { refused: `measured with ${whole(all.payload)} bytes only` };
  const there = interpolate(work, payload, AXES.payload);
  if (!there) return outside("bytes per row", work, payload);
  return {
    of: (part) => valueAt(lengthRatios(all, here, part), payload, "payload"),
    ratio: true,
    how: `× ${bare(there.y)} (${ends(there)} bytes)`,
    ...near(work, there, "payload"),
  };
}

/**
 * Costs of messages with rows of each length, divided by the cost of the same number of rows of the usual
 * length in a table with the same number of rows.
 */
export function lengthRatios(all, here, part) {
  const curve = series(ascending(here.filter((of) => of.section === "curve"), "rows"), "rows", part);
  // Zero has no ratio: use that of the work.
  const works = series(ascending(here.filter((of) => of.section === "curve"), "rows"), "rows", "work");
  const lengths = ascending(here.filter((of) => of.section === "payload"), "payload");
  const usual = lengths.find((of) => of.payload === all.payload);
  return lengths.flatMap((of) => {
    const base = of.rows === usual?.rows ? usual.parts[part] : valueAt(curve, of.rows, "rows");
    if (of.parts[part] === null || base === null || base === undefined) return [];
    const [one, other] = base === 0 ? [of.parts.work, valueAt(works, of.rows, "rows") ?? usual?.parts.work] : [of.parts[part], base];
    return other ? [{ x: of.payload, y: one / other }] : [];
  });
}

function valueAt(points, x, axis) {
  return points?.length ? (interpolate(points, x, AXES[axis])?.y ?? null) : null;
}

/** The error at the surrounding measured points; none at a measured point. */
function near(points, { from, to }, axis) {
  if (from === to) return { off: false };
  return { off: true, error: leaveOneOut(points, AXES[axis], [from, to]) };
}

function outside(what, points, x) {
  const [low, high] = range(points);
  return { refused: `${whole(x)} ${what} is outside of the measured range: ${whole(low)} to ${whole(high)}` };
}

function ends({ from, to }, between = " to ") {
  return from === to ? whole(from) : `${whole(from)}${between}${whole(to)}`;
}

function bare(ratio) {
  return times(ratio).replace("×", "");
}
