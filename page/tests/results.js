/** The committed results, as files and as the page reads them: without the texts that the tool adds. */

import { readFileSync } from "node:fs";
import { named } from "../src/data.js";

/** Rule sets of committed results. */
export const OLD = "2025-10";
export const NEW = "2026-10";

/** The names of the results of the suite users under each rule set. */
export const USERS = { [OLD]: "users-2025-10", [NEW]: "users" };

/** Prices since August 2026, as added by the tool. */
export const FEES = {
  execution: 5_000_000, ingress: 1_200_000, ingress_byte: 2_000, instruction: 1, storage_gib_second: 317_500, canister_second: 10_000,
};
const RULES = {
  "2025-10": { fees: { ...FEES, storage_gib_second: 127_000, canister_second: 0 }, charge: "Rules 2025-10: 1 000 for a page." },
  "2026-08": { fees: FEES, charge: "Rules 2026-08: 80 000 for a page." },
  "2026-10": { fees: FEES, charge: "Rules 2026-10: 80 000 for a page." },
};

/** @param {any} results */
export function report(results) {
  const configurations = Object.fromEntries(
    results.configurations.map(({ key }) => [key, { heading: key, floor: key === "append" || key === "array" }]),
  );
  const rest = { file: `${results.suite}.json`, question: null, sections: {}, advice: [], published: null, sheets: [], settings: null };
  return named([{ ...rest, results, configurations }], RULES)[0];
}

/** @param {string} name of a suite, or `users-2025-10` for the run of users by those rules @returns {URL} */
export function fileOf(name) {
  const path = name.startsWith("users-") ? `users/results-${name.slice("users-".length)}` : `${name}/results`;
  return new URL(`../../suites/${path}.json`, import.meta.url);
}

/** @param {string} name as of `fileOf` */
export function committed(name) {
  return report(JSON.parse(readFileSync(fileOf(name), "utf8")));
}

/** A copy of results as measured on a network: without the parts of a charge. @param {any} results */
export function withoutParts(results) {
  const copy = structuredClone(results);
  for (const { outcome } of copy.cases) {
    const detail = outcome.measured?.detail;
    if (!detail) continue;
    delete detail.pages;
    if (detail.cost.inside) delete detail.cost.inside.pages;
  }
  return copy;
}
