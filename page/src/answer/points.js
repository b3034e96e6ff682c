/**
 * The measured points of new rows, from the sections insert, curve and payload of the users suite.
 *
 * A message's cost is kept in four parts that add up to its cycles:
 *
 *     work     the instructions of the work
 *     heap     what heap pages that changed are charged
 *     around   the instructions around the work: this canister's own checks
 *     fee      the cycles beyond the charge: taking the message in
 *
 * @typedef {{work: number, heap: number?, around: number?, fee: number?}} Parts
 * @typedef {{n: number, rows: number, payload: number, place: string, parts: Parts, section: string}} Point
 * @typedef {{key: string, points: Point[]}} Column
 * @typedef {{rows: number, payload: number, places: string[], columns: Column[], limit: number?,
 *   ratioN: number}} Points ratioN is the most new rows of a message that ratios are made of
 */

import { measured, unique } from "../data.js";
import * as names from "../names.js";

/** @param {import("../data.js").Report} report @returns {Points?} nothing where no rows were inserted */
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
 * What parts add up to: `charge` and `cycles` of the work, `message` of the whole message.
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
