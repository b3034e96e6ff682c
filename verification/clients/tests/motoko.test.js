/** The committed modules of Motoko are those that the compiler makes. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { CANISTER, INTERFACE, modules } from "../motoko.js";

const compiled = modules();

test("the committed Motoko modules are those of their sources", () => {
  assert.equal(compiled.length, 6);
  for (const { folder, name, sources, wasm } of compiled) {
    const committed = gunzipSync(readFileSync(join(folder, name)));
    assert.ok(committed.equals(wasm), `${name} differs; renew it with npm run motoko --prefix verification/clients`);
    const hash = createHash("sha256").update(wasm).digest("hex");
    const readme = readFileSync(join(sources, "README.md"), "utf8");
    assert.ok(readme.includes(`| \`${name}\` | \`${hash}\` |`), `README.md does not say that ${name} has ${hash}`);
  }
});

test("both canisters have the committed interface", () => {
  const committed = readFileSync(join(CANISTER, INTERFACE), "utf8");
  const interfaces = compiled.map(({ candid }) => candid).filter((candid) => candid !== undefined);
  assert.deepEqual(interfaces, [committed, committed]);
});
