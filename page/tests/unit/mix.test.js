import assert from "node:assert/strict";
import { test } from "node:test";
import { uncertain } from "../../src/answer/estimate.js";
import { ranked } from "../../src/answer/rank.js";
import { OPERATIONS, measurements } from "../../src/mix/operations.js";
import { estimateMix, leaveOneOut } from "../../src/mix/estimate.js";
import { pragmas, undoes } from "../../src/mix/settings.js";
import { sourceOf, sources } from "../../src/mix/sources.js";
import * as names from "../../src/names.js";
import { MIXES, MIXES_LATER } from "../fixtures/mixes.js";
import { committed } from "./results.js";

const USERS = committed("users");
const MIX = committed("mix");
const ALL = measurements(USERS);
const NONE = { insert: 0, read: 0, update: 0, delete: 0, scan: 0, indexes: 0, rows: 1_000_000, payload: 100, place: "random" };
const engine = (key) => ALL.engines.find((of) => of.key === key);
const cost = (mix, key = "btree") => estimateMix(ALL, engine(key), { ...NONE, ...mix });

test("operations of one kind are recognised by the names of cases", () => {
  for (const [section, name, expected] of [
    ["work", "read 1 000 uniform, warm", { operation: "read", place: "random", n: 1_000 }],
    ["work", "update 1 uniform, warm", { operation: "update", place: "random", n: 1 }],
    ["work", "100 ranges of 100 uniform, warm", { operation: "scan", place: "random", n: 100 }],
    ["work", "1 range of 100 uniform, warm", { operation: "scan", place: "random", n: 1 }],
    ["base", "10: read middle", { operation: "read", place: "middle", n: 10 }],
    ["locality", "middle: update 100", { operation: "update", place: "middle", n: 100 }],
    ["curve", "100 of 1 000 rows: read uniform", { operation: "read", place: "random", n: 100 }],
    ["payload", "10 bytes, 100 rows of 1 000 000: update uniform", { operation: "update", place: "random", n: 100 }],
    ["insert", "end 50", { operation: "insert", place: "end", n: 50 }],
  ]) assert.deepEqual({ ...names.operation(section, name) }, expected, name);
  for (const [section, name] of [
    ["work", "read missing 1 000 uniform, warm"], ["work", "overwrite 1 uniform, warm"], ["work", "read 1 000 Zipf, warm"], ["work", "scan, warm"],
    ["work", "read 1 uniform, upgraded"], ["locality", "uniform, sorted: read 100"], ["working-set", "100 rows: read 1 000"],
  ]) assert.equal(names.operation(section, name), null, name);
});

test("a measured message is returned unchanged", () => {
  for (const operation of OPERATIONS) {
    const all = engine("btree").measured.filter((of) => of.operation === operation);
    assert.ok(all.length > 1, operation);
    for (const { n, rows, payload, place, parts } of all) {
      const found = cost({ [operation]: n, rows, payload, place });
      assert.equal(found.kind, "measured", `${operation} ${n}`);
      assert.equal(found.cost.instructions, parts.compute + parts.touched + parts.stable);
      assert.equal(found.error, null);
    }
  }
});

test("a further operation costs something, and less than in a message of its own", () => {
  for (const place of ["random", "middle"]) {
    for (const key of ["btree", "sqlite/persist,cache_size=1000", "sqlite/wal", "sqlite-vfs"]) {
      const of = (mix) => cost({ place, ...mix }, key).cost.instructions;
      const [one, other, both] = [of({ insert: 1 }), of({ read: 10 }), of({ insert: 1, read: 10 })];
      assert.ok(both > Math.max(one, other) && both < one + other, `${key} ${place}: ${one} and ${other} give ${both}`);
    }
  }
});

test("the same pages are paid once where operations work on the same rows", () => {
  const pages = (mix) => { const { instructions } = cost(mix).cost; return instructions; };
  const far = pages({ insert: 1, read: 10 }) - pages({ insert: 1, read: 1 });
  const near = pages({ insert: 1, read: 10, place: "middle" }) - pages({ insert: 1, read: 1, place: "middle" });
  assert.ok(near < far / 3, `${near} in the middle, ${far} at random`);
});

test("what was not measured has no figure, but a reason", () => {
  for (const [mix, expected] of [
    [{}, /^the message does nothing$/],
    [{ insert: 5, indexes: 1 }, /^secondary indexes are not in these measurements$/],
    [{ insert: 5, read: 2_000 }, /^reads: 2\u202f000 reads per message is outside of the measured range: 1 to 1\u202f000$/],
    [{ insert: 5, read: 5, rows: 10 }, /10 rows in the table is outside of the measured range/],
    [{ insert: 5, delete: 2, place: "middle" }, /^deletions: measured with 1 deletions per message only$/],
  ]) {
    const found = cost(mix);
    assert.equal(found.kind, "none");
    assert.equal(found.cost, null);
    assert.match(found.how, expected);
  }
});

