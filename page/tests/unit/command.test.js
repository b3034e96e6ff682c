import assert from "node:assert/strict";
import { test } from "node:test";
import { exactly } from "../../src/command.js";

const ASKED = { n: 5, payload: 300, rows: 200_000, place: "random" };
const SIZES = "stablebench run users --rows 200000 --payload 300 --batches 5 --at random";

test("the command measures these sizes with the engines and rules of the run", () => {
  for (const [recorded, rest] of [
    ["stablebench run users", ""],
    ["stablebench run users --sections all --per-operation --check-around --rules 2026-08", " --check-around --rules 2026-08"],
    ["stablebench run users --sections=insert --rows 10 --engines btree,sqlite/wal --at end --curve-rows 1,2 --rules=2025-10", " --engines btree,sqlite/wal --rules=2025-10"],
    ["stablebench run users --as-published --rules 2025-10", " --rules 2025-10"],
  ]) {
    assert.equal(exactly({ command: recorded }, ASKED), SIZES + rest);
  }
});
