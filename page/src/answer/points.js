/**
 * The measured points of new rows: every message of the suite users that inserts rows into a warm table.
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
 */

import { measured, unique, workParts } from "../data.js";
import * as names from "../names.js";

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
