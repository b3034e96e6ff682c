import assert from "node:assert/strict";
import { test } from "node:test";
import { dollars, leading, percent, short, tick, times, whole } from "../../src/format.js";

const THIN = "\u202f";

test("thousands are separated by a thin space", () => {
  assert.deepEqual([0, 999, 1_000, 1_234_567, 0.6].map(whole), ["0", "999", `1${THIN}000`, `1${THIN}234${THIN}567`, "1"]);
  assert.equal(whole(NaN), "–");
  assert.equal(whole(-1_000), `−1${THIN}000`);
});

test("large numbers are abbreviated, as in the other reports", () => {
  assert.deepEqual([12, 1_500, 74_390_226_683, 999_000_000].map(short), ["12", "1.50\u00a0k", "74.4\u00a0G", "999\u00a0M"]);
  assert.deepEqual([1, 500, 1_000, 2_000_000, 0.5].map(tick), ["1", "500", "1\u00a0k", "2\u00a0M", "0.5"]);
});

test("ratios have three digits, as in the other reports", () => {
  assert.deepEqual([1 / 300, 1 / 3, 25, 123.4].map(times), ["0.003×", "0.33×", "25.0×", "123×"]);
  assert.equal(times(Infinity), "–");
});

test("shares and dollars", () => {
  assert.deepEqual([0.001, 0.04, 1.5].map(percent), ["0.1\u00a0%", "4\u00a0%", "150\u00a0%"]);
  assert.deepEqual([0, 0.0000105, 12.3, 1_234].map(dollars), ["$0", "$0.0000105", "$12.30", `$1${THIN}234`]);
});

test("the leading number of a text is parsed", () => {
  assert.deepEqual(["1 234", "12.5 M", "0.36×", "≥ 10", "$14.91", "1 000\n0.5×"].map(leading), [1_234, 12_500_000, 0.36, 10, 14.91, 1_000]);
  for (const text of ["", "–", "n/a", "delete"]) assert.ok(Number.isNaN(leading(text)), text);
});
