/** `stablebench serve`, the same messages without a server, and the program icp. */

import { execFile, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { gunzipSync } from "node:zlib";

export const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

/** Maximum time until a server listens. It compiles its module unless the cache has it. */
const PATIENCE = 180_000;

export const tool = () => {
  const built = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "release", "stablebench");
  const path = process.env.STABLEBENCH ?? built;
  if (!executable(path)) throw new Error(`there is no ${path}; build it (cargo build --release) or name it in STABLEBENCH`);
  return path;
};

function executable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** A folder for one test file, removed at the end. */
export class Folder {
  constructor() {
    this.path = mkdtempSync(join(tmpdir(), "stablebench-clients-"));
  }

  /** @param {string} name @returns {string} */
  file(name) {
    return join(this.path, name);
  }

  drop() {
    rmSync(this.path, { recursive: true, force: true });
  }
}

/** A server on its own port, with a new canister `bench`. */
export class Server {
  /** @returns {Promise<Server>} */
  static async start() {
    const child = spawn(tool(), ["serve", "bench", "--port", "0"], { stdio: ["ignore", "pipe", "pipe"] });
    const server = new Server();
    server.child = child;
    server.printed = "";
    server.said = "";
    server.ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    child.stdout.setEncoding("utf8").on("data", (text) => (server.printed += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (server.said += text));
    const until = Date.now() + PATIENCE;
    let ended = false;
    server.ended.then(() => (ended = true));
    while (!server.read()) {
      if (ended || Date.now() > until) {
        child.kill("SIGKILL");
        throw new Error(`the server does not listen.\n${server.printed}${server.said}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return server;
  }

  /** Its complete output at the start. */
  read() {
    const found = (pattern) => this.printed.match(pattern)?.[0];
    this.url = found(/http:\/\/[\w.:[\]]+(?=\/?\s)/);
    this.rootKey = found(/\b[0-9a-f]{266}\b/);
    this.canister = found(/\b[a-z0-9]{5}(-[a-z0-9]{5})+-[a-z0-9]{3}\b/);
    return Boolean(this.url && this.rootKey && this.canister);
  }

  async stop() {
    this.child.kill("SIGINT");
    const patience = setTimeout(() => this.child.kill("SIGKILL"), 10_000);
    const { code, signal } = await this.ended;
    clearTimeout(patience);
    return { code, signal };
  }
}

/** The module that a server installs. */
export const MODULE = join(ROOT, "canisters/modules/bench.wasm.gz");

const sha256 = (bytes) => createHash("sha256").update(bytes).digest("hex");

/** Its hash, in hex: the `module_hash` of a canister that the server installs. */
export const moduleHash = () => sha256(gunzipSync(readFileSync(MODULE)));

/** The `module_hash` of a canister that a client installs from the file as it is. */
export const fileHash = () => sha256(readFileSync(MODULE));

/**
 * The output of `stablebench call` for a message to the same module.
 * @param {string} method
 * @param {string} args in Candid
 * @param {string[]} more options
 * @returns {string}
 */
export function embedded(method, args, more = []) {
  return execFileSync(tool(), ["call", MODULE, method, args, ...more, "--quiet"], { encoding: "utf8" });
}

/**
 * The numeric fields of a record printed in Candid, by name.
 * @param {string} candid
 * @returns {Object<string, bigint>}
 */
export function numbers(candid) {
  const fields = [...candid.matchAll(/\b(\w+) = ([\d_]+)(?: : nat64)?;?/g)];
  return Object.fromEntries(fields.map(([, name, value]) => [name, BigInt(value.replaceAll("_", ""))]));
}

/** The fields of a measurement, without others that an actor may have added. */
export const MEASURED = [
  "instructions",
  "counter_overhead",
  "message_instructions",
  "rows",
  "bytes",
  "heap_pages_before",
  "heap_pages_after",
  "stable_pages_before",
  "stable_pages_after",
];

/** Messages to the canister, as values for an actor and as text for programs. */
export const ADD = { method: "add_users_sqlite", candid: "(0, 10, 1000)", values: [0n, 10n, 1000n] };

export const READ = { method: "read_users", candid: '("sqlite", 0, 10, 100)', values: ["sqlite", 0n, 10n, 100n] };

/** Measures no work, because none is staged. */
export const EMPTY = { method: "run_query", candid: "()", values: [] };

/**
 * The cost of the first, and of each of the others after it, for a new canister on the embedded replica, without a
 * server.
 * @param {Folder} folder
 */
export function expected(folder) {
  const state = folder.file("embedded.state");
  return {
    add: numbers(embedded(ADD.method, ADD.candid, ["--save", state])),
    read: numbers(embedded(READ.method, READ.candid, ["--state", state])),
    empty: numbers(embedded(EMPTY.method, EMPTY.candid, ["--state", state])),
  };
}

/** The program icp of the npm package, or `undefined` if it does not run. */
export function icpPath() {
  try {
    const path = join(dirname(createRequire(import.meta.url).resolve("@icp-sdk/icp-cli-linux-x64/package.json")), "bin", "icp");
    execFileSync(path, ["--version"], { stdio: "ignore" });
    return path;
  } catch {
    return undefined;
  }
}

/** The reason for skipping the tests with icp, or `false`. On CI's platform they must run. */
export const skipIcp = () => {
  if (icpPath()) return false;
  const why = "icp does not run here: its npm package is for Linux on x64, and needs libdbus-1.so.3";
  if (process.env.CI && process.platform === "linux" && process.arch === "x64") throw new Error(why);
  console.error(`SKIPPED: ${why}`);
  return why;
};

/**
 * Runs a program in a folder that is also its home, so that nothing is written to the user's.
 * @param {string} program
 * @param {string[]} args
 * @param {Folder} folder
 * @param {Object} [env]
 * @returns {Promise<{code: number, stdout: string, stderr: string}>}
 */
export function run(program, args, folder, env = {}) {
  const { PATH, CARGO_TARGET_DIR } = process.env;
  const mine = { PATH, HOME: folder.path, DO_NOT_TRACK: "1", NO_COLOR: "1", ...(CARGO_TARGET_DIR && { CARGO_TARGET_DIR }), ...env };
  return new Promise((resolve) => {
    const options = { cwd: folder.path, env: mine, encoding: "utf8", timeout: 60_000 };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      resolve({ code: error ? (error.code ?? error.signal) : 0, stdout, stderr });
    });
    child.stdin.end();
  });
}
