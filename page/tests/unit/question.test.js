import assert from "node:assert/strict";
import { test } from "node:test";
import { exactly, narrowed } from "../../src/command.js";
import { LIMITS, read, split, written } from "../../src/question.js";

const FIRST = {
  insert: 100, read: 0, update: 0, delete: 0, scan: 0, indexes: 0, rows: 1_000_000, payload: 100, place: "middle",
  nodes: 13, usd: 1.36, by: "cycles", perDay: 1_000, gib: null, from: null, rules: null,
};

test("the first question leaves the address empty, and another one returns from it", () => {
  assert.equal(written(FIRST, FIRST), "");
  const asked = { ...FIRST, insert: 5, read: 20, indexes: 2, place: "random", rows: 200_000, payload: 300, usd: 1.5, gib: 0.25, from: "a b&c=d?#.json" };
  assert.deepEqual({ ...FIRST, ...read(written(asked, FIRST)) }, asked);
  assert.match(written(asked, FIRST), /^insert=5&read=20&update=0&delete=0&scan=0&indexes=2&rows=200000&payload=300&at=random&/);
});

test("the address names the whole mix, so that another page shows the same", () => {
  const found = read(written({ ...FIRST, read: 1 }, FIRST));
  assert.deepEqual(Object.keys(found).sort(), ["delete", "indexes", "insert", "payload", "place", "read", "rows", "scan", "update"]);
  assert.deepEqual(read(written({ ...FIRST, nodes: 34 }, FIRST)), { nodes: 34 });
});

test("nonsense is ignored", () => {
  for (const text of ["", "&&&=", "insert", "insert=-1", "insert=1e3", "insert=0x10", "insert=NaN", "insert=%E0%A4%A", "rows=3", "rows=99999999999999999999",
    "at=nowhere", "at=__proto__", "by=toString", "usd=-1", "usd=Infinity", "gib=1.", "indexes=9", "__proto__=1", "constructor=2", "<script>=1"]) {
    assert.deepEqual(read(text), {}, text);
  }
  assert.equal({}.polluted, undefined);
});

test("limits are within the question", () => {
  for (const [name, [least, most]] of Object.entries(LIMITS)) {
    assert.deepEqual(read(`${name}=${least}`), { [name]: least });
    assert.deepEqual(read(`${name}=${most}`), { [name]: most });
    assert.deepEqual(read(`${name}=${most + 1}`), {});
    if (least > 0) assert.deepEqual(read(`${name}=${least - 1}`), {});
  }
});

test("an address has a part and a question", () => {
  assert.deepEqual(split(""), { part: "", question: null });
  assert.deepEqual(split("#bill"), { part: "bill", question: null });
  assert.deepEqual(split("#bill?insert=5"), { part: "bill", question: { insert: 5 } });
  assert.deepEqual(split("#?from=a?b"), { part: "", question: { from: "a?b" } });
});

const ASKED = { insert: 5, read: 20, update: 0, delete: 0, scan: 0, indexes: 2, payload: 300, rows: 200_000, place: "random" };
const SIZES = "stablebench run mix --insert 5 --read 20 --update 0 --delete 0 --scan 0 --indexes 2 --rows 200000 --payload 300 --at random";
const ENGINES = "btree,sqlite/persist,cache_size=1000,sqlite/wal,cache_size=1000,sqlite/memory,cache_size=1000,sqlite-vfs";

test("the command measures this mix by the rules of the run", () => {
  for (const [recorded, rest] of [
    ["stablebench run users", ""],
    ["stablebench run users --sections all --per-operation --check-around --rules 2026-08", " --rules 2026-08"],
    ["stablebench run users --sections=insert --rows 10 --engines btree,sqlite/wal --at end --curve-rows 1,2 --rules=2025-10", " --rules=2025-10"],
    ["stablebench run users --as-published --rules 2025-10 --seed 7", " --rules 2025-10 --seed 7"],
  ]) {
    assert.equal(exactly({ command: recorded }, ASKED), `${SIZES} --engines ${ENGINES}${rest}`);
  }
});

test("the cheapest is measured too, if the suite mix has it", () => {
  const engines = (key) => / --engines (\S+)/.exec(exactly({ command: "" }, ASKED, [{ key, rank: 1 }, { key: "sqlite/delete", rank: 2 }]))[1];
  assert.equal(engines("sqlite/wal"), `${ENGINES},sqlite/wal`);
  assert.equal(engines("btree"), ENGINES);
  for (const other of ["array", "x; rm -r", "sqlite/wal --out x"]) assert.equal(engines(other), ENGINES);
});

test("a measured mix is measured again with its engines", () => {
  const results = { suite: "mix", command: "", configurations: [{ key: "btree" }, { key: "sqlite/wal" }] };
  assert.match(exactly(results, ASKED, [{ key: "sqlite/wal", rank: 1 }, { key: "btree", rank: 2 }]), / --engines btree,sqlite\/wal$/);
});

test("a command is limited to a section if its suite has the option", () => {
  const of = (suite, command, section) => narrowed({ suite, command }, section);
  assert.equal(of("users", "stablebench run users --sections all --rows 10", "curve"), "stablebench run users --sections curve --rows 10");
  assert.equal(of("vfs", "stablebench run vfs --sections published,reads --rows 10", "equal"), "stablebench run vfs --sections published --rows 10");
  assert.equal(of("keys", "stablebench run keys --rows 10", "lists"), "stablebench run keys --rows 10");
  assert.equal(of("users", "stablebench run users --sections all", "x; rm -r"), "stablebench run users --sections all");
});
