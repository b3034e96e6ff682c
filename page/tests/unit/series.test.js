import assert from "node:assert/strict";
import { test } from "node:test";
import { series } from "../../src/charts/series.js";
import { committed } from "./results.js";

test("no two configurations of a suite look the same", () => {
  for (const suite of ["users", "builds", "collections"]) {
    const report = committed(suite);
    const keys = report.results.configurations.map(({ key }) => key);
    const styles = series(report, keys).map(({ colour, symbol }) => `${colour} ${symbol}`);
    assert.equal(new Set(styles).size, keys.length, suite);
  }
});
