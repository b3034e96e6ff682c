/**
 * What a message of new rows costs at sizes that may not have been measured.
 *
 *     cost(n, payload, rows) = insert(n) × payload ratio × rows ratio
 *
 * `insert` are the points at the sizes of the section insert. The ratios are of messages with
 * equally many new rows: of the section curve, rows against the rows of insert; of the section
 * payload against curve at the rows of the same store, because stores of long rows hold fewer.
 *
 * @typedef {"measured"|"interpolated"|"scaled"|"none"} Kind
 * @typedef {{kind: Kind, cost: {instructions: number, charge: number?, cycles: number?}?,
 *   how: string[], error: {worst: number, typical: number}?, unknown: boolean}} Estimate
 */

import { percent, times, whole } from "../format.js";
import { interpolate, leaveOneOut, range } from "./interpolate.js";
import { sum } from "./points.js";

const PARTS = ["work", "rest", "fee"];

/**
 * @param {import("./points.js").Points} all
 * @param {import("./points.js").Column} column
 * @param {{n: number, payload: number, rows: number, place: string}} at
 * @returns {Estimate}
 */
export function estimate(all, column, at) {
  const here = column.points.filter((point) => point.place === at.place);
  const exact = here.find((of) => of.n === at.n && of.payload === at.payload && of.rows === at.rows);
  if (exact) return found("measured", exact.parts, [`section ${exact.section}`], []);

  const insert = ascending(here.filter((of) => of.section === "insert"), "n");
  if (insert.length === 0) return none([`not measured at this place`]);
  const axes = [alongBatch(insert, at), alongPayload(all, here, at), alongRows(all, here, at)];
  const refused = axes.filter((axis) => axis.refused);
  if (refused.length) return none(refused.map((axis) => axis.refused));

  const [batch, ...ratios] = axes;
  const parts = Object.fromEntries(
    PARTS.map((part) => {
      const values = [batch, ...ratios].map((axis) => (axis.of ? axis.of(part) : 1));
      return [part, values.includes(null) ? null : values.reduce((one, other) => one * other, 1)];
    }),
  );
  const scaled = ratios.some((axis) => axis.of && !axis.direct);
  const used = axes.filter((axis) => axis.how);
  return found(
    scaled ? "scaled" : "interpolated",
    parts,
    used.map((axis) => axis.how),
    used.filter((axis) => axis.between).map((axis) => axis.error),
  );
}

function found(kind, parts, how, errors) {
  const known = errors.filter(Boolean);
  const joined = (name) => known.reduce((product, error) => product * (1 + error[name]), 1) - 1;
  return {
    kind,
    cost: sum(parts),
    how,
    error: known.length ? { worst: joined("worst"), typical: joined("typical") } : null,
    unknown: known.length < errors.length,
  };
}

function none(how) {
  return { kind: "none", cost: null, how, error: null, unknown: false };
}

function ascending(points, axis) {
  return [...points].sort((one, other) => one[axis] - other[axis]);
}

/** Points of one part over one axis; nothing where a point does not have it. */
function series(points, axis, part) {
  const values = points.map((of) => ({ x: of[axis], y: of.parts[part] }));
  return values.some((of) => of.y === null) ? null : values;
}

function alongBatch(insert, { n }) {
  const work = series(insert, "n", "work");
  const found = interpolate(work, n);
  if (!found) return outside("rows a message", work, n);
  return {
    of: (part) => valueAt(series(insert, "n", part), n),
    how: found.from === found.to ? null : `between ${whole(found.from)} and ${whole(found.to)} rows a message`,
    between: found.from !== found.to,
    error: leaveOneOut(work),
  };
}

function alongRows(all, here, { n, rows, payload }) {
  if (rows === all.rows) return {};
  const curve = ascending(here.filter((of) => of.section === "curve"), "rows");
  const work = series(curve, "rows", "work");
  if (!work?.length) return { refused: `measured with ${whole(all.rows)} rows alone` };
  const [there, base] = [interpolate(work, rows), interpolate(work, all.rows)];
  if (!there) return outside("rows in the table", work, rows);
  if (!base) return outside("rows in the table", work, all.rows);
  const ratio = (part) => quotient(series(curve, "rows", part), rows, all.rows);
  const ends = there.from === there.to ? whole(rows) : `${whole(there.from)} to ${whole(there.to)}`;
  // Those very messages were measured with fewer rows and with more.
  const direct = payload === all.payload && n === curve[0].n;
  return {
    of: ratio,
    direct,
    how: direct
      ? `between ${whole(there.from)} and ${whole(there.to)} rows in the table`
      : `× ${bare(ratio("work"))}: ${ends} rows against ${whole(all.rows)}, ${whole(curve[0].n)} a message`,
    between: there.from !== there.to,
    error: leaveOneOut(work),
  };
}

function alongPayload(all, here, { payload }) {
  if (payload === all.payload) return {};
  const curve = ascending(here.filter((of) => of.section === "curve"), "rows");
  const lengths = ascending(here.filter((of) => of.section === "payload"), "payload");
  if (!lengths.length) return { refused: `measured with ${whole(all.payload)} bytes alone` };
  const base = lengths.find((of) => of.payload === all.payload);
  const sameRows = lengths.every((of) => of.rows === all.rows);
  const ratios = (part) => {
    const points = lengths.map((of) => {
      const beside = sameRows ? base?.parts[part] : valueAt(series(curve, "rows", part), of.rows);
      return { x: of.payload, y: of.parts[part] === null || !beside ? null : of.parts[part] / beside };
    });
    return points.filter((of) => of.y !== null);
  };
  const work = ratios("work");
  if (!work.length) return { refused: "no rows of other lengths to compare with: that takes the section curve" };
  const there = interpolate(work, payload);
  if (!there) return outside("bytes a row", work, payload);
  const ends = there.from === there.to ? whole(payload) : `${whole(there.from)} to ${whole(there.to)}`;
  return {
    of: (part) => valueAt(ratios(part), payload),
    how: `× ${bare(there.y)}: ${ends} bytes against ${whole(all.payload)}, ${whole(lengths[0].n)} a message`,
    between: there.from !== there.to,
    error: leaveOneOut(work),
  };
}

function valueAt(points, x) {
  return points?.length ? (interpolate(points, x)?.y ?? null) : null;
}

function quotient(points, x, base) {
  const [one, other] = [valueAt(points, x), valueAt(points, base)];
  return one === null || !other ? null : one / other;
}

function outside(what, points, x) {
  const [low, high] = range(points);
  return { refused: `${whole(x)} ${what} is outside of what was measured: ${whole(low)} to ${whole(high)}` };
}

function bare(ratio) {
  return times(ratio).replace("×", "");
}

/** An estimate's error in words; empty for what was measured. @param {Estimate} of */
export function errorText(of) {
  if (of.kind === "measured" || of.kind === "none") return "";
  if (of.error) {
    const text = `error ≤ ${percent(of.error.worst)}, typically ${percent(of.error.typical)}`;
    return of.unknown ? `${text}, and more that is not known` : text;
  }
  return of.unknown ? "error not known: fewer than three points" : "";
}
