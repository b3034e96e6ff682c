/**
 * Builds the script and style sheet of the report page: `dist/page.js` and `dist/page.css`.
 *
 *   node build.js            writes them
 *   node build.js --check    fails if they are out of date
 */

import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { declarations } from "./src/chart-parts.js";

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

const built = { "page.js": await script(), "page.css": await style() };
for (const [name, text] of Object.entries(built)) {
  if (/<\/(script|style)|<!--/i.test(text)) throw new Error(`${name} contains text that would end its block`);
  const path = join(HERE, "dist", name);
  if (!process.argv.includes("--check")) writeFileSync(path, text);
  else if (!existsSync(path) || readFileSync(path, "utf8") !== text) {
    throw new Error(`dist/${name} is out of date; run \`npm run build\` and commit it`);
  }
  console.log(`dist/${name}: ${Buffer.byteLength(text)} bytes`);
}
