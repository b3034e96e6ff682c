import assert from "node:assert/strict";
import { test } from "node:test";
import { pragmas, undoes } from "../../src/data.js";
import { OPERATIONS, errorText, estimate, interpolate, leaveOneOut, measurements, points, uncertain } from "../../src/estimates/inserts.js";
import { estimateMix, leaveOneOut as leaveOut } from "../../src/estimates/mix.js";
import { billed, compared as besides, envelope, memory, month, ranked } from "../../src/estimates/rank.js";
import * as names from "../../src/names.js";
import { sourceOf, sources } from "../../src/question.js";
import { FEES, committed, report } from "../results.js";
import { MEASURED, MEASURED_LATER, MIXES, MIXES_LATER } from "./measured.js";

const USERS = committed("users");
const MIX = committed("mix");
const ALL = points(USERS);
const AT = { n: 100, payload: 100, rows: 1_000_000, place: "middle" };
const btree = ALL.columns.find((column) => column.key === "btree");
const KINDS = measurements(USERS);
const NONE = { insert: 0, read: 0, update: 0, delete: 0, scan: 0, indexes: 0, rows: 1_000_000, payload: 100, place: "random" };
const engine = (key) => KINDS.engines.find((of) => of.key === key);
const cost = (mix, key = "btree") => estimateMix(KINDS, engine(key), { ...NONE, ...mix });
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

const comparedMixes = (mixes) => mixes.flatMap(({ mix, instructions }) => Object.entries(instructions).map(([key, real]) => {
  const found = cost(mix, key);
  return { key, mix, real, found, within: found.low <= real && real <= found.high };
}));

test("measured mixes are estimated, and nine of ten are within the stated range", () => {
  const all = comparedMixes(MIXES);
  assert.equal(all.length, 19 * 7);
  assert.ok(all.every(({ found }) => found.kind === "estimated"));
  assert.ok(all.filter((of) => of.within).length / all.length > 0.9);
  const errors = all.map(({ real, found }) => Math.abs(found.cost.instructions / real - 1)).sort((one, other) => one - other);
  assert.ok(errors[errors.length >> 1] < 0.15 && errors.at(-1) < 0.5, `${errors[errors.length >> 1]}, ${errors.at(-1)}`);
  // Where the page is wrong, it asks to measure.
  for (const { key, mix, found } of all.filter((of) => !of.within)) assert.ok(uncertain(found), `${key} ${JSON.stringify(mix)}`);
});

test("mixes that no estimate was adapted to are within the stated range", () => {
  const all = comparedMixes(MIXES_LATER);
  assert.ok(all.filter((of) => of.within).length / all.length > 0.9, all.filter((of) => !of.within).map(({ key, mix }) => `${key} ${JSON.stringify(mix)}`).join("; "));
});

