/**
 * Compiles the Motoko actors that the replica is tested with: `npm run motoko` writes the modules.
 *
 * The compiler is the npm package `motoko`. Version 3.13.0 is the last one with classical
 * persistence (32-bit heap, variables go through stable memory in upgrades). Later ones have only
 * enhanced orthogonal persistence (64-bit heap, which upgrades keep).
 */

import { readFileSync, writeFileSync } from "node:fs";
import { createRequire } from "node:module";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { gzipSync } from "node:zlib";

const require = createRequire(import.meta.url);

export const FOLDER = fileURLToPath(new URL("../crates/replica/tests/motoko", import.meta.url));

const COMPILERS = { classical: "motoko-classical", enhanced: "motoko" };
const ACTORS = ["counter", "counter_next"];

/** @returns {{ name: string, wasm: Uint8Array }[]} the modules, not compressed */
export function modules() {
  return Object.entries(COMPILERS).flatMap(([persistence, name]) => {
    const compiler = require(name);
    return ACTORS.map((actor) => {
      const file = `${actor}.mo`;
      compiler.write(file, readFileSync(join(FOLDER, file), "utf8"));
      const findings = compiler.check(file);
      if (findings.length > 0) throw new Error(`${file}: ${JSON.stringify(findings)}`);
      return { name: `${persistence}_${actor}.wasm.gz`, wasm: compiler.wasm(file, "ic").wasm };
    });
  });
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { name, wasm } of modules()) writeFileSync(join(FOLDER, name), gzipSync(wasm, { level: 9 }));
}
