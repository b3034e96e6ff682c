/**
 * The README's chart, drawn by the report's code: cost of a new row over rows per message, from the
 * committed run.
 *
 *   node readme-chart.js            writes docs/figures/insert-{light,dark}.svg
 *   node readme-chart.js --check    fails if they are out of date
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { parseHTML } from "linkedom";
import { values } from "./src/chart-parts.js";
import { lines } from "./src/charts.js";
import { named } from "./src/data.js";
import { linesContent, linesOf } from "./src/suite.js";

/** About the maximum width of an image on GitHub. */
const WIDTH = 800;
const FIGURES = new URL("../docs/figures/", import.meta.url);

/** The report's headings, which results files do not contain. */
const HEADINGS = { btree: "StableBTreeMap", append: "floor: append", array: "floor: array" };
const heading = (key) => HEADINGS[key] ?? key.replace(/^sqlite\/([^,]+)(.*)/, (_, mode, settings) => `SQLite ${mode.toUpperCase()}${settings.replaceAll(",", " ")}`);

function report() {
  const results = JSON.parse(readFileSync(new URL("../suites/users/results.json", import.meta.url), "utf8"));
  const configurations = Object.fromEntries(results.configurations.map(({ key }) => [key, { heading: heading(key), floor: key in HEADINGS && key !== "btree" }]));
  const sections = { insert: "New rows in one message, SQLite in one transaction" };
  return named([{ file: "users.json", results, configurations, sections, published: null }])[0];
}

const users = report();
const { document } = parseHTML("<!doctype html><html><body></body></html>");
mkdirSync(FIGURES, { recursive: true });
for (const theme of ["light", "dark"]) {
  const context = { document, colours: values(theme), width: WIDTH - 32, alone: true };
  const svg = lines(context, linesContent(users, "insert", "instructions", linesOf(users, "insert")));
  // Two decimals suffice; further digits could differ between JavaScript engines.
  const text = `${svg.outerHTML.replace(/\d+\.\d{3,}/g, (number) => String(Number(Number(number).toFixed(2))))}\n`;
  const file = new URL(`insert-${theme}.svg`, FIGURES);
  if (!process.argv.includes("--check")) writeFileSync(file, text);
  else if (!existsSync(file) || readFileSync(file, "utf8") !== text) {
    throw new Error(`docs/figures/insert-${theme}.svg is out of date; run \`npm run readme-chart\` in page/ and commit it`);
  }
  console.log(`docs/figures/insert-${theme}.svg: ${Buffer.byteLength(text)} bytes`);
}