for (const [name, least] of [["users", 0.9], ["users-2025-10", 0.75]]) {
  test(`${name}: operations that are left out are within the stated range`, () => {
    const all = measurements(committed(name));
    const found = all.engines.flatMap((of) => Object.values(leaveOut(all, of)));
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

const [SOURCE] = sources([USERS]);
const BILLED = {
  perDay: 1_000, insert: 100, read: 0, update: 0, delete: 0, scan: 0, indexes: 0, payload: 100, rows: 1_000_000, place: "middle", gib: null, nodes: 13, usd: 1.36, by: "cycles",
};
const bills = (asked) => billed(SOURCE, { ...BILLED, ...asked }, 13);
const ofMap = (asked) => bills(asked).find((row) => row.key === "btree");

/** The example in `docs/report.md`. */
test("a month consists of instructions, messages, storage and the base fee", () => {
  const use = { perDay: 1_000, instructions: 7_093_476, bytes: 10_139, gib: 0.268 };
  const found = month(FEES, use, 1);
  const rounded = Object.fromEntries(Object.entries(found).map(([part, cycles]) => [part, Math.round(cycles)]));
  assert.deepEqual(rounded, {
    instructions: 212_804_280_000,
    messages: 794_340_000_000,
    storage: 220_553_280_000,
    base: 25_920_000_000,
    total: 1_253_617_560_000,
  });
  const old = month({ ...FEES, storage_gib_second: 127_000, canister_second: 0 }, use, 1);
  assert.equal(old.base, 0);
  assert.ok(Math.abs(old.storage / found.storage - 127_000 / 317_500) < 1e-12);
  assert.ok(Math.abs(month(FEES, use, 2).total / found.total - 2) < 1e-12, "prices follow the nodes");
});

test("storage is that of the measured fixture", () => {
  const fixture = USERS.results.fixtures.find((of) => of.configuration === "btree" && of.rows === 1_000_000 && of.payload === 100);
  const { heap_pages, stable_pages } = fixture.outcome.measured;
  const gib = ((heap_pages + stable_pages) * 65_536) / 2 ** 30;
  assert.deepEqual(memory(USERS, "btree", { rows: 1_000_000, payload: 100 }), { gib, rows: 1_000_000, payload: 100, exact: true });
  const more = memory(USERS, "btree", { rows: 3_000_000, payload: 100 });
  assert.equal(more.exact, false);
  assert.ok(Math.abs(more.gib / gib - 3) < 1e-12, "in proportion to the rows");
  assert.equal(memory(USERS, "btree", { rows: 1_000, payload: 90_000 }).payload, 100_000, "rows nearest in length come first");
  assert.equal(memory(USERS, "nothing", { rows: 1, payload: 1 }), null);
});

test("the bill uses measured instructions and storage, and the bytes of the rows", () => {
  const row = ofMap();
  const of = USERS.results.cases.find((one) => one.section === "insert" && one.name === "middle 100" && one.configuration === "btree");
  assert.equal(row.instructions, of.outcome.measured.instructions, "the counter includes the whole charge");
  assert.equal(row.month.instructions, 30_000 * row.instructions);
  const bytes = envelope(row.estimate.cost, FEES);
  assert.equal(bytes, 139);
  assert.equal(row.month.messages, 30_000 * (6_200_000 + 2_000 * (10_000 + bytes)));
  assert.ok(Math.abs(row.usd - (row.month.total / 1e12) * 1.36) < 1e-9);
  const whole = ofMap({ by: "message" });
  assert.equal(whole.instructions, of.outcome.measured.detail.cost.inside.charge);
});

test("engines are ranked by cost, floors are not ranked", () => {
  const rows = bills();
  const ranks = rows.filter((row) => !row.floor);
  assert.deepEqual(ranks.map((row) => row.rank), ranks.map((_, at) => at + 1));
  assert.ok(ranks.every((row, at) => at === 0 || ranks[at - 1].usd <= row.usd));
  assert.ok(rows.slice(ranks.length).every((row) => row.floor && row.rank === null && row.usd > 0));
});

test("storage entered by the reader applies to every engine", () => {
  const rows = bills({ gib: 2 });
  assert.ok(rows.every((row) => row.gib === 2 && row.memory === null));
  assert.equal(ofMap({ gib: 0 }).month.storage, 0);
});

test("beyond the measured rows, instructions are constant and storage grows", () => {
  const [one, more] = [ofMap(), ofMap({ rows: 5_000_000 })];
  assert.equal(more.clamped, 1_000_000);
  assert.equal(more.instructions, one.instructions);
  assert.ok(Math.abs(more.month.storage / one.month.storage - 5) < 1e-9);
});

test("without a figure there is no bill", () => {
  assert.ok(bills({ insert: 1_000_000 }).every((row) => row.month === null && Number.isNaN(row.usd) && row.rank === null));
  const heavy = bills({ insert: 10_000, payload: 100_000 }).filter((row) => !row.fits);
  assert.ok(heavy.length > 0 && heavy.every((row) => row.month === null));
});

test("without details, the bill covers the work and the bytes of the rows", () => {
  const cases = USERS.results.cases.filter((of) => of.section === "insert")
    .map((of) => ({ ...of, outcome: { measured: { ...of.outcome.measured, detail: null } } }));
  const bare = report({ ...USERS.results, cases });
  const [row] = billed(sources([bare])[0], BILLED, 13);
  assert.equal(row.instructions, row.estimate.cost.instructions);
  assert.equal(row.month.messages, 30_000 * (6_200_000 + 2_000 * 10_000));
});

test("reads are in the bill, and only rows that are written are sent", () => {
  const [one, more, changed] = [ofMap({ insert: 1 }), ofMap({ insert: 1, read: 20 }), ofMap({ insert: 1, read: 20, update: 2 })];
  assert.ok(more.month.instructions > one.month.instructions);
  assert.equal(more.month.messages, one.month.messages);
  assert.ok(Math.abs(changed.month.messages - more.month.messages - 30_000 * 2_000 * 200) < 1);
});
