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

test("measured inserts are returned unchanged", () => {
  for (const of of USERS.results.cases) {
    const found = of.outcome.measured;
    const match = /^(middle|end) ([\d ]+)$/.exec(of.name);
    if (of.section !== "insert" || !match || !found) continue;
    const column = ALL.columns.find((one) => one.key === of.column);
    const estimated = estimate(ALL, column, { ...AT, place: match[1], n: Number(match[2].replace(/ /g, "")) });
    assert.equal(estimated.kind, "measured");
    assert.equal(estimated.cost.instructions, found.instructions);
    assert.equal(estimated.cost.message.cycles, found.detail.cost.cycles);
    const { inside } = found.detail.cost;
    assert.equal(estimated.cost.message.charge, inside.charge);
    assert.equal(estimated.cost.charge, found.instructions + inside.charge - inside.instructions, "without what is around the work");
  }
});

test("points of curve and payload count as measured", () => {
  assert.equal(estimate(ALL, btree, { ...AT, rows: 10_000 }).kind, "measured");
  assert.equal(estimate(ALL, btree, { ...AT, payload: 1_000, rows: 100_000 }).kind, "measured");
});

test("a figure between sizes lies between its neighbours and names them", () => {
  const cost = (n) => estimate(ALL, btree, { ...AT, n }).cost;
  const estimated = estimate(ALL, btree, { ...AT, n: 300 });
  assert.equal(estimated.kind, "interpolated");
  assert.match(estimated.how, /between 100 and 1\u202f000 rows per message/);
  for (const value of ["instructions", "charge", "cycles"]) {
    assert.ok(estimated.cost[value] > cost(100)[value] && estimated.cost[value] < cost(1_000)[value], value);
  }
  assert.match(errorText(estimated), /^surrounding points are missed by up to /);
});

test("the error is that of the surrounding points", () => {
  const engines = ALL.columns.filter((column) => !["append", "array"].includes(column.key));
  const worst = (place, n) => Math.max(...engines.map((column) => estimate(ALL, column, { ...AT, place, n }).error));
  assert.ok(worst("end", 700) < 0.1, "costs are nearly straight there");
  assert.ok(worst("middle", 20) > 0.5, "and jump there: a commit begins to go through the page cache");
});

test("the same message in tables of other sizes is interpolated", () => {
  const estimated = estimate(ALL, btree, { ...AT, rows: 30_000 });
  assert.equal(estimated.kind, "interpolated");
  assert.match(estimated.how, /between 10\u202f000 and 100\u202f000 rows in the table/);
});

test("other sizes are scaled by measured ratios", () => {
  const estimated = estimate(ALL, btree, { ...AT, n: 1_000, payload: 1_000, rows: 10_000 });
  assert.equal(estimated.kind, "scaled");
  assert.match(estimated.how, /^1\u202f000 rows per message × [\d.]+ \(1\u202f000 bytes\) × [\d.]+ \(10\u202f000 rows\)$/);
  assert.equal(errorText(estimated), "", "each of its points was measured");
  const alone = estimate(ALL, btree, { ...AT, n: 1_000 }).cost.instructions;
  const [insert, curve] = [estimate(ALL, btree, AT), estimate(ALL, btree, { ...AT, rows: 10_000 })];
  const long = estimate(ALL, btree, { ...AT, payload: 1_000, rows: 100_000 });
  const many = estimate(ALL, btree, { ...AT, rows: 100_000 });
  const expected =
    (alone * curve.cost.instructions * long.cost.instructions) / insert.cost.instructions / many.cost.instructions;
  assert.ok(Math.abs(estimated.cost.instructions / expected - 1) < 1e-9);
});

test("beyond the measured range there is no figure, but the range is named", () => {
  for (const [asked, expected] of [
    [{ n: 20_000 }, /20\u202f000 rows per message is outside .* 1 to 10\u202f000/],
    [{ rows: 10 }, /10 rows in the table is outside .* 1\u202f000 to 1\u202f000\u202f000/],
    [{ payload: 1 }, /1 bytes per row is outside .* 10 to 100\u202f000/],
    [{ place: "nowhere" }, /not measured at this place/],
  ]) {
    const estimated = estimate(ALL, btree, { ...AT, ...asked });
    assert.equal(estimated.kind, "none");
    assert.equal(estimated.cost, null);
    assert.match(estimated.how, expected);
  }
});

test("a single section fixes the other sizes", () => {
  const alone = report({ ...USERS.results, cases: USERS.results.cases.filter((of) => of.section === "insert") });
  const all = points(alone);
  const column = all.columns.find((one) => one.key === "btree");
  assert.equal(estimate(all, column, { ...AT, n: 20 }).kind, "interpolated");
  assert.match(estimate(all, column, { ...AT, rows: 10_000 }).how, /measured with 1\u202f000\u202f000 rows only/);
  assert.match(estimate(all, column, { ...AT, payload: 10 }).how, /measured with 100 bytes only/);
});

test("without details, instructions determine the rank", () => {
  const cases = USERS.results.cases
    .filter((of) => of.section === "insert")
    .map((of) => ({ ...of, outcome: { measured: { ...of.outcome.measured, detail: null } } }));
  const bare = report({ ...USERS.results, cases });
  const { rows, by } = ranked(bare, points(bare), { ...AT, nodes: 13, usd: 1, by: "cycles" }, 13);
  assert.equal(by, "instructions");
  assert.ok(rows.every((row) => row.instructions > 0 && Number.isNaN(row.cycles)));
});

test("engines are ranked by the requested cost, floors are not ranked", () => {
  for (const by of ["cycles", "message", "instructions"]) {
    const { rows } = ranked(USERS, ALL, { ...AT, nodes: 13, usd: 1.36, by }, 13);
    const own = rows.filter((row) => row.rank);
    assert.deepEqual(own.map((row) => row.rank), own.map((_, at) => at + 1));
    const key = by === "message" ? "cycles" : by;
    assert.ok(own.every((row, at) => at === 0 || own[at - 1][key] <= row[key]));
    assert.ok(rows.filter((row) => row.floor).every((row) => row.rank === null));
  }
});

test("cycles are proportional to the nodes, dollars to the rate", () => {
  const at = (nodes, usd) => ranked(USERS, ALL, { ...AT, nodes, usd, by: "cycles" }, 13).rows[0];
  assert.equal(at(26, 1).cycles, 2 * at(13, 1).cycles);
  assert.equal(at(13, 3).usd, 3 * at(13, 1).usd);
});

test("work beyond the limit of a message is not ranked", () => {
  const { rows } = ranked(USERS, ALL, { ...AT, n: 10_000, payload: 100_000, rows: 1_000_000, nodes: 13, usd: 1, by: "cycles" }, 13);
  const heavy = rows.filter((row) => row.charge > ALL.limit);
  assert.ok(heavy.length > 0 && heavy.every((row) => !row.fits && row.rank === null));
});
