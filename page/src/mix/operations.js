/**
 * What messages of one kind of operation cost, as the suite users measured them. A mix is put together from these.
 *
 * @typedef {"insert"|"read"|"update"|"delete"|"scan"} Operation `scan` reads a range of 100 rows
 * @typedef {{operation: Operation, place: string, n: number, rows: number, payload: number,
 *   parts: import("../answer/points.js").Parts}} Measured
 * @typedef {{key: string, measured: Measured[], inserts: import("../answer/points.js").Column,
 *   capacity: {touched: number, stable: number}}} Engine
 *   `capacity` is the charge if every page of the usual table, and every page of the heap that messages touch, were written
 * @typedef {{rows: number, payload: number, page: number, places: string[], limit: number?,
 *   inserts: import("../answer/points.js").Points, engines: Engine[]}} Measurements `rows` and `payload` are the
 *   usual sizes, `page` the charge for a written page, 0 if pages have no such charge
 */

import { parts, points } from "../answer/points.js";
import { measured } from "../data.js";
import * as names from "../names.js";

/** The operations of a message, in the order of their options. @type {Operation[]} */
export const OPERATIONS = ["insert", "read", "update", "delete", "scan"];

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
