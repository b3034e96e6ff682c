import assert from "node:assert/strict";
import { test } from "node:test";
import { errorText, estimate, leaveOneOut, uncertain } from "../../src/answer/estimate.js";
import { points } from "../../src/answer/points.js";
import { compared as besides, ranked } from "../../src/answer/rank.js";
import { MEASURED, MEASURED_LATER } from "../fixtures/measured.js";
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
    const column = ALL.columns.find((one) => one.key === of.configuration);
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
  assert.match(errorText(estimated), /^[\d.]+\u00a0M to [\d.]+\u00a0M instructions: wrong by up to \d+\u00a0%$/);
});

test("the error is small where costs are straight, and large where they jump", () => {
  const engines = ALL.columns.filter((column) => !["append", "array"].includes(column.key));
  const worst = (place, n) => Math.max(...engines.map((column) => estimate(ALL, column, { ...AT, place, n }).error));
  assert.ok(worst("end", 700) < 0.25, "costs are nearly straight there");
  assert.ok(worst("middle", 20) > 1, "and jump there: a commit begins to go through the page cache");
});

test("the same message in tables of other sizes is interpolated", () => {
  const estimated = estimate(ALL, btree, { ...AT, rows: 30_000 });
  assert.equal(estimated.kind, "interpolated");
  assert.match(estimated.how, /between 10\u202f000 and 100\u202f000 rows in the table/);
});

test("other sizes are estimated from the sizes around them", () => {
  const estimated = estimate(ALL, btree, { ...AT, n: 1_000, payload: 300, rows: 30_000 });
  assert.equal(estimated.kind, "estimated");
  assert.equal(estimated.how, "1\u202f000 rows per message, between 100 and 1\u202f000 bytes per row, between 10\u202f000 and 100\u202f000 rows in the table");
  assert.ok(estimated.low < estimated.cost.instructions && estimated.cost.instructions < estimated.high);
});

test("a small message does not take the scan of a large one", () => {
  // 100 rows go through the whole cache of SQLite, in proportion to the table; 1 row does not.
  const persist = ALL.columns.find((column) => column.key === "sqlite/persist");
  const small = estimate(ALL, persist, { ...AT, n: 1, rows: 100_000 }).cost.instructions;
  const measured = estimate(ALL, persist, { ...AT, n: 1 }).cost.instructions;
  assert.ok(small > measured * 0.7, `${small} of ${measured}: the fixed part hardly depends on the table`);
});

for (const suite of ["users", "users-2025-10"]) {
  test(`${suite}: points that are left out are within the stated range`, () => {
    const all = points(committed(suite));
    const found = all.columns.flatMap((column) => all.places.flatMap((place) => Object.values(leaveOneOut(all, column, place))));
    const left = found.reduce((sum, of) => sum + of.errors.length, 0);
    const within = found.reduce((sum, of) => sum + of.within, 0);
    assert.ok(left > 200, `${left} points`);
    // The neighbours are further apart than in use.
    assert.ok(within / left > 0.93, `${within} of ${left}`);
  });
}

/** Measured messages beside their estimates. */
const compared = (measured) => measured.flatMap(({ at, instructions }) => Object.entries(instructions).map(([key, real]) => {
  const estimated = estimate(ALL, ALL.columns.find((column) => column.key === key), at);
  return { key, at, real, estimated, within: estimated.low <= real && real <= estimated.high };
}));
const checked = compared(MEASURED);

test("5 rows of 300 bytes in 200 000 cost what the page says", () => {
  const example = checked.filter(({ at }) => at.n === 5 && at.payload === 300);
  assert.equal(example.length, 16);
  for (const { key, at, real, estimated, within } of example) {
    assert.ok(within, `${key} ${at.place}: ${real} is not between ${estimated.low} and ${estimated.high}`);
    const floor = key === "append" || key === "array";
    assert.ok(floor || Math.abs(estimated.cost.instructions / real - 1) < 0.3, `${key} ${at.place}: ${estimated.cost.instructions} for ${real}`);
  }
});

test("measured sizes are within the stated range, or the page asks to measure", () => {
  const outside = checked.filter((of) => !of.within);
  assert.ok(checked.length > 100 && outside.length / checked.length < 0.02, outside.map(({ key, at }) => `${key} ${JSON.stringify(at)}`).join());
  const trusted = checked.filter((of) => !uncertain(of.estimated));
  assert.ok(trusted.length > 5, `${trusted.length} are exact enough`);
  for (const { key, at, real, estimated } of trusted) {
    assert.ok(Math.abs(estimated.cost.instructions / real - 1) < 0.25, `${key} ${JSON.stringify(at)}`);
  }
});

test("sizes that no estimate was adapted to are within the stated range", () => {
  const later = compared(MEASURED_LATER);
  assert.equal(later.length, 80);
  assert.deepEqual(later.filter((of) => !of.within).map(({ key, at }) => `${key} ${JSON.stringify(at)}`), []);
});

test("new rows at random are taken from every section that has them", () => {
  assert.deepEqual(ALL.places, ["middle", "end", "random"]);
  const at = { ...AT, place: "random" };
  assert.equal(estimate(ALL, btree, { ...at, n: 1 }).kind, "measured", "insert 1 uniform, warm");
  assert.equal(estimate(ALL, btree, { ...at, n: 1_000 }).kind, "measured", "insert 1 000 uniform, warm");
  assert.equal(estimate(ALL, btree, { ...at, rows: 10_000 }).kind, "measured", "100 of 10 000 rows: insert uniform");
  assert.equal(estimate(ALL, btree, { ...at, n: 300 }).kind, "interpolated");
  assert.match(estimate(ALL, btree, { ...at, payload: 300 }).how, /^measured with 100 bytes per row only$/);
});

test("a case measured by several sections has one value", () => {
  for (const column of ALL.columns) {
    const seen = new Map();
    for (const { n, rows, payload, place, parts } of column.points) {
      const key = [n, rows, payload, place].join();
      assert.deepEqual(seen.get(key) ?? parts, parts, `${column.key}: ${key}`);
      seen.set(key, parts);
    }
  }
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
  assert.match(estimate(all, column, { ...AT, rows: 10_000 }).how, /measured with 1\u202f000\u202f000 rows in the table only/);
  assert.match(estimate(all, column, { ...AT, payload: 10 }).how, /measured with 100 bytes per row only/);
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

test("the answer names a library as advised and as shipped, or else the most expensive", () => {
  const row = (rank, key, insteadOf = null) => ({ rank, key, heading: key.toUpperCase(), insteadOf });
  const names = (...rows) => besides(rows).map((of) => of.name);
  const floor = row(null, "array");
  assert.deepEqual(names(row(1, "a"), row(2, "b"), row(3, "c"), floor), ["B", "C"]);
  assert.deepEqual(names(row(1, "a"), row(2, "b"), floor), ["B"]);
  assert.deepEqual(names(row(1, "a"), row(2, "b"), row(3, "small", "s"), row(4, "s"), row(5, "c")), ["B", "SMALL", "S, as it is shipped,"]);
  assert.deepEqual(names(row(1, "small", "s"), row(2, "s"), row(3, "c")), ["S, as it is shipped,"]);
  assert.deepEqual(names(row(1, "a"), row(2, "small", "s"), row(3, "c")), ["SMALL", "C"]);
  assert.deepEqual(names(row(1, "a")), []);
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
