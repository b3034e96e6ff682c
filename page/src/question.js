/**
 * The reader's question: a mix, and what a month of it contains; its place in the address; and the sources of its answer.
 *
 * It is in the page's address, after `?` in the part behind `#`, because a page opened from a file may only change that
 * part. The address follows the question, and the page follows the address: an answer can be shared, bookmarked and
 * reloaded.
 *
 *     report.html#bill?insert=5&read=20&update=0&delete=0&scan=0&indexes=2&rows=200000&payload=300&at=random
 *
 * What answers is a file of the suite mix, if it measured exactly this mix, or else a file of the suite users, from which
 * it is estimated. Several parts of the page share the question. Each part is notified of a change.
 *
 * @typedef {{insert: number, read: number, update: number, delete: number, scan: number, indexes: number,
 *   rows: number, payload: number, place: string, nodes: number, usd: number, by: "cycles"|"message"|"instructions",
 *   perDay: number, gib: number?, from: string?, rules: string?}} Asked
 *   `gib` is the storage of all engines, or null to use the measured fixtures; `from` is the id of a report, `rules` a rule set
 * @typedef {{asked: () => Partial<Asked>, changed: (asked: Object) => void, write: (asked: Object) => void, reveal: () => void}} Address
 *   `changed` writes after a pause, because browsers limit how often an address changes
 * @typedef {import("./estimates/inserts.js").Estimate} Estimate
 * @typedef {import("./estimates/mix.js").Mix} Mix
 * @typedef {{key: string}} Column
 * @typedef {{report: import("./data.js").Report, columns: Column[], limit: number?, first: Object,
 *   mix: Mix?, rows: [number, number], measurements?: import("./estimates/inserts.js").Measurements,
 *   cost: (column: Column, asked: Mix) => Estimate}} Source
 *   `first` is the mix that it shows first, `mix` the measured one, `rows` the measured tables
 * @typedef {{asked: Asked, sources: Source[], listen: (update: (now: boolean) => void) => void,
 *   change: (now?: boolean) => void, start: (source: Source) => void}} Question
 */

import { measured, unique } from "./data.js";
import { NOTHING, known, measurements, none, parts, rangesOf, usual } from "./estimates/inserts.js";
import { estimateMix } from "./estimates/mix.js";
import * as names from "./names.js";

/** What is asked if nothing is said, and no file has a mix. */
const USUAL = {
  insert: 5, read: 20, update: 0, delete: 0, scan: 0, indexes: 0, rows: 100_000, payload: 100, place: "random",
  by: "cycles", perDay: 1_000, gib: null, from: null,
};
/** Whole numbers, and their limits, which are those of the tool. */
export const LIMITS = {
  insert: [0, 100_000], read: [0, 100_000], update: [0, 100_000], delete: [0, 100_000], scan: [0, 100_000],
  indexes: [0, 8], rows: [4, 10_000_000], payload: [0, 100_000], nodes: [1, 1_000], perDay: [1, 1_000_000_000],
};
/** Numbers with decimals. */
const DECIMALS = { usd: [0.01, 1_000_000], gib: [0, 1_000_000] };
/** Names, and the values that exist. */
const NAMES = { place: ["middle", "end", "random"], by: ["cycles", "message", "instructions"] };
/** Texts, which mean nothing if the page does not have them. */
const TEXTS = ["from", "rules"];
/** Names in the address that differ from those here. */
const KEYS = { place: "at" };
/** The mix, which the address names completely, so that it does not depend on what a page shows first. */
const MIX = ["insert", "read", "update", "delete", "scan", "indexes", "rows", "payload", "place"];
const REST = ["nodes", "usd", "by", "perDay", "gib", ...TEXTS];
/** Milliseconds without input after which the address is written. */
const PAUSE = 350;

/**
 * What the page asks first.
 * @param {Source[]} sources
 * @returns {Object}
 */
export function firstOf([source]) {
  const prices = source?.report.results.prices ?? { nodes: 13, usd_per_trillion_cycles: 1.36 };
  return { ...USUAL, nodes: Number(prices.nodes), usd: Number(prices.usd_per_trillion_cycles), ...source?.first };
}

/**
 * @param {import("./data.js").Report[]} reports that are shown
 * @param {Partial<Asked>} asked by the reader
 * @param {{changed: (asked: Asked) => void, again: (asked: Object) => void}} of `changed` follows a change, `again` builds
 *   the page for another question
 * @returns {Question}
 */
export function question(reports, asked, { changed, again }) {
  const all = sources(reports);
  const own = { ...firstOf(all), ...asked };
  const listeners = [];
  return {
    asked: own,
    sources: all,
    listen: (update) => listeners.push(update),
    change: (now = false) => {
      for (const update of listeners) update(now);
      changed(own);
    },
    start: (source) => again({ ...own, ...source.first, from: source.mix ? null : source.report.id }),
  };
}

