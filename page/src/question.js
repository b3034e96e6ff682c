/**
 * The question and the sources of its answer, which several parts of the page share. Each part is notified of a change, and
 * the address then contains the new question.
 *
 * @typedef {{asked: import("./asked.js").Asked, sources: import("./mix/sources.js").Source[], listen: (update: (now: boolean) => void) => void,
 *   change: (now?: boolean) => void, start: (source: import("./mix/sources.js").Source) => void}} Question
 */

import { sources as sourcesOf } from "./mix/sources.js";

/** What is asked if nothing is said. */
const USUAL = { by: "cycles", perDay: 1_000, gib: null, from: null };
/** The mix if no file has one. */
const MIX = { insert: 5, read: 20, update: 0, delete: 0, scan: 0, indexes: 0, rows: 100_000, payload: 100, place: "random" };

/**
 * What the page asks first.
 * @param {import("./mix/sources.js").Source[]} sources
 * @returns {Object}
 */
export function firstOf([source]) {
  const prices = source?.report.results.prices ?? { nodes: 13, usd_per_trillion_cycles: 1.36 };
  return { ...USUAL, ...MIX, nodes: Number(prices.nodes), usd: Number(prices.usd_per_trillion_cycles), ...source?.first };
}

/**
 * @param {import("./data.js").Report[]} reports that are shown
 * @param {Partial<import("./asked.js").Asked>} asked by the reader
 * @param {{changed: (asked: import("./asked.js").Asked) => void, again: (asked: Object) => void}} of `changed` follows a
 *   change, `again` builds the page for another question
 * @returns {Question}
 */
export function question(reports, asked, { changed, again }) {
  const sources = sourcesOf(reports);
  const own = { ...firstOf(sources), ...asked };
  const listeners = [];
  return {
    asked: own,
    sources,
    listen: (update) => listeners.push(update),
    change: (now = false) => {
      for (const update of listeners) update(now);
      changed(own);
    },
    start: (source) => again({ ...own, ...source.first, from: source.mix ? null : source.report.id }),
  };
}
