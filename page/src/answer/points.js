/**
 * The measured points of new rows, from the sections insert, curve and payload of the users suite.
 *
 * The cost of a message has four parts that add up to its cycles:
 *
 *     work     the instructions of the work
 *     heap     the charge for changed heap pages
 *     around   the instructions around the work: this canister's own checks
 *     fee      the cycles beyond the charge: submitting the message
 *
 * @typedef {{work: number, heap: number?, around: number?, fee: number?}} Parts
 * @typedef {{n: number, rows: number, payload: number, place: string, parts: Parts, section: string}} Point
 * @typedef {{key: string, points: Point[]}} Column
 * @typedef {{rows: number, payload: number, places: string[], columns: Column[], limit: number?,
 *   ratioN: number}} Points `ratioN` is the largest number of new rows of the messages used for ratios
 */

import { measured, unique } from "../data.js";
import * as names from "../names.js";

/** @param {import("../data.js").Report} report @returns {Points?} `null` if no rows were inserted */
export function points(report) {
  if (report.results.suite !== "users") return null;
  const first = report.results.cases.find((of) => of.section === "insert" && names.insert(of.name));
  if (!first) return null;
  const { rows, payload } = first;
  const columns = new Map();
  const places = [];
  let limit = null;
  for (const of of report.results.cases) {
    const found = measured(of);
    limit ??= found?.capacity && Number(found.capacity.limit);
    const point = found && read(of, found);
    if (!point) continue;
    if (point.section === "insert") {
      if (of.rows !== rows || of.payload !== payload) continue;
      places.push(point.place);
    }
    if (!columns.has(of.column)) columns.set(of.column, { key: of.column, points: [] });
    columns.get(of.column).points.push(point);
  }
  const kept = [...columns.values()].filter((column) => column.points.some((of) => of.section === "insert"));
  const others = kept.flatMap((column) => column.points.filter((of) => of.section !== "insert").map((of) => of.n));
  return { rows, payload, places: unique(places), columns: kept, limit, ratioN: Math.max(...others, 0) };
}

function read(of, found) {
  const sizes = size(of);
  return sizes && { ...sizes, section: of.section, parts: parts(found) };
}

function size({ section, name, rows, payload }) {
  if (section === "insert") {
    const named = names.insert(name);
    return named && { ...named, rows, payload };
  }
  const named = section === "curve" ? names.curve(name) : section === "payload" ? names.payload(name) : null;
  const place = named && names.place(named.work);
  return place && { place, n: named.n, rows, payload };
}

/** @returns {Parts} */
function parts(found) {
  const work = Number(found.instructions);
  const cost = found.detail?.cost;
  const cycles = cost ? Number(cost.cycles) : null;
  if (!cost?.inside) return { work, heap: null, around: null, fee: cycles === null ? null : cycles - work };
  const charge = Number(cost.inside.charge);
  const counted = Number(cost.inside.instructions);
  return { work, heap: charge - counted, around: counted - work, fee: cycles - charge };
}

/**
 * Sums of the parts: `charge` and `cycles` of the work, and `message` of the whole message.
 * @param {Parts} of
 */
export function sum(of) {
  const charge = of.heap === null ? null : of.work + of.heap;
  const message = charge === null || of.around === null ? null : charge + of.around;
  const cycles = (charged) => (of.fee === null ? null : (charged ?? of.work) + of.fee);
  return {
    instructions: of.work,
    charge,
    cycles: cycles(charge),
    message: { charge: message, cycles: cycles(message) },
  };
}

/** The sizes for which there are figures. @param {Points} all @returns {{n: [number, number], payload: [number, number], rows: [number, number]}} */
export function rangesOf(all) {
  const values = (section, axis) => all.columns.flatMap((column) => column.points.filter((of) => of.section === section).map((of) => of[axis]));
  const ends = (list) => [Math.min(...list), Math.max(...list)];
  const rows = [...values("curve", "rows"), all.rows];
  // Lengths are compared with rows of the usual length in a table of the same size.
  const payload = values("curve", "rows").length ? [...values("payload", "payload"), all.payload] : [all.payload];
  return { n: ends(values("insert", "n")), payload: ends(payload), rows: ends(rows) };
}

/** The initial number of rows per message: 100, or else the median of those measured. */
export function usual([low, high], all) {
  const measured = unique(all.columns.flatMap((column) => column.points.filter((of) => of.section === "insert").map((of) => of.n)));
  return measured.includes(100) ? 100 : measured.sort((one, other) => one - other)[measured.length >> 1] ?? Math.round((low + high) / 2);
}
