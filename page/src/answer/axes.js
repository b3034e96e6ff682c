/**
 * The three sizes along which measured points lie, and what each does to a figure.
 *
 * @typedef {{of?: (part: string) => number?, how?: string, ratio?: boolean, off?: boolean,
 *   error?: {worst: number}?, refused?: string}} Axis
 *   `of` is a factor or the cost itself, part by part; `off` that the size lies between points;
 *   `refused` why there is no figure.
 */

import { times, whole } from "../format.js";
import { interpolate, leaveOneOut, range } from "./interpolate.js";

/** What lies between points of each size. @type {Object<string, import("./interpolate.js").Axes>} */
export const AXES = { n: "linear", payload: "linear", rows: "logarithmic" };

/** @param {import("./points.js").Point[]} points of one section @param {string} axis */
export function ascending(points, axis) {
  return [...points].sort((one, other) => one[axis] - other[axis]);
}

/** Points of one part over one size; nothing where a point does not have it. */
function series(points, axis, part) {
  const values = points.map((of) => ({ x: of[axis], y: of.parts[part] }));
  return values.some((of) => of.y === null) ? null : values;
}

/** The cost of so many rows a message, at the sizes of the section insert. @returns {Axis} */
export function batch(insert, { n }) {
  const work = series(insert, "n", "work");
  const found = interpolate(work, n, AXES.n);
  if (!found) return outside("rows a message", work, n);
  const off = found.from !== found.to;
  return {
    of: (part) => valueAt(series(insert, "n", part), n, "n"),
    how: off ? `between ${whole(found.from)} and ${whole(found.to)} rows a message` : `${whole(n)} rows a message`,
    ...near(work, found, "n"),
  };
}

/** What another number of rows in the table makes of it. @returns {Axis} */
export function rowsRatio(all, here, { n, rows, payload }) {
  if (rows === all.rows) return {};
  const curve = ascending(here.filter((of) => of.section === "curve"), "rows");
  const work = series(curve, "rows", "work");
  if (!work?.length) return { refused: `measured with ${whole(all.rows)} rows alone` };
  const [there, base] = [interpolate(work, rows, AXES.rows), interpolate(work, all.rows, AXES.rows)];
  if (!there) return outside("rows in the table", work, rows);
  if (!base) return outside("rows in the table", work, all.rows);
  const ratio = (part) => {
    const points = series(curve, "rows", part);
    const [one, other] = [valueAt(points, rows, "rows"), valueAt(points, all.rows, "rows")];
    if (one === null || other === null) return null;
    // Of nothing there is no ratio: it goes as the work does.
    return other === 0 ? ratio("work") : one / other;
  };
  // Those very messages were measured with fewer rows and with more.
  const direct = payload === all.payload && n === curve[0].n;
  return {
    of: ratio,
    ratio: !direct,
    how: direct ? `between ${ends(there, " and ")} rows in the table` : `× ${bare(ratio("work"))} (${ends(there)} rows)`,
    ...near(work, there, "rows"),
  };
}

/** What another length of rows makes of it. @returns {Axis} */
export function payloadRatio(all, here, { payload }) {
  if (payload === all.payload) return {};
  const work = lengthRatios(all, here, "work");
  if (!work.length) return { refused: `measured with ${whole(all.payload)} bytes alone` };
  const there = interpolate(work, payload, AXES.payload);
  if (!there) return outside("bytes a row", work, payload);
  return {
    of: (part) => valueAt(lengthRatios(all, here, part), payload, "payload"),
    ratio: true,
    how: `× ${bare(there.y)} (${ends(there)} bytes)`,
    ...near(work, there, "payload"),
  };
}

/**
 * Messages of rows of each length against messages of as many of the usual length, in a table
 * with as many rows.
 */
export function lengthRatios(all, here, part) {
  const curve = series(ascending(here.filter((of) => of.section === "curve"), "rows"), "rows", part);
  // Of nothing there is no ratio: it goes as the work does.
  const works = series(ascending(here.filter((of) => of.section === "curve"), "rows"), "rows", "work");
  const lengths = ascending(here.filter((of) => of.section === "payload"), "payload");
  const usual = lengths.find((of) => of.payload === all.payload);
  return lengths.flatMap((of) => {
    const beside = of.rows === usual?.rows ? usual.parts[part] : valueAt(curve, of.rows, "rows");
    if (of.parts[part] === null || beside === null || beside === undefined) return [];
    const [one, other] = beside === 0 ? [of.parts.work, valueAt(works, of.rows, "rows") ?? usual?.parts.work] : [of.parts[part], beside];
    return other ? [{ x: of.payload, y: one / other }] : [];
  });
}

function valueAt(points, x, axis) {
  return points?.length ? (interpolate(points, x, AXES[axis])?.y ?? null) : null;
}

/** The error at the measured points around; nothing to tell at one. */
function near(points, { from, to }, axis) {
  if (from === to) return { off: false };
  return { off: true, error: leaveOneOut(points, AXES[axis], [from, to]) };
}

function outside(what, points, x) {
  const [low, high] = range(points);
  return { refused: `${whole(x)} ${what} is outside of what was measured: ${whole(low)} to ${whole(high)}` };
}

function ends({ from, to }, between = " to ") {
  return from === to ? whole(from) : `${whole(from)}${between}${whole(to)}`;
}

function bare(ratio) {
  return times(ratio).replace("×", "");
}
