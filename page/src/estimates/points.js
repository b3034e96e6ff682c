/**
 * The measured points: messages of the suite users that insert rows into a warm table, and those with operations of one
 * other kind. All estimates are made from these.
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
 */

import { measured, unique, workParts } from "../data.js";
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
export function work(of) {
  return of.compute + (of.touched ?? 0) + (of.stable ?? 0);
}

/**
 * Sums of the parts: `charge` and `cycles` of the work, and `message` of the whole message.
 * @param {Parts} of
 */
export function sum(of) {
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
