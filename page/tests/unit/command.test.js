import assert from "node:assert/strict";
import { test } from "node:test";
import { exactly } from "../../src/command.js";

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
