/**
 * Rule sets: the network's prices at a given time. If a suite has results under several rule sets, the
 * page shows one at a time, and the changes between them.
 *
 * @typedef {{fees: import("./bill/bill.js").Fees, charge: string}} Rules
 * @typedef {{suite: string, old: import("./data.js").Report, new: import("./data.js").Report}} Pair
 */

import { unique } from "./data.js";
import { h, id } from "./dom.js";

const UNKNOWN = "unknown";

/** The name of a report's rule set. @param {import("./data.js").Report} report */
export function nameOf(report) {
  return String(report.results.replica.rules ?? UNKNOWN);
}

/** Known rule sets of a suite, oldest first. @param {import("./data.js").Report[]} reports */
function ofSuite(reports, suite) {
  const names = reports.filter((report) => report.results.suite === suite).map(nameOf);
  // Names are dates.
  return unique(names).filter((name) => name !== UNKNOWN).sort();
}

/** Suites with results under several rule sets. @param {import("./data.js").Report[]} reports */
function suites(reports) {
  return unique(reports.map((report) => report.results.suite)).filter((suite) => ofSuite(reports, suite).length > 1);
}

/** Rule sets to choose from, oldest first; empty if no suite has several. @param {import("./data.js").Report[]} reports */
export function choices(reports) {
  return unique(suites(reports).flatMap((suite) => ofSuite(reports, suite))).sort();
}

/**
 * The reports under the chosen rule set, and those of suites without a choice.
 * @param {import("./data.js").Report[]} reports
 * @param {string?} chosen
 */
export function visible(reports, chosen) {
  const several = new Set(suites(reports));
  return reports.filter((report) => {
    const { suite } = report.results;
    if (!several.has(suite)) return true;
    return ofSuite(reports, suite).includes(chosen) ? nameOf(report) === chosen : true;
  });
}

/** The oldest and newest report of each suite with several rule sets. @param {import("./data.js").Report[]} reports @returns {Pair[]} */
export function pairs(reports) {
  return suites(reports).map((suite) => {
    const names = ofSuite(reports, suite);
    const first = (name) => reports.find((report) => report.results.suite === suite && nameOf(report) === name);
    return { suite, old: first(names[0]), new: first(names[names.length - 1]) };
  });
}

/** The control that selects a rule set. @param {string[]} names @param {string} chosen @param {(name: string) => void} change */
export function switcher(names, chosen, change) {
  const own = id("rules");
  const select = h(
    "select",
    { id: own, name: "rules", onchange: () => change(select.value) },
    names.map((name) => h("option", { value: name, selected: name === chosen }, name)),
  );
  return h("div", { class: "switch" }, h("label", { for: own }, "Rules"), select);
}
