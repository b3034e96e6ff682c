import assert from "node:assert/strict";
import { test } from "node:test";
import { changes, means, ratios } from "../../src/comparisons.js";
import { chargeParts, inside, measured, ruleChoices, rulePairs, rulesOf, visible, workParts } from "../../src/data.js";
import { dollars, leading, percent, short, tick, times, whole } from "../../src/format.js";
import { available, sorted } from "../../src/tables.js";
import { NEW, OLD, USERS, committed, report, withoutParts } from "../results.js";

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

const [BEFORE, AFTER] = [OLD, NEW].map((rules) => committed(USERS[rules]));
const KEYS = report({ ...committed("keys").results, replica: { rules: OLD } });

test("there is a choice of rule sets if a suite has several", () => {
  assert.deepEqual(ruleChoices([AFTER, KEYS, BEFORE]), [OLD, NEW], "the oldest first");
  assert.deepEqual(ruleChoices([BEFORE, KEYS]), []);
  assert.deepEqual(ruleChoices([BEFORE, BEFORE]), []);
  const unknown = report({ ...AFTER.results, replica: { rules: "unknown" } });
  assert.deepEqual(ruleChoices([BEFORE, unknown]), [], "an unknown rule set is no choice");
});

test("a suite without a choice is always shown", () => {
  const of = (chosen) => visible([BEFORE, AFTER, KEYS], chosen).map((one) => `${one.results.suite} ${rulesOf(one)}`);
  assert.deepEqual(of(NEW), [`users ${NEW}`, `keys ${OLD}`]);
  assert.deepEqual(of(OLD), [`users ${OLD}`, `keys ${OLD}`]);
  assert.deepEqual(visible([BEFORE, KEYS], null), [BEFORE, KEYS]);
});

test("the oldest and the newest rules are compared", () => {
  const [pair, ...more] = rulePairs([AFTER, KEYS, BEFORE]);
  assert.deepEqual([pair.suite, pair.old, pair.new, more.length], ["users", BEFORE, AFTER, 0]);
  assert.deepEqual(rulePairs([BEFORE, KEYS]), []);
});

test("a change is the new cost divided by the old", () => {
  const [pair] = rulePairs([BEFORE, AFTER]);
  const rows = changes(pair, "charge");
  const row = rows.find((of) => of.section === "insert" && of.name === "middle 1" && of.configuration === "btree");
  const of = (one) => one.results.cases.find((each) => each.section === "insert" && each.name === "middle 1" && each.configuration === "btree");
  assert.equal(row.old, inside(of(BEFORE)).charge);
  assert.equal(row.new, inside(of(AFTER)).charge);
  assert.equal(row.ratio, row.new / row.old);
  const capacity = rows.find((each) => each.section === "capacity");
  assert.equal(capacity.ratio, capacity.old / capacity.new, "more operations that fit are better");
});

test("cases with other sizes or other work are not compared", () => {
  const other = (change) => {
    const after = structuredClone(AFTER);
    after.results.cases = after.results.cases.filter((of) => of.section === "insert").slice(0, 1);
    change(after.results.cases[0]);
    return changes({ suite: "users", old: BEFORE, new: after }, "instructions").length;
  };
  assert.equal(other(() => {}), 1);
  assert.equal(other((of) => { of.rows = 7; }), 0);
  assert.equal(other((of) => { of.outcome.measured.operations = 7; }), 0);
  assert.equal(other((of) => { of.outcome = { failed: { reason: "" } }; }), 0);
});

test("the parts add up to the whole", () => {
  const sum = (parts) => parts.reduce((one, other) => one + other, 0);
  for (const one of [BEFORE, AFTER]) {
    const known = one.results.cases.filter(inside);
    assert.ok(known.length > 100);
    for (const of of known) {
      assert.equal(sum(chargeParts(of)), inside(of).charge);
      assert.equal(sum(workParts(of)), measured(of).instructions);
    }
  }
});

test("results without parts have none", () => {
  const [bare] = withoutParts(AFTER.results).cases;
  assert.equal(chargeParts(bare), null);
  assert.equal(workParts(bare), null);
  const of = structuredClone(AFTER.results.cases.find(inside));
  inside(of).pages.heap = inside(of).charge + 1;
  assert.equal(chargeParts(of), null, "pages that cost more than the whole are no part of it");
});

test("tables show touched pages under rules that count them", () => {
  const keys = (one) => available(one.results.cases).map((measure) => measure.key);
  assert.ok(["chargeCompute", "workStable", "heapTouched"].every((key) => keys(AFTER).includes(key)));
  assert.ok(keys(BEFORE).includes("chargeHeap") && !keys(BEFORE).includes("heapTouched"));
  assert.ok(!keys(report(withoutParts(AFTER.results))).includes("chargeCompute"));
});

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
    users.results.cases.find((one) => one.section === "insert" && one.name === "middle 100" && one.configuration === column).outcome.measured.instructions;
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
