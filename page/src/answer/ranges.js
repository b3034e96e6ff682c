/** Between which sizes figures are known, and where the reader's sizes begin. */

import { unique } from "../data.js";

/** @param {import("./points.js").Points} all @returns {{n: [number, number], payload: [number, number], rows: [number, number]}} */
export function rangesOf(all) {
  const values = (section, axis) => all.columns.flatMap((column) => column.points.filter((of) => of.section === section).map((of) => of[axis]));
  const ends = (list) => [Math.min(...list), Math.max(...list)];
  const rows = [...values("curve", "rows"), all.rows];
  // Lengths are compared with rows of the usual length in a store as large.
  const payload = values("curve", "rows").length ? [...values("payload", "payload"), all.payload] : [all.payload];
  return { n: ends(values("insert", "n")), payload: ends(payload), rows: ends(rows) };
}

/** A measured number of rows a message that is neither one nor the most. */
export function usual([low, high], all) {
  const measured = unique(all.columns.flatMap((column) => column.points.filter((of) => of.section === "insert").map((of) => of.n)));
  return measured.includes(100) ? 100 : measured.sort((one, other) => one - other)[measured.length >> 1] ?? Math.round((low + high) / 2);
}
