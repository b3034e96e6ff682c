/**
 * Compiles Motoko: the actors that the replica is tested with, and the canister of the suite
 * collections. `npm run motoko` writes the modules.
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

const folder = (path) => fileURLToPath(new URL(`../../${path}`, import.meta.url));

/** The actors of the replica's tests. */
export const ACTORS = folder("crates/replica/tests/motoko");
/** The canister of the suite collections. */
export const CANISTER = folder("canisters/bench_collections/motoko");
/** Its modules. `cargo xtask modules` compresses them as it does those of other canisters. */
const MODULES = folder("canisters/modules");

/** Its interface. */
export const INTERFACE = "bench_motoko.did";

/** The compilers by the persistence of what they make, each with the library that comes with it. */
const COMPILERS = {
  classical: { npm: "motoko-classical", library: "base", canister: "bench_motoko_classical" },
  enhanced: { npm: "motoko", library: "core", canister: "bench_motoko" },
};

/** Warnings that are accepted in the canister. */
const ACCEPTED = [
  // `base/Hash` is deprecated, but is what canister-profiling used.
  "M0154",
  // The method `inspect` of the interface is not the system's.
  "M0128",
];

/**
 * @typedef {{ folder: string, name: string, sources: string, wasm: Uint8Array, candid?: string }} Module a module that is
 * not compressed, the folder of its sources, and the interface of the canister, which is the same with either persistence
 */

/** @returns {Module[]} the modules of all actors and canisters */
export function modules() {
  return Object.entries(COMPILERS).flatMap(([persistence, { npm, library, canister }]) => {
    const compiler = require(npm);
    compiler.setPublicMetadata([]);
    const actors = ["counter", "counter_next"].map((actor) => {
      const file = `${actor}.mo`;
      compiler.write(file, read(ACTORS, file));
      const wasm = compiled(compiler, file, []);
      return { folder: ACTORS, name: `${persistence}_${actor}.wasm.gz`, sources: ACTORS, wasm };
    });
    const packaged = require(`${npm}/packages/latest/${library}.json`);
    compiler.loadPackage(packaged);
    // Clients read the interface from the canister.
    compiler.setPublicMetadata(["candid:service"]);
    for (const file of ["Types.mo", "Keys.mo", "Digests.mo", "Table.mo", "Main.mo"]) {
      compiler.write(file, read(CANISTER, file));
    }
    compiler.write("Maps.mo", read(CANISTER, `${persistence}/Maps.mo`));
    compiler.write("Versions.mo", versions({
      motoko: require(`${npm}/package.json`).version,
      [library]: packaged.version,
    }));
    const wasm = compiled(compiler, "Main.mo", ACCEPTED);
    const name = `${canister}.wasm.gz`;
    return [...actors, { folder: MODULES, name, sources: CANISTER, wasm, candid: candid(compiler) }];
  });
}

function read(folder, file) {
  return readFileSync(join(folder, file), "utf8");
}

/** @returns {Uint8Array} the module of an actor */
function compiled(compiler, file, accepted) {
  const findings = compiler.check(file).filter(({ code }) => !accepted.includes(code));
  if (findings.length > 0) throw new Error(`${file}: ${JSON.stringify(findings)}`);
  return compiler.wasm(file, "ic").wasm;
}

/** @returns {string} the interface of the canister */
function candid(compiler) {
  const lines = compiler.candid("Main.mo").split("\n").map((line) => line.trimEnd());
  return `// The compiler has written this: npm run motoko\n${lines.join("\n").trim()}\n`;
}

/** @returns {string} the module of Motoko with the versions of what a canister is made of */
function versions(of) {
  const all = Object.entries(of).map(([name, version]) => `{ name = "${name}"; version = "${version}" }`);
  return `import Types "Types"; module { public let all : [Types.Version] = [${all.join(", ")}] }`;
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  for (const { folder, name, sources, wasm, candid } of modules()) {
    writeFileSync(join(folder, name), gzipSync(wasm, { level: 9 }));
    if (candid !== undefined) writeFileSync(join(sources, INTERFACE), candid);
  }
}