/** Returns `true` if two questions ask for the same mix. @param {Object} one @param {Object} other */
function sameMix(one, other) {
  return MIX.every((name) => one[name] === other[name]);
}

/** The question as text; empty if it is the one that the page shows first. @param {Asked} asked @param {Asked} first */
export function written(asked, first) {
  const other = REST.filter((name) => asked[name] !== first[name] && asked[name] !== null && asked[name] !== undefined);
  const names = [...(sameMix(asked, first) ? [] : MIX), ...other];
  return new URLSearchParams(names.map((name) => [KEYS[name] ?? name, String(asked[name])])).toString();
}

/** What a text asks for. Whatever is not a question is ignored. @param {string} text @returns {Partial<Asked>} */
export function read(text) {
  const values = new URLSearchParams(text);
  const found = {};
  const take = (names, parse) => {
    for (const name of names) {
      const value = parse(name, values.get(KEYS[name] ?? name) ?? "");
      if (value !== undefined) found[name] = value;
    }
  };
  const within = (value, [least, most]) => (value >= least && value <= most ? value : undefined);
  take(Object.keys(LIMITS), (name, value) => (/^\d{1,10}$/.test(value) ? within(Number(value), LIMITS[name]) : undefined));
  take(Object.keys(DECIMALS), (name, value) => (/^\d{1,9}(\.\d{1,9})?$/.test(value) ? within(Number(value), DECIMALS[name]) : undefined));
  take(Object.keys(NAMES), (name, value) => (NAMES[name].includes(value) ? value : undefined));
  take(TEXTS, (_, value) => (value && value.length < 300 ? value : undefined));
  return found;
}

/** The parts of an address. @param {string} hash with `#` @returns {{part: string, question: Partial<Asked>?}} `question` is `null` if there is none */
export function split(hash) {
  const [part, ...rest] = hash.slice(1).split("?");
  return { part, question: rest.length ? read(rest.join("?")) : null };
}

/**
 * Makes the address follow the question, and the page the address.
 * @param {Object} first the question that the page shows if the address has none
 * @param {(asked: Object) => void} show shows another question
 * @returns {Address}
 */
export function follow(first, show) {
  let asked = split(location.hash).question ?? {};
  let timer = 0;
  const write = (now) => {
    clearTimeout(timer);
    asked = { ...now };
    const text = written({ ...first, ...asked }, first);
    const { part } = split(location.hash);
    const hash = `${part}${text && `?${text}`}`;
    if (hash === location.hash.slice(1)) return;
    try {
      history.replaceState(history.state, "", `#${hash}`);
    } catch {
      // A frame without an address of its own may not change it. The page works without.
    }
  };
  addEventListener("hashchange", () => {
    const { question } = split(location.hash);
    const known = written({ ...first, ...asked }, first);
    // A link inside of the page names a part only: the question stays.
    if (!question) write(asked);
    else if (written({ ...first, ...question }, first) !== known) {
      asked = question;
      show(asked);
    }
    reveal();
  });
  return {
    asked: () => asked,
    changed: (now) => {
      asked = { ...now };
      clearTimeout(timer);
      timer = setTimeout(() => write(asked), PAUSE);
    },
    write,
    reveal,
  };
}

/** Opens the part of the page that the address names, and scrolls to it. */
function reveal() {
  const { part } = split(location.hash);
  const target = part && document.getElementById(part);
  if (!target) return;
  for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
  const folded = target.querySelector(":scope > details.fold");
  if (folded) folded.open = true;
  target.scrollIntoView();
}

/** @param {import("./data.js").Report[]} reports @returns {Source[]} in the order of the files */
export function sources(reports) {
  return reports.flatMap((report) => (report.results.suite === "mix" ? measuredMixes(report) : estimated(report)));
}

/** @param {Source[]} all @param {Asked} asked @returns {Source} */
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

/** The mean of measured messages. @param {import("./data.js").Case} of @returns {Estimate} */
function mean(of) {
  const found = measured(of);
  const messages = Math.max(1, Number(found.operations));
  return known(Object.fromEntries(Object.entries(parts(of, found)).map(([part, value]) => [part, value === null ? null : value / messages])));
}

function differences(mix, asked) {
  const other = MIX.filter((name) => mix[name] !== asked[name]);
  return `this file has measured one mix only, with other ${other.map((name) => WORDS[name]).join(", ")}`;
}

const WORDS = {
  insert: "insertions", read: "reads", update: "updates", delete: "deletions", scan: "scans", indexes: "indexes",
  rows: "rows in the table", payload: "bytes per row", place: "places",
};
