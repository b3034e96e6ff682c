import assert from "node:assert/strict";
import { test } from "node:test";
import { interpolate, leaveOneOut, range } from "../../src/answer/interpolate.js";

const POINTS = [
  { x: 1, y: 100 },
  { x: 10, y: 1_000 },
  { x: 1_000, y: 5_000 },
];

test("a measured point is exact", () => {
  for (const { x, y } of POINTS) assert.deepEqual(interpolate(POINTS, x, "linear"), { y, from: x, to: x });
});

test("between two points, figures lie on a line", () => {
  assert.deepEqual(interpolate(POINTS, 505, "linear"), { y: 3_000, from: 10, to: 1_000 });
});

test("between two points, logarithms lie on a line", () => {
  const { y, from, to } = interpolate(POINTS, 100, "logarithmic");
  assert.deepEqual([from, to], [10, 1_000]);
  assert.ok(Math.abs(y - Math.sqrt(1_000 * 5_000)) < 1e-9, String(y));
});

test("there is no figure beyond the measured points", () => {
  for (const axes of ["linear", "logarithmic"]) {
    for (const x of [0, 0.5, 1_001, -1, NaN, Infinity]) assert.equal(interpolate(POINTS, x, axes), null, String(x));
    assert.equal(interpolate([], 1, axes), null);
    assert.equal(interpolate([POINTS[0]], 2, axes), null);
  }
});

test("a cost of zero is not raised to a power", () => {
  const { y } = interpolate([{ x: 1, y: 0 }, { x: 101, y: 10 }], 51, "logarithmic");
  assert.equal(y, 5);
});

test("points on one line have no error", () => {
  for (const [axes, cost] of [["linear", (x) => 300 + 7 * x], ["logarithmic", (x) => 7 * x ** 0.9]]) {
    const { worst, typical, points } = leaveOneOut([1, 10, 50, 1_000].map((x) => ({ x, y: cost(x) })), axes);
    assert.ok(worst < 1e-12 && typical < 1e-12);
    assert.equal(points, 2);
  }
});

test("the error is the distance of a point from the line", () => {
  const bent = [{ x: 1, y: 1 }, { x: 10, y: 20 }, { x: 100, y: 100 }];
  assert.equal(leaveOneOut(bent, "logarithmic").worst, 0.5);
  assert.equal(leaveOneOut(bent, "linear").worst, 0.5);
  assert.equal(leaveOneOut(bent.slice(0, 2), "linear"), null);
  assert.equal(leaveOneOut(bent, "linear", [1, 100]), null, "the first and the last cannot be left out");
});

test("the range is from the first to the last point", () => {
  assert.deepEqual(range(POINTS), [1, 1_000]);
  assert.equal(range([]), null);
});