const compared = (mixes) => mixes.flatMap(({ mix, instructions }) => Object.entries(instructions).map(([key, real]) => {
  const found = cost(mix, key);
  return { key, mix, real, found, within: found.low <= real && real <= found.high };
}));

test("measured mixes are estimated, and nine of ten are within the stated range", () => {
  const all = compared(MIXES);
  assert.equal(all.length, 19 * 7);
  assert.ok(all.every(({ found }) => found.kind === "estimated"));
  assert.ok(all.filter((of) => of.within).length / all.length > 0.9);
  const errors = all.map(({ real, found }) => Math.abs(found.cost.instructions / real - 1)).sort((one, other) => one - other);
  assert.ok(errors[errors.length >> 1] < 0.15 && errors.at(-1) < 0.5, `${errors[errors.length >> 1]}, ${errors.at(-1)}`);
  // Where the page is wrong, it asks to measure.
  for (const { key, mix, found } of all.filter((of) => !of.within)) assert.ok(uncertain(found), `${key} ${JSON.stringify(mix)}`);
});

test("mixes that no estimate was adapted to are within the stated range", () => {
  const all = compared(MIXES_LATER);
  assert.ok(all.filter((of) => of.within).length / all.length > 0.9, all.filter((of) => !of.within).map(({ key, mix }) => `${key} ${JSON.stringify(mix)}`).join("; "));
});

for (const [name, least] of [["users", 0.9], ["users-2025-10", 0.75]]) {
  test(`${name}: operations that are left out are within the stated range`, () => {
    const all = measurements(committed(name));
    const found = all.engines.flatMap((of) => Object.values(leaveOneOut(all, of)));
    const sum = (value) => found.reduce((total, of) => total + value(of), 0);
    const left = sum((of) => of.errors.length);
    assert.ok(left >= 100, `${left} points`);
    // The neighbours are further apart than in use.
    assert.ok(sum((of) => of.within) / left > least, `${sum((of) => of.within)} of ${left}`);
  });
}

test("a file of the suite mix answers with what it measured", () => {
  const [source, ...more] = sources([MIX]);
  assert.equal(more.length, 0);
  assert.deepEqual(source.mix, { insert: 5, read: 20, update: 0, delete: 0, scan: 0, indexes: 2, rows: 200_000, payload: 300, place: "random" });
  const { rows } = ranked(MIX, source, { ...source.mix, nodes: 13, usd: 1.36, by: "instructions" }, 13, source.cost);
  const map = rows.find((row) => row.key === "btree");
  const of = MIX.results.cases.find((one) => one.configuration === "btree").outcome.measured;
  assert.equal(map.instructions, of.instructions / 20);
  assert.equal(map.estimate.kind, "measured");
  assert.equal(rows[0].key, "sqlite/wal,cache_size=1000");
  const other = source.cost(source.columns[0], { ...source.mix, read: 19, indexes: 0 });
  assert.equal(other.kind, "none");
  assert.match(other.how, /one mix only, with other reads, indexes$/);
});

test("an exact measurement goes before estimates", () => {
  const all = sources([USERS, MIX]);
  assert.equal(sourceOf(all, all[1].mix).report, MIX);
  assert.equal(sourceOf(all, { ...all[1].mix, indexes: 0 }).report, USERS);
  assert.equal(sourceOf(sources([MIX]), { ...all[1].mix, indexes: 0 }).report, MIX, "for want of another");
});

test("the names of mixes are those of the suite", () => {
  assert.deepEqual(names.mix("5 inserts, 20 reads, at random"), { insert: 5, read: 20, place: "random" });
  assert.deepEqual(names.mix("1 000 updates, 1 scan, in the middle"), { update: 1_000, scan: 1, place: "middle" });
  for (const other of ["", "at random", "5 apples, at random", "5 inserts", "5 inserts, nowhere"]) assert.equal(names.mix(other), null, other);
});

test("settings are PRAGMAs to paste, those of the file first", () => {
  assert.deepEqual(pragmas({ cache_size: "1000", journal_mode: "wal" }), ["PRAGMA journal_mode = WAL;", "PRAGMA cache_size = 1000;"]);
  assert.deepEqual(pragmas({ journal_mode: "persist", cache_size: "-32768", page_size: "16384" })[0], "PRAGMA page_size = 16384;");
  assert.deepEqual(pragmas({}), []);
  assert.deepEqual(pragmas({ "x; DROP": "1", cache_size: "1; DROP" }), []);
});

test("a journal that is off undoes nothing", () => {
  assert.equal(undoes({ journal_mode: "off" }), false);
  for (const settings of [null, {}, { journal_mode: "memory" }]) assert.equal(undoes(settings), true);
});
