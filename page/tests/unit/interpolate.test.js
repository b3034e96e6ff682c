import assert from "node:assert/strict";
import { test } from "node:test";
import { interpolate } from "../../src/answer/interpolate.js";

const POINTS = [
  { x: 1, y: 100 },
  { x: 10, y: 1_000 },
  { x: 1_000, y: 5_000 },
];

test("a measured point is exact", () => {
  for (const { x, y } of POINTS) assert.deepEqual(interpolate(POINTS, x, "linear"), { y, low: y, high: y, from: x, to: x });
});

test("between two points, figures lie on a line, and the range reaches to the line on logarithmic axes", () => {
  const points = [{ x: 10, y: 1_000 }, { x: 1_000, y: 5_000 }];
  const { y, low, high, from, to } = interpolate(points, 505, "linear");
  assert.deepEqual([y, from, to], [3_000, 10, 1_000]);
  const curved = 1_000 * 5 ** (Math.log(50.5) / Math.log(100));
  assert.ok(Math.abs(high - curved) < 1e-9 && low === 3_000, `${low} to ${high}`);
});

test("between two points, logarithms lie on a line", () => {
  const { y, from, to } = interpolate(POINTS, 100, "logarithmic");
  assert.deepEqual([from, to], [10, 1_000]);
  assert.ok(Math.abs(y - Math.sqrt(1_000 * 5_000)) < 1e-9, String(y));
});

test("there is no figure beyond the measured points", () => {
  for (const shape of ["linear", "logarithmic", "steps"]) {
    for (const x of [0, 0.5, 1_001, -1, NaN, Infinity]) assert.equal(interpolate(POINTS, x, shape), null, String(x));
    assert.equal(interpolate([], 1, shape), null);
    assert.equal(interpolate([POINTS[0]], 2, shape), null);
  }
});

test("a cost of zero is not raised to a power", () => {
  const { y } = interpolate([{ x: 1, y: 0 }, { x: 101, y: 10 }], 51, "logarithmic");
  assert.equal(y, 5);
});

test("the range of points on one line is that line", () => {
  const points = [1, 10, 50, 1_000].map((x) => ({ x, y: 7 * x }));
  for (const shape of ["linear", "logarithmic"]) {
    const { y, low, high } = interpolate(points, 30, shape);
    for (const value of [y, low, high]) assert.ok(Math.abs(value - 210) < 1e-9, `${shape}: ${value}`);
  }
});

test("where something begins, the value may be that of either point", () => {
  // 26 pages, or 1 827 if the whole cache is read.
  const points = [{ x: 1, y: 26 }, { x: 10, y: 26 }, { x: 50, y: 1_827 }, { x: 100, y: 1_829 }];
  assert.deepEqual(interpolate(points, 14, "steps"), { y: 26, low: 26, high: 1_827, from: 10, to: 50 }, "nearer to 10");
  assert.equal(interpolate(points, 40, "steps").y, 1_827);
  const { low, high } = interpolate(points, 14, "linear");
  assert.deepEqual([low, high], [26, 1_827]);
  // Steeper than before and after, but not faster than the size.
  const bent = [{ x: 1, y: 100 }, { x: 10, y: 110 }, { x: 20, y: 200 }, { x: 100, y: 280 }];
  const { low: least, high: most } = interpolate(bent, 15, "linear");
  assert.ok(least <= 110 && most >= 200, `${least} to ${most}`);
});

test("the range is extended by what surrounding points are missed by", () => {
  const straight = [{ x: 1, y: 1 }, { x: 2, y: 2 }, { x: 4, y: 4 }, { x: 8, y: 8 }];
  const dented = [{ x: 1, y: 1 }, { x: 2, y: 1 }, { x: 4, y: 4 }, { x: 8, y: 8 }];
  assert.equal(interpolate(straight, 6, "logarithmic").low, interpolate(straight, 6, "logarithmic").y);
  assert.ok(interpolate(dented, 3, "linear").low <= 1, "2 is missed by half");
});
