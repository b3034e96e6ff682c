import assert from "node:assert/strict";
import { test } from "node:test";
import { narrowed } from "../../src/command.js";
import { domain, ticks } from "../../src/charts/frame.js";
import { heat } from "../../src/charts/heat.js";
import { means, ratios } from "../../src/tables/ratios.js";
import { sorted } from "../../src/tables/table.js";
import { committed } from "./results.js";

test("rows without a value come last in both directions", () => {
  const rows = [3, NaN, 1, 2];
  assert.deepEqual(sorted(rows, (row) => row, false), [1, 2, 3, NaN]);
  assert.deepEqual(sorted(rows, (row) => row, true), [3, 2, 1, NaN]);
});

test("texts are sorted by the numbers in them", () => {
  assert.deepEqual(sorted(["end 10", "end 9", "end 100"], (row) => row, false), ["end 9", "end 10", "end 100"]);
});

test("ratios compare the same work, and capacities inversely", () => {
  const users = committed("users");
  const rows = ratios(users, "btree", "sqlite/off");
  const of = (section, name) => rows.find((row) => row.section === section && row.name === name);
  const cost = (column) =>
    users.results.cases.find((one) => one.section === "insert" && one.name === "middle 100" && one.column === column).outcome.measured.instructions;
  assert.equal(of("insert", "middle 100").ratio, cost("sqlite/off") / cost("btree"));
  const fits = of("capacity", "rows inserted at the end in one update");
  assert.equal(fits.ratio, fits.base / fits.other);
});

test("the geometric mean of a ratio and its inverse is one", () => {
  const row = (section, ratio) => ({ section, ratio });
  const [first, second, all] = means([row("a", 4), row("a", 0.25), row("b", 9)]);
  assert.ok(Math.abs(first.geometric - 1) < 1e-12);
  assert.ok(Math.abs(second.geometric - 9) < 1e-12);
  assert.equal(all.section, null);
  assert.equal(all.cases, 3);
});

test("a command is limited to a section if its suite has the option", () => {
  const of = (suite, command, section) => narrowed({ suite, command }, section);
  assert.equal(of("users", "stablebench run users --sections all --rows 10", "curve"), "stablebench run users --sections curve --rows 10");
  assert.equal(of("vfs", "stablebench run vfs --sections published,reads --rows 10", "equal"), "stablebench run vfs --sections published --rows 10");
  assert.equal(of("keys", "stablebench run keys --rows 10", "lists"), "stablebench run keys --rows 10");
  assert.equal(of("users", "stablebench run users --sections all", "x; rm -r"), "stablebench run users --sections all");
});

test("axes contain all values and have round ticks", () => {
  const [low, high] = domain([1, 10_000]);
  assert.ok(low < 1 && high > 10_000);
  assert.deepEqual(ticks([0.9, 11_000], 5), [1, 10, 100, 1_000, 10_000]);
  assert.deepEqual(domain([]), [1, 10]);
});

test("the classes of the heat map are symmetric", () => {
  assert.deepEqual([0.5, 0.8, 0.95, 1, 1.05, 1.25, 2].map(heat), [0, 1, 2, 3, 4, 5, 6]);
});
