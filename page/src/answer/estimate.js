/**
 * What a message of new rows costs at sizes that may not have been measured.
 *
 *     cost(n, payload, rows) = insert(n) × payload ratio × rows ratio
 *
 * `insert` are the points at the sizes of the section insert. The ratios are of messages with
 * equally many new rows, see `axes.js`. Each part of a cost is made by itself.
 *
 * @typedef {"measured"|"interpolated"|"scaled"|"none"} Kind
 * @typedef {{kind: Kind, cost: ReturnType<typeof sum>?,
 *   how: string, error: number?, unknown: boolean}} Estimate
 *   `error` is of the instructions, as a share; `unknown` that a step's error is not known.
 */

import { percent } from "../format.js";
import { ascending, batch, payloadRatio, rowsRatio } from "./axes.js";
import { sum } from "./points.js";

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
  const told = axes.filter((axis) => axis.how && (scaled || axis.off));
  const errors = axes.filter((axis) => axis.off).map((axis) => axis.error?.worst);
  const known = errors.filter((error) => error !== undefined);
  return {
    kind: scaled ? "scaled" : "interpolated",
    cost: sum(Object.fromEntries(PARTS.map((part) => [part, product(part)]))),
    how: told.map((axis) => axis.how).join(" "),
    error: known.length ? known.reduce((one, other) => one * (1 + other), 1) - 1 : null,
    unknown: known.length < errors.length,
  };
}

function none(how) {
  return { kind: "none", cost: null, how, error: null, unknown: false };
}

/** An estimate's error in words; empty for what was measured. @param {Estimate} of */
export function errorText(of) {
  if (of.error !== null) return `points around are missed by up to ${percent(of.error)}${of.unknown ? ", others are not known" : ""}`;
  return of.unknown ? "error not known" : "";
}
