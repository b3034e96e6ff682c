import assert from "node:assert/strict";
import { test } from "node:test";
import { errorText, estimate } from "../../src/answer/estimate.js";
import { points } from "../../src/answer/points.js";
import { ranked } from "../../src/answer/rank.js";
import { committed, report } from "./results.js";

const USERS = committed("users");
const ALL = points(USERS);
const AT = { n: 100, payload: 100, rows: 1_000_000, place: "middle" };
const btree = ALL.columns.find((column) => column.key === "btree");

test("all measured inserts are told as they were measured", () => {
  for (const of of USERS.results.cases) {
    const found = of.outcome.measured;
    const match = /^(middle|end) ([\d ]+)$/.exec(of.name);
    if (of.section !== "insert" || !match || !found) continue;
    const column = ALL.columns.find((one) => one.key === of.column);
    const told = estimate(ALL, column, { ...AT, place: match[1], n: Number(match[2].replace(/ /g, "")) });
    assert.equal(told.kind, "measured");
    assert.equal(told.cost.instructions, found.instructions);
    assert.equal(told.cost.message.cycles, found.detail.cost.cycles);
    const { inside } = found.detail.cost;
    assert.equal(told.cost.message.charge, inside.charge);
    assert.equal(told.cost.charge, found.instructions + inside.charge - inside.instructions, "without what is around the work");
  }
});

test("rows that were measured with that table or length are measured too", () => {
  assert.equal(estimate(ALL, btree, { ...AT, rows: 10_000 }).kind, "measured");
  assert.equal(estimate(ALL, btree, { ...AT, payload: 1_000, rows: 100_000 }).kind, "measured");
});

test("between sizes a figure lies between its neighbours, and says which", () => {
  const cost = (n) => estimate(ALL, btree, { ...AT, n }).cost;
  const told = estimate(ALL, btree, { ...AT, n: 300 });
  assert.equal(told.kind, "interpolated");
  assert.match(told.how, /between 100 and 1\u202f000 rows a message/);
  for (const value of ["instructions", "charge", "cycles"]) {
    assert.ok(told.cost[value] > cost(100)[value] && told.cost[value] < cost(1_000)[value], value);
  }
  assert.match(errorText(told), /^points around are missed by up to /);
});

test("an error is that of the points around", () => {
  const engines = ALL.columns.filter((column) => !["append", "array"].includes(column.key));
  const worst = (place, n) => Math.max(...engines.map((column) => estimate(ALL, column, { ...AT, place, n }).error));
  assert.ok(worst("end", 700) < 0.1, "costs are nearly straight there");
  assert.ok(worst("middle", 20) > 0.5, "and jump there: a commit begins to go through the page cache");
});

test("the same message in tables between measured ones is interpolated", () => {
  const told = estimate(ALL, btree, { ...AT, rows: 30_000 });
  assert.equal(told.kind, "interpolated");
  assert.match(told.how, /between 10\u202f000 and 100\u202f000 rows in the table/);
});

test("other sizes are scaled by measured ratios", () => {
  const told = estimate(ALL, btree, { ...AT, n: 1_000, payload: 1_000, rows: 10_000 });
  assert.equal(told.kind, "scaled");
  assert.match(told.how, /^1\u202f000 rows a message × [\d.]+ \(1\u202f000 bytes\) × [\d.]+ \(10\u202f000 rows\)$/);
  assert.equal(errorText(told), "", "each of its points was measured");
  const alone = estimate(ALL, btree, { ...AT, n: 1_000 }).cost.instructions;
  const [insert, curve] = [estimate(ALL, btree, AT), estimate(ALL, btree, { ...AT, rows: 10_000 })];
  const long = estimate(ALL, btree, { ...AT, payload: 1_000, rows: 100_000 });
  const beside = estimate(ALL, btree, { ...AT, rows: 100_000 });
  const expected =
    (alone * curve.cost.instructions * long.cost.instructions) / insert.cost.instructions / beside.cost.instructions;
  assert.ok(Math.abs(told.cost.instructions / expected - 1) < 1e-9);
});

test("beyond what was measured there is no figure, but the range", () => {
  for (const [asked, expected] of [
    [{ n: 20_000 }, /20\u202f000 rows a message is outside .* 1 to 10\u202f000/],
    [{ rows: 10 }, /10 rows in the table is outside .* 1\u202f000 to 1\u202f000\u202f000/],
    [{ payload: 1 }, /1 bytes a row is outside .* 10 to 100\u202f000/],
    [{ place: "nowhere" }, /not measured at this place/],
  ]) {
    const told = estimate(ALL, btree, { ...AT, ...asked });
    assert.equal(told.kind, "none");
    assert.equal(told.cost, null);
    assert.match(told.how, expected);
  }
});

test("one section alone fixes the other sizes", () => {
  const alone = report({ ...USERS.results, cases: USERS.results.cases.filter((of) => of.section === "insert") });
  const all = points(alone);
  const column = all.columns.find((one) => one.key === "btree");
  assert.equal(estimate(all, column, { ...AT, n: 20 }).kind, "interpolated");
  assert.match(estimate(all, column, { ...AT, rows: 10_000 }).how, /measured with 1\u202f000\u202f000 rows alone/);
  assert.match(estimate(all, column, { ...AT, payload: 10 }).how, /measured with 100 bytes alone/);
});

test("without details there are instructions alone, and they rank", () => {
  const cases = USERS.results.cases
    .filter((of) => of.section === "insert")
    .map((of) => ({ ...of, outcome: { measured: { ...of.outcome.measured, detail: null } } }));
  const bare = report({ ...USERS.results, cases });
  const { rows, by } = ranked(bare, points(bare), { ...AT, nodes: 13, usd: 1, by: "cycles" }, 13);
  assert.equal(by, "instructions");
  assert.ok(rows.every((row) => row.instructions > 0 && Number.isNaN(row.cycles)));
});

test("floors have no rank, the others are ranked by what is asked", () => {
  for (const by of ["cycles", "message", "instructions"]) {
    const { rows } = ranked(USERS, ALL, { ...AT, nodes: 13, usd: 1.36, by }, 13);
    const own = rows.filter((row) => row.rank);
    assert.deepEqual(own.map((row) => row.rank), own.map((_, at) => at + 1));
    const key = by === "message" ? "cycles" : by;
    assert.ok(own.every((row, at) => at === 0 || own[at - 1][key] <= row[key]));
    assert.ok(rows.filter((row) => row.floor).every((row) => row.rank === null));
  }
});

test("cycles follow the nodes, dollars the rate", () => {
  const at = (nodes, usd) => ranked(USERS, ALL, { ...AT, nodes, usd, by: "cycles" }, 13).rows[0];
  assert.equal(at(26, 1).cycles, 2 * at(13, 1).cycles);
  assert.equal(at(13, 3).usd, 3 * at(13, 1).usd);
});

test("more than a message can do is not ranked", () => {
  const { rows } = ranked(USERS, ALL, { ...AT, n: 10_000, payload: 100_000, rows: 1_000_000, nodes: 13, usd: 1, by: "cycles" }, 13);
  const heavy = rows.filter((row) => row.charge > ALL.limit);
  assert.ok(heavy.length > 0 && heavy.every((row) => !row.fits && row.rank === null));
});
