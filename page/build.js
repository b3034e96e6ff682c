/**
 * Builds the committed files that the page's sources make.
 *
 *   node build.js page             writes the report page's script and style sheet: dist/page.{js,css}
 *   node build.js readme-chart     writes the README's chart, drawn by the page's code from the committed run, of the cost
 *                                  of a new row over rows per message: docs/figures/insert-{light,dark}.svg
 *   node build.js … --check        fails if they are out of date
 */

import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { parseHTML } from "linkedom";
import { declarations, values } from "./src/chart-parts.js";
import { lines } from "./src/charts.js";
import { named } from "./src/data.js";
import { linesContent, linesOf } from "./src/suite.js";

const HERE = dirname(fileURLToPath(import.meta.url));
const BROWSERS = ["chrome100", "firefox113", "safari16.4"];

async function script() {
  const { outputFiles, metafile } = await build({
    absWorkingDir: HERE,
    entryPoints: ["src/main.js"],
    bundle: true,
    minify: true,
    format: "iife",
    target: BROWSERS,
    charset: "utf8",
    legalComments: "none",
    metafile: true,
    write: false,
  });
  return `${licences(Object.keys(metafile.inputs))}${outputFiles[0].text}`;
}

/** The licences of the bundled packages, each text once. */
function licences(inputs) {
  const names = new Set(inputs.map((input) => /^node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(input)?.[1]).filter(Boolean));
  const texts = new Map();
  for (const name of [...names].sort()) {
    const folder = join(HERE, "node_modules", name);
    const { version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8"));
    const file = ["LICENSE", "LICENSE.md", "LICENSE.txt", "license"].map((of) => join(folder, of)).find(existsSync);
    const text = file ? readFileSync(file, "utf8").replace(/\r/g, "").trim() : String(license);
    texts.set(text, [...(texts.get(text) ?? []), `${name} ${version} (${license})`]);
  }
  const parts = [...texts].map(([text, packages]) => `${packages.join(", ")}\n\n${text}`);
  return `/*!\nWith parts of the following.\n\n${parts.join("\n\n--\n\n").replace(/\*\//g, "* /")}\n*/\n`;
}

async function style() {
  const colours = [
    `:root{${declarations("light")}}`,
    `@media screen and (prefers-color-scheme:dark){:root{${declarations("dark")}}}`,
    `@media screen{:root[data-theme="light"]{${declarations("light")}}:root[data-theme="dark"]{${declarations("dark")}}}`,
  ];
  const text = `${colours.join("\n")}\n${readFileSync(join(HERE, "src/page.css"), "utf8")}`;
  const { outputFiles } = await build({
    stdin: { contents: text, loader: "css" },
    minify: true,
    target: BROWSERS,
    write: false,
  });
  return outputFiles[0].text;
}

async function page() {
  const files = { "dist/page.js": await script(), "dist/page.css": await style() };
  for (const [name, text] of Object.entries(files)) {
    if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${name} contains text that would end its block`);
  }
  return files;
}

/** About the maximum width of an image on GitHub. */
const WIDTH = 800;

/** The report's headings, which results files do not contain. */
const HEADINGS = { btree: "StableBTreeMap", append: "floor: append", array: "floor: array" };
const heading = (key) => HEADINGS[key] ?? key.replace(/^sqlite\/([^,]+)(.*)/, (_, mode, settings) => `SQLite ${mode.toUpperCase()}${settings.replaceAll(",", " ")}`);

function report() {
  const results = JSON.parse(readFileSync(join(HERE, "../suites/users/results.json"), "utf8"));
  const configurations = Object.fromEntries(results.configurations.map(({ key }) => [key, { heading: heading(key), floor: key in HEADINGS && key !== "btree" }]));
  const sections = { insert: "New rows in one message, SQLite in one transaction" };
  return named([{ file: "users.json", results, configurations, sections, published: null }])[0];
}

function readmeChart() {
  const users = report();
  const { document } = parseHTML("<!doctype html><html><body></body></html>");
  const drawn = (theme) => {
    const context = { document, colours: values(theme), width: WIDTH - 32, alone: true };
    const svg = lines(context, linesContent(users, "insert", "instructions", linesOf(users, "insert")));
    // Two decimals suffice; further digits could differ between JavaScript engines.
    return `${svg.outerHTML.replace(/\d+\.\d{3,}/g, (number) => String(Number(Number(number).toFixed(2))))}\n`;
  };
  return Object.fromEntries(["light", "dark"].map((theme) => [`../docs/figures/insert-${theme}.svg`, drawn(theme)]));
}

const [task, option] = process.argv.slice(2);
const [make, command] = { page: [page, "build"], "readme-chart": [readmeChart, "readme-chart"] }[task] ?? [];
if (!make || (option && option !== "--check")) throw new Error("usage: node build.js page | readme-chart [--check]");
for (const [name, text] of Object.entries(await make())) {
  const path = join(HERE, name);
  if (!option) {
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, text);
  } else if (!existsSync(path) || readFileSync(path, "utf8") !== text) {
    throw new Error(`${name} is out of date; run \`npm run ${command}\` in page/ and commit it`);
  }
  console.log(`${name}: ${Buffer.byteLength(text)} bytes`);
}
