import assert from "node:assert/strict";
import { test } from "node:test";
import { domain, series as styles, ticks } from "../../src/chart-parts.js";
import { heat, together } from "../../src/charts.js";
import { committed } from "../results.js";

test("axes contain all values and have round ticks", () => {
  const [low, high] = domain([1, 10_000]);
  assert.ok(low < 1 && high > 10_000);
  assert.deepEqual(ticks([0.9, 11_000], 5), [1, 10, 100, 1_000, 10_000]);
  assert.deepEqual(domain([]), [1, 10]);
});

test("the classes of the heat map are symmetric", () => {
  assert.deepEqual([0.5, 0.8, 0.95, 1, 1.05, 1.25, 2].map(heat), [0, 1, 2, 3, 4, 5, 6]);
});

test("no two configurations of a suite look the same", () => {
  for (const suite of ["users", "builds", "collections"]) {
    const report = committed(suite);
    const keys = report.results.configurations.map(({ key }) => key);
    const looks = styles(report, keys).map(({ colour, symbol }) => `${colour} ${symbol}`);
    assert.equal(new Set(looks).size, keys.length, suite);
  }
});

const series = (...headings) => headings.map((heading) => ({ key: heading, heading, colour: "c1", dash: null, symbol: "circle", width: 1 }));
const line = (key, panel, ...ys) => ys.map((y, at) => ({ panel, key, x: at + 1, y, title: key }));
const keys = ({ points }) => points.map(({ panel, key }) => `${panel} ${key}`);

test("lines that coincide everywhere are one, with all names", () => {
  const found = together(series("SQLite A", "map", "SQLite B"), [...line("SQLite A", "p", 10, 20), ...line("map", "p", 1, 2), ...line("SQLite B", "p", 10.01, 20)], 100);
  assert.deepEqual(keys(found), ["p SQLite A", "p SQLite A", "p map", "p map"]);
  assert.deepEqual(found.entries.map((of) => of.heading), ["SQLite A, B", "map"]);
  assert.equal(found.points[0].title, "SQLite A; the same line: SQLite B");
});

test("lines that coincide in one panel are one there", () => {
  const points = [...line("A", "p", 10, 20), ...line("B", "p", 10, 20), ...line("A", "q", 10, 20), ...line("B", "q", 10, 40)];
  const found = together(series("A", "B"), points, 100);
  assert.deepEqual(keys(found), ["p A", "p A", "q A", "q A", "q B", "q B"]);
  assert.deepEqual(found.entries.map((of) => of.heading), ["A", "B", "p: A, B"]);
});

test("lines that differ visibly, or in their sizes, are drawn each", () => {
  const both = (one, other) => together(series("A", "B"), [...line("A", "p", ...one), ...line("B", "p", ...other)], 100).entries.length;
  assert.equal(both([10, 20], [10, 20.2]), 1, "1 % are a pixel");
  assert.equal(both([10, 20], [10, 20.4]), 2, "2 % are two");
  assert.equal(both([10, 20], [10]), 2);
});

test("published points are drawn whatever coincides", () => {
  const ghost = { ...line("B", "p", 10)[0], ghost: true };
  const found = together(series("A", "B"), [...line("A", "p", 10, 20), ...line("B", "p", 10, 20), ghost], 100);
  assert.equal(found.points.filter((of) => of.ghost).length, 1);
});
