/**
 * The page's data: results files, as JSON compressed with gzip and encoded in base64; their rule sets, configurations,
 * sections and cases.
 *
 * A rule set has the network's prices at a given time. If a suite has results under several rule sets, the page shows one
 * at a time, and the changes between them.
 *
 * @typedef {{section: string, name: string, configuration: string, rows: number, payload: number,
 *   state: string, outcome: Object}} Case
 * @typedef {{file: string, results: any, question: string?, configurations: Object, sections: Object,
 *   advice: Array, published: any, sheets: Array, id: string, title: string, topic: string, rules: Rules?}} Report
 * @typedef {{fees: import("./estimates/rank.js").Fees, charge: string}} Rules
 * @typedef {{suite: string, old: Report, new: Report}} Pair
 */

import { slug } from "./dom.js";
import { spaced } from "./format.js";

/** What the results of a suite answer, in a few words: the names of the page's parts. Others have their suite's question. */
const TOPICS = {
  users: "What do rows cost?",
  vfs: "What does the file layer cost?",
  keys: "Which keys are cheap?",
  "db-bench": "Is a table without rowid cheaper?",
  sysbench: "What does each statement cost?",
  cuckoo: "How cheap can a read be?",
  builds: "What do compiler options save?",
  calls: "What do calls and timers cost?",
  collections: "Motoko's maps or Rust's?",
  history: "What does history cost?",
  mix: "What did my mix cost?",
  sql: "What does my SQL cost?",
};
/** A rule set without a name. */
const UNKNOWN = "unknown";
/** Settings that come before the first table, then the others. */
const FIRST = ["page_size", "journal_mode"];

