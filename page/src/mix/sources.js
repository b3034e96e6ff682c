/**
 * What answers a question: a file of the suite mix, if it measured exactly this mix, or else a file of the suite users,
 * from which it is estimated.
 *
 * @typedef {{key: string}} Column
 * @typedef {{report: import("../data.js").Report, columns: Column[], limit: number?, first: Object,
 *   mix: import("./estimate.js").Mix?, rows: [number, number],
 *   cost: (column: Column, asked: import("./estimate.js").Mix) => import("../answer/estimate.js").Estimate}} Source
 *   `first` is the mix that it shows first, `mix` the measured one, `rows` the measured tables
 */

import { none } from "../answer/estimate.js";
import { parts, rangesOf, sum, usual } from "../answer/points.js";
import { sameMix } from "../asked.js";
import { measured, unique } from "../data.js";
import * as names from "../names.js";
import { estimateMix } from "./estimate.js";
import { OPERATIONS, measurements } from "./operations.js";

const NOTHING = { insert: 0, read: 0, update: 0, delete: 0, scan: 0, indexes: 0 };

/** @param {import("../data.js").Report[]} reports @returns {Source[]} in the order of the files */
export function sources(reports) {
  return reports.flatMap((report) => (report.results.suite === "mix" ? measuredMixes(report) : estimated(report)));
}

/** @param {Source[]} all @param {import("../asked.js").Asked} asked @returns {Source} */
export function sourceOf(all, asked) {
  const general = all.filter((source) => !source.mix);
  return all.find((source) => source.mix && sameMix(source.mix, asked)) ?? general.find((source) => source.report.id === asked.from) ?? general[0] ?? all[0];
}

function estimated(report) {
  const all = measurements(report);
  if (!all) return [];
  const ranges = rangesOf(all.inserts);
  return [{
    report, columns: all.engines, limit: all.limit, mix: null, rows: ranges.rows, measurements: all,
    first: { ...NOTHING, insert: usual(ranges.n, all.inserts), rows: all.rows, payload: all.payload, place: all.places[0] },
    cost: (engine, asked) => estimateMix(all, engine, asked),
  }];
}

/** The mixes that a file has measured; each is a source of its own. */
function measuredMixes(report) {
  const cases = report.results.cases.filter((of) => measured(of) && names.mix(of.name));
  const key = (of) => JSON.stringify([of.name, of.rows, of.payload]);
  return unique(cases.map(key)).map((one) => {
    const own = cases.filter((of) => key(of) === one);
    const [{ name, rows, payload }] = own;
    const mix = { ...NOTHING, ...names.mix(name), rows, payload, indexes: indexes(report, own[0]) };
    const found = new Map(own.map((of) => [of.configuration, of]));
    return {
      report, columns: unique(own.map((of) => of.configuration)).map((configuration) => ({ key: configuration })), limit: null, mix, rows: [rows, rows], first: mix,
      cost: (column, asked) => (sameMix(mix, asked) ? mean(found.get(column.key)) : none(differences(mix, asked))),
    };
  });
}

/** The number of secondary indexes, of which a fixture has its name: `2 indexes`. */
function indexes(report, { configuration, rows, payload }) {
  const fixture = report.results.fixtures.find((of) => of.configuration === configuration && of.rows === rows && of.payload === payload);
  return Number(/^(\d+) index(?:es)?$/.exec(fixture?.name ?? "")?.[1] ?? 0);
}

/** The mean of measured messages. @param {import("../data.js").Case} of @returns {import("../answer/estimate.js").Estimate} */
function mean(of) {
  const found = measured(of);
  const messages = Math.max(1, Number(found.operations));
  const each = Object.fromEntries(Object.entries(parts(of, found)).map(([part, value]) => [part, value === null ? null : value / messages]));
  const cost = sum(each);
  return { kind: "measured", cost, low: cost.instructions, high: cost.instructions, how: "", error: null };
}

function differences(mix, asked) {
  const other = [...OPERATIONS, "indexes", "rows", "payload", "place"].filter((name) => mix[name] !== asked[name]);
  return `this file has measured one mix only, with other ${other.map((name) => WORDS[name]).join(", ")}`;
}

const WORDS = {
  insert: "insertions", read: "reads", update: "updates", delete: "deletions", scan: "scans", indexes: "indexes",
  rows: "rows in the table", payload: "bytes per row", place: "places",
};
