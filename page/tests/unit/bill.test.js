import assert from "node:assert/strict";
import { test } from "node:test";
import { billed, envelope, memory, month } from "../../src/estimates/rank.js";
import { sources } from "../../src/question.js";
import { FEES, committed, report } from "../results.js";

const USERS = committed("users");
const [SOURCE] = sources([USERS]);
const ASKED = {
  perDay: 1_000, insert: 100, read: 0, update: 0, delete: 0, scan: 0, indexes: 0, payload: 100, rows: 1_000_000, place: "middle", gib: null, nodes: 13, usd: 1.36, by: "cycles",
};
const bills = (asked) => billed(SOURCE, { ...ASKED, ...asked }, 13);
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
  const [row] = billed(sources([bare])[0], ASKED, 13);
  assert.equal(row.instructions, row.estimate.cost.instructions);
  assert.equal(row.month.messages, 30_000 * (6_200_000 + 2_000 * 10_000));
});

test("reads are in the bill, and only rows that are written are sent", () => {
  const [one, more, changed] = [ofMap({ insert: 1 }), ofMap({ insert: 1, read: 20 }), ofMap({ insert: 1, read: 20, update: 2 })];
  assert.ok(more.month.instructions > one.month.instructions);
  assert.equal(more.month.messages, one.month.messages);
  assert.ok(Math.abs(changed.month.messages - more.month.messages - 30_000 * 2_000 * 200) < 1);
});
