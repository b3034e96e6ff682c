/** The Motoko modules with which the replica is tested are those that the compiler makes. */

import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { gunzipSync } from "node:zlib";
import { FOLDER, modules } from "../motoko.js";

test("the committed Motoko modules are those of their sources", () => {
  const compiled = modules();
  const readme = readFileSync(join(FOLDER, "README.md"), "utf8");
  assert.equal(compiled.length, 4);
  for (const { name, wasm } of compiled) {
    const committed = gunzipSync(readFileSync(join(FOLDER, name)));
    assert.ok(committed.equals(wasm), `${name} differs; renew it with npm run motoko --prefix clients`);
    const hash = createHash("sha256").update(wasm).digest("hex");
    assert.ok(readme.includes(`| \`${name}\` | \`${hash}\` |`), `README.md does not say that ${name} has ${hash}`);
  }
});
