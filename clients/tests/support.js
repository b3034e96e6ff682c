/** `stablebench serve`, the embedded run to compare it with, and the program icp. */

import { execFile, execFileSync, spawn } from "node:child_process";
import { createHash } from "node:crypto";
import { accessSync, constants, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Milliseconds within which a server must listen. Without a cached module, it compiles the module first. */
const START_TIMEOUT = 180_000;

export const tool = () => {
  const built = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "release", "stablebench");
  const path = process.env.STABLEBENCH ?? built;
  if (!executable(path)) throw new Error(`${path} does not exist; build it (cargo build --release) or set STABLEBENCH to its path`);
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

/** A temporary folder for the tests of a file. */
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

/** A server on a free port, with a new canister `bench`. */
export class Server {
  /** @returns {Promise<Server>} */
  static async start() {
    const child = spawn(tool(), ["serve", "bench", "--port", "0"], { stdio: ["ignore", "pipe", "pipe"] });
    const server = new Server();
    server.child = child;
    server.stdout = "";
    server.stderr = "";
    server.ended = new Promise((resolve) => child.once("exit", (code, signal) => resolve({ code, signal })));
    child.stdout.setEncoding("utf8").on("data", (text) => (server.stdout += text));
    child.stderr.setEncoding("utf8").on("data", (text) => (server.stderr += text));
    const until = Date.now() + START_TIMEOUT;
    let ended = false;
    server.ended.then(() => (ended = true));
    while (!server.parseOutput()) {
      if (ended || Date.now() > until) {
        child.kill("SIGKILL");
        throw new Error(`the server does not listen\n${server.stdout}${server.stderr}`);
      }
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    return server;
  }

  /** Parses the output. Returns whether it is complete. */
  parseOutput() {
    const found = (pattern) => this.stdout.match(pattern)?.[0];
    this.url = found(/http:\/\/[\w.:[\]]+(?=\/?\s)/);
    this.rootKey = found(/\b[0-9a-f]{266}\b/);
    this.canister = found(/\b[a-z0-9]{5}(-[a-z0-9]{5})+-[a-z0-9]{3}\b/);
    return Boolean(this.url && this.rootKey && this.canister);
  }

  async stop() {
    this.child.kill("SIGINT");
    const timeout = setTimeout(() => this.child.kill("SIGKILL"), 10_000);
    const { code, signal } = await this.ended;
    clearTimeout(timeout);
    return { code, signal };
  }
}

/** The module that a server builds and installs. */
const MODULE = join(ROOT, "target/canisters/bench.wasm");

/** Returns its SHA-256 in hex, the canister's `module_hash`. */
export const moduleHash = () => createHash("sha256").update(readFileSync(MODULE)).digest("hex");

/**
 * Sends a message to the same module with `stablebench call`, and returns the output.
 * @param {string} method
 * @param {string} args in Candid
 * @param {string[]} more further options
 * @returns {string}
 */
export function embedded(method, args, more = []) {
  return execFileSync(tool(), ["call", MODULE, method, args, ...more, "--quiet"], { encoding: "utf8" });
}

/**
 * Parses the fields with numbers of a record in Candid.
 * @param {string} candid
 * @returns {Object<string, bigint>}
 */
export function numbers(candid) {
  const fields = [...candid.matchAll(/\b(\w+) = ([\d_]+)(?: : nat64)?;?/g)];
  return Object.fromEntries(fields.map(([, name, value]) => [name, BigInt(value.replaceAll("_", ""))]));
}

/** The fields of a measurement. */
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

/** Returns the path of the npm package's program icp, or undefined if it does not run here. */
export function icpPath() {
  try {
    const path = join(dirname(createRequire(import.meta.url).resolve("@icp-sdk/icp-cli-linux-x64/package.json")), "bin", "icp");
    execFileSync(path, ["--version"], { stdio: "ignore" });
    return path;
  } catch {
    return undefined;
  }
}

/** Returns the reason to skip the tests with icp, or false. On CI they must run if icp supports the platform. */
export const skipIcp = () => {
  if (icpPath()) return false;
  const reason = "icp does not run here: its npm package is for Linux on x64, and needs libdbus-1.so.3";
  if (process.env.CI && process.platform === "linux" && process.arch === "x64") throw new Error(reason);
  console.error(`SKIPPED: ${reason}`);
  return reason;
};

/**
 * Runs a program in a folder, which is also its home folder, so that it does not change the user's.
 * @param {string} program
 * @param {string[]} args
 * @param {Folder} folder
 * @param {Object} [env]
 * @returns {Promise<{code: number, stdout: string, stderr: string}>}
 */
export function run(program, args, folder, env = {}) {
  const { PATH, CARGO_TARGET_DIR } = process.env;
  const environment = { PATH, HOME: folder.path, DO_NOT_TRACK: "1", NO_COLOR: "1", ...(CARGO_TARGET_DIR && { CARGO_TARGET_DIR }), ...env };
  return new Promise((resolve) => {
    const options = { cwd: folder.path, env: environment, encoding: "utf8", timeout: 60_000 };
    const child = execFile(program, args, options, (error, stdout, stderr) => {
      resolve({ code: error ? (error.code ?? error.signal) : 0, stdout, stderr });
    });
    child.stdin.end();
  });
}
