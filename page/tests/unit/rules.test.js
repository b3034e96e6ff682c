import assert from "node:assert/strict";
import { test } from "node:test";
import { chargeParts, inside, measured, workParts } from "../../src/data.js";
import { choices, nameOf, pairs, visible } from "../../src/rules.js";
import { changes } from "../../src/changes.js";
import { available } from "../../src/tables/measures.js";
import { NEW, OLD, USERS, withoutParts } from "../fixtures/rules.js";
import { committed, report } from "./results.js";

const [BEFORE, AFTER] = [OLD, NEW].map((rules) => committed(USERS[rules]));
const KEYS = report({ ...committed("keys").results, replica: { rules: OLD } });

test("there is a choice of rule sets if a suite has several", () => {
  assert.deepEqual(choices([AFTER, KEYS, BEFORE]), [OLD, NEW], "the oldest first");
  assert.deepEqual(choices([BEFORE, KEYS]), []);
  assert.deepEqual(choices([BEFORE, BEFORE]), []);
  const unknown = report({ ...AFTER.results, replica: { rules: "unknown" } });
  assert.deepEqual(choices([BEFORE, unknown]), [], "an unknown rule set is no choice");
});

test("a suite without a choice is always shown", () => {
  const of = (chosen) => visible([BEFORE, AFTER, KEYS], chosen).map((one) => `${one.results.suite} ${nameOf(one)}`);
  assert.deepEqual(of(NEW), [`users ${NEW}`, `keys ${OLD}`]);
  assert.deepEqual(of(OLD), [`users ${OLD}`, `keys ${OLD}`]);
  assert.deepEqual(visible([BEFORE, KEYS], null), [BEFORE, KEYS]);
});

test("the oldest and the newest rules are compared", () => {
  const [pair, ...more] = pairs([AFTER, KEYS, BEFORE]);
  assert.deepEqual([pair.suite, pair.old, pair.new, more.length], ["users", BEFORE, AFTER, 0]);
  assert.deepEqual(pairs([BEFORE, KEYS]), []);
});

test("a change is the new cost divided by the old", () => {
  const [pair] = pairs([BEFORE, AFTER]);
  const rows = changes(pair, "charge");
  const row = rows.find((of) => of.section === "insert" && of.name === "middle 1" && of.column === "btree");
  const of = (one) => one.results.cases.find((each) => each.section === "insert" && each.name === "middle 1" && each.column === "btree");
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
