/**
 * Results as the page reads them.
 *
 * @typedef {{section: string, name: string, column: string, rows: number, payload: number,
 *   state: string, outcome: Object}} Case
 * @typedef {{file: string, results: any, question: string?, columns: Object, sections: Object,
 *   advice: Array, published: any, sheets: Array, id: string, title: string,
 *   rules: import("./rules.js").Rules?}} Report
 */

import { slug } from "./dom.js";
import { spaced } from "./format.js";

/**
 * Gives each report an id and a title that no other has, and what is known of its rule set.
 * @param {Array<any>} reports
 * @param {Object<string, import("./rules.js").Rules>} [rules]
 */
export function named(reports, rules = {}) {
  const seen = new Map();
  return reports.map((report) => {
    const suite = String(report.results.suite);
    const alike = reports.filter((other) => other.results.suite === suite).length;
    const base = slug(suite);
    const times = seen.get(base) ?? 0;
    seen.set(base, times + 1);
    const last = times === 0 ? base : `${base}-${times + 1}`;
    const known = own(rules, String(report.results.replica.rules)) ?? null;
    return { ...report, id: `suite-${last}`, title: alike > 1 ? `${suite} (${report.file})` : suite, rules: known && { ...known, charge: spaced(known.charge) } };
  });
}

/** What a column is called. @param {Report} report @param {string} key */
export function heading(report, key) {
  return own(report.columns, key)?.heading ?? key;
}

/** Whether a column is bare stable memory. @param {Report} report @param {string} key */
export function isFloor(report, key) {
  return own(report.columns, key)?.floor ?? false;
}

/** What a section is about. @param {Report} report @param {string} section */
export function about(report, section) {
  return own(report.sections, section) ?? section;
}

/** A value of an object that came with the data; never what objects inherit. */
function own(object, key) {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** @template T @param {Iterable<T>} values @returns {T[]} each once, in its first place */
export function unique(values) {
  return [...new Set(values)];
}

/** Names of sections, in their order. @param {Report} report */
export function sections(report) {
  return unique(report.results.cases.map((of) => of.section));
}

/** @param {Report} report @param {string} section @returns {Case[]} */
export function casesOf(report, section) {
  return report.results.cases.filter((of) => of.section === section);
}

/** Columns that have one of the cases, in the results' order. @param {Report} report @param {Case[]} cases */
export function columnsOf(report, cases) {
  const used = new Set(cases.map((of) => of.column));
  const listed = report.results.columns.map((of) => of.key).filter((key) => used.has(key));
  return unique([...listed, ...used]);
}

/** What was measured, if it was. @param {Case} of */
export function measured(of) {
  return of?.outcome?.measured ?? null;
}

/** What the embedded replica told of a case. @param {Case} of */
export function inside(of) {
  return measured(of)?.detail?.cost?.inside ?? null;
}

/**
 * Instructions as compute, heap pages, stable pages.
 * @param {number} total
 * @param {{heap: number, stable: number}?} pages instructions for pages, part of the total
 * @returns {number[]?} nothing where it is not told, or is not a part
 */
function parts(total, pages) {
  if (!pages) return null;
  const [heap, stable] = [Number(pages.heap), Number(pages.stable)];
  const compute = total - heap - stable;
  return compute >= 0 ? [compute, heap, stable] : null;
}

/** The parts of the whole charge. @param {Case} of */
export function chargeParts(of) {
  const found = inside(of);
  return found && parts(Number(found.charge), found.pages);
}

/** The parts of the measured instructions. @param {Case} of */
export function workParts(of) {
  const found = measured(of);
  return found && parts(Number(found.instructions), found.detail?.pages);
}

/** Why there is no measurement. @param {Case} of @returns {{mark: string, reason: string}?} */
export function missing(of) {
  if (of?.outcome?.not_applicable) return { mark: "n/a", reason: of.outcome.not_applicable.reason };
  if (of?.outcome?.failed) return { mark: "failed", reason: of.outcome.failed.reason };
  return null;
}

/** Instructions of one operation. @param {Case} of */
export function eachOperation(of) {
  const found = measured(of);
  return found ? Number(found.instructions) / Math.max(1, Number(found.operations)) : NaN;
}