/** Unpacks the data. @param {string} packed @returns {Promise<any>} */
export async function unpack(packed) {
  if (typeof DecompressionStream === "undefined") {
    throw new Error("this browser cannot unpack the figures (no DecompressionStream); use a newer one");
  }
  const bytes = Uint8Array.from(atob(packed.trim()), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return JSON.parse(await new Response(stream).text());
}

/**
 * Gives each report a unique id, a title, the topic that is its heading, and the data of its rule set.
 * @param {Array<any>} reports
 * @param {Object<string, Rules>} [rules]
 */
export function named(reports, rules = {}) {
  const seen = new Map();
  return reports.map((report) => {
    const suite = String(report.results.suite);
    const sameSuite = reports.filter((other) => other.results.suite === suite).length;
    const base = slug(suite);
    const times = seen.get(base) ?? 0;
    seen.set(base, times + 1);
    const last = times === 0 ? base : `${base}-${times + 1}`;
    const known = own(rules, String(report.results.replica.rules)) ?? null;
    const file = sameSuite > 1 ? ` (${report.file})` : "";
    return { ...report, id: `suite-${last}`, title: `${suite}${file}`, topic: `${own(TOPICS, suite) ?? report.question ?? suite}${file}`, rules: known && { ...known, charge: spaced(known.charge) } };
  });
}

/** The name of a report's rule set. @param {Report} report */
export function rulesOf(report) {
  return String(report.results.replica.rules ?? UNKNOWN);
}

/** Known rule sets of a suite, oldest first. @param {Report[]} reports */
function ofSuite(reports, suite) {
  const names = reports.filter((report) => report.results.suite === suite).map(rulesOf);
  // Names are dates.
  return unique(names).filter((name) => name !== UNKNOWN).sort();
}

/** Suites with results under several rule sets. @param {Report[]} reports */
function suites(reports) {
  return unique(reports.map((report) => report.results.suite)).filter((suite) => ofSuite(reports, suite).length > 1);
}

/** Rule sets to choose from, oldest first; empty if no suite has several. @param {Report[]} reports */
export function ruleChoices(reports) {
  return unique(suites(reports).flatMap((suite) => ofSuite(reports, suite))).sort();
}

/**
 * The reports under the chosen rule set, and those of suites without a choice.
 * @param {Report[]} reports
 * @param {string?} chosen
 */
export function visible(reports, chosen) {
  const several = new Set(suites(reports));
  return reports.filter((report) => {
    const { suite } = report.results;
    if (!several.has(suite)) return true;
    return ofSuite(reports, suite).includes(chosen) ? rulesOf(report) === chosen : true;
  });
}

/** The oldest and newest report of each suite with several rule sets. @param {Report[]} reports @returns {Pair[]} */
export function rulePairs(reports) {
  return suites(reports).map((suite) => {
    const names = ofSuite(reports, suite);
    const first = (name) => reports.find((report) => report.results.suite === suite && rulesOf(report) === name);
    return { suite, old: first(names[0]), new: first(names[names.length - 1]) };
  });
}

/** The heading of a configuration. @param {Report} report @param {string} key */
export function heading(report, key) {
  return own(report.configurations, key)?.heading ?? key;
}

/** Returns `true` for floors. @param {Report} report @param {string} key */
export function isFloor(report, key) {
  return own(report.configurations, key)?.floor ?? false;
}

/** The configuration that a library ships, if `key` is how its users should set it. @param {Report} report @param {string} key @returns {string?} */
export function insteadOf(report, key) {
  return own(report.configurations, key)?.instead_of ?? null;
}

/**
 * How a configuration is set: the PRAGMAs of SQLite.
 * @param {Report} report
 * @param {string} key
 * @returns {Object<string, string>?} `null` if it is no SQLite, empty if it is as the library ships it
 */
export function settingsOf(report, key) {
  return report.results.configurations.find((of) => of.key === key)?.settings ?? null;
}

/** Settings to be pasted. @param {Object<string, string>} settings @returns {string[]} one PRAGMA a line */
export function pragmas(settings) {
  const known = Object.keys(settings).filter((name) => /^[a-z_]+$/.test(name) && /^-?\w+$/.test(String(settings[name])));
  const ordered = [...FIRST.filter((name) => known.includes(name)), ...known.filter((name) => !FIRST.includes(name))];
  return ordered.map((name) => `PRAGMA ${name} = ${name === "journal_mode" ? String(settings[name]).toUpperCase() : settings[name]};`);
}

/** Returns `true` if a transaction can be rolled back. Without a journal, SQLite cannot undo one. @param {Object<string, string>?} settings */
export function undoes(settings) {
  return settings?.journal_mode !== "off";
}

/** The description of a section. @param {Report} report @param {string} section */
export function about(report, section) {
  return own(report.sections, section) ?? section;
}

/** A property of an object from the data, never an inherited one. */
function own(object, key) {
  return Object.hasOwn(object, key) ? object[key] : undefined;
}

/** @template T @param {Iterable<T>} values @returns {T[]} without duplicates, in order of first occurrence */
export function unique(values) {
  return [...new Set(values)];
}

/** Names of the sections, in order. @param {Report} report */
export function sections(report) {
  return unique(report.results.cases.map((of) => of.section));
}

/** @param {Report} report @param {string} section @returns {Case[]} */
export function casesOf(report, section) {
  return report.results.cases.filter((of) => of.section === section);
}

/** Configurations of the cases, in the order of the results. @param {Report} report @param {Case[]} cases */
export function configurationsOf(report, cases) {
  const used = new Set(cases.map((of) => of.configuration));
  const listed = report.results.configurations.map((of) => of.key).filter((key) => used.has(key));
  return unique([...listed, ...used]);
}

/** The measured values, if the case was measured. @param {Case} of */
export function measured(of) {
  return of?.outcome?.measured ?? null;
}

/** The values that only the embedded replica reports. @param {Case} of */
export function inside(of) {
  return measured(of)?.detail?.cost?.inside ?? null;
}

/**
 * Instructions as compute, heap pages, stable pages.
 * @param {number} total
 * @param {{heap: number, stable: number}?} pages instructions for pages, part of the total
 * @returns {number[]?} `null` if the pages are unknown or exceed the total
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

/** The reason for a missing measurement. @param {Case} of @returns {{mark: string, reason: string}?} */
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
