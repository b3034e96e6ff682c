/** action.yml declares what it uses, and puts no input into the text of a program. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ROOT, comments } from "./support.mjs";

const definition = readFileSync(join(ROOT, "action.yml"), "utf8");
const script = readFileSync(join(ROOT, "action/main.mjs"), "utf8");
const docs = readFileSync(join(ROOT, "docs/ci.md"), "utf8");

/** The lines that are indented below a key at the start of a line. */
const below = (key) => definition.match(new RegExp(`^${key}:\n((?: .*\n|\n)*)`, "m"))[1];
const matches = (text, pattern) => [...text.matchAll(pattern)].map(([, name]) => name);
const unique = (names) => [...new Set(names)].sort();

const declared = matches(below("inputs"), /^ {2}([\w-]+):$/gm);
const steps = below("runs").split(/^ {4}- /m).slice(1);

test("the file has the keys of a composite action, and no tabs", () => {
  assert.deepEqual(matches(definition, /^([\w-]+):/gm), ["name", "description", "inputs", "outputs", "runs"]);
  assert.match(below("runs"), /^ {2}using: composite$/m);
  assert.doesNotMatch(definition, /\t/);
  assert.equal(steps.length, 5);
});

test("each input is declared with a description and used", () => {
  assert.deepEqual(unique(matches(definition, /\binputs\.([\w-]+)/g)), unique(declared));
  for (const name of declared) {
    assert.match(below("inputs"), new RegExp(`^ {2}${name}:\n {4}description: .+\n {4}default: .+$`, "m"));
    assert.match(docs, new RegExp(`^\\| \`${name}\` \\|`, "m"), `docs/ci.md does not describe ${name}`);
  }
});

test("each step that is used by others exists, and is before them", () => {
  const known = [];
  for (const step of steps) {
    for (const id of matches(step, /\bsteps\.([\w-]+)\./g)) assert.ok(known.includes(id), id);
    known.push(...matches(step, /^ +id: ([\w-]+)$/gm));
  }
});

test("the script reads the variables that the action sets", () => {
  const set = matches(definition, /^ +INPUT_([A-Z_]+): /gm).map((name) => name.toLowerCase().replaceAll("_", "-"));
  const read = matches(script, /\b(?:input|number|yes)\("([\w-]+)"/g);
  assert.deepEqual(unique(set), unique(read));
  for (const name of set) {
    assert.match(definition, new RegExp(`^ +INPUT_${name.toUpperCase().replaceAll("-", "_")}: \\$\\{\\{ inputs\\.${name} \\}\\}$`, "m"));
  }
});

test("expressions are values of keys, never part of a program", () => {
  let seen = 0;
  for (const step of steps) {
    const run = step.match(/^ +run: ?(?:\|\n((?: {8}.*\n|\n)+)|(.*)\n)/m);
    if (!run) continue;
    seen += 1;
    assert.doesNotMatch(run[0], /\$\{\{/);
  }
  assert.equal(seen, 3);
});

test("other actions are named with a version", () => {
  const used = matches(definition, /uses: (.+)/g);
  assert.equal(used.length, 2);
  for (const name of used) assert.match(name, /^actions\/[\w-]+@v\d+ # /);
});

test("the documented comment is that of a test", () => {
  assert.ok(docs.includes(comments().ceilings.replaceAll(/\(https:[^#)]*/g, "(https://…")), "docs/ci.md shows another comment than that of ceilings");
});
