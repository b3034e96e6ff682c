/**
 * The chart of the README, by the code that draws the report's: cost of a new row against rows a
 * message, of the committed run.
 *
 *   node readme-chart.js            writes docs/figures/insert-{light,dark}.svg
 *   node readme-chart.js --check    fails where they are not what would be written
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { parseHTML } from "linkedom";
import { values } from "./src/charts/theme.js";
import { lines } from "./src/charts/lines.js";
import { named } from "./src/data.js";
import { linesContent, linesOf } from "./src/suites/lines.js";

/** GitHub shows an image at most about so wide. */
const WIDTH = 800;
const FIGURES = new URL("../docs/figures/", import.meta.url);

/** Headings as the report's, which come from the tool: here there are results alone. */
const HEADINGS = { btree: "StableBTreeMap", append: "floor: append", array: "floor: array" };
const heading = (key) => HEADINGS[key] ?? key.replace(/^sqlite\/(.+)/, (_, mode) => `SQLite ${mode.toUpperCase()}`);

function report() {
  const results = JSON.parse(readFileSync(new URL("../results/users.json", import.meta.url), "utf8"));
  const columns = Object.fromEntries(results.columns.map(({ key }) => [key, { heading: heading(key), floor: key in HEADINGS && key !== "btree" }]));
  const sections = { insert: "New rows in one message, SQLite in one transaction" };
  return named([{ file: "users.json", results, columns, sections, published: null }])[0];
}

const users = report();
const { document } = parseHTML("<!doctype html><html><body></body></html>");
mkdirSync(FIGURES, { recursive: true });
for (const theme of ["light", "dark"]) {
  const context = { document, colours: values(theme), width: WIDTH - 32, alone: true };
  const svg = lines(context, linesContent(users, "insert", "instructions", linesOf(users, "insert")));
  // Two decimals are finer than a screen; the last digits of more could differ between engines.
  const text = `${svg.outerHTML.replace(/\d+\.\d{3,}/g, (number) => String(Number(Number(number).toFixed(2))))}\n`;
  const file = new URL(`insert-${theme}.svg`, FIGURES);
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (!existsSync(file) || readFileSync(file, "utf8") !== text) {
    throw new Error(`docs/figures/insert-${theme}.svg is not of results/users.json; run \`npm run readme-chart\` in page/ and commit it`);
  }
  console.log(`docs/figures/insert-${theme}.svg: ${Buffer.byteLength(text)} bytes`);
}
