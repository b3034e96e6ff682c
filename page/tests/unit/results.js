/** The committed results as the page has them, without what Rust adds. */

import { readFileSync } from "node:fs";
import { named } from "../../src/data.js";

/** @param {any} results */
export function report(results) {
  const columns = Object.fromEntries(
    results.columns.map(({ key }) => [key, { heading: key, floor: key === "append" || key === "array" }]),
  );
  const rest = { file: `${results.suite}.json`, question: null, sections: {}, advice: [], published: null, sheets: [], settings: null };
  return named([{ ...rest, results, columns }])[0];
}

/** @param {string} suite */
export function committed(suite) {
  return report(JSON.parse(readFileSync(new URL(`../../../results/${suite}.json`, import.meta.url), "utf8")));
}
