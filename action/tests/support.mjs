/** A repository, an event, a canister and a fake API of GitHub, all on this machine. */

import { execFile, execFileSync } from "node:child_process";
import { accessSync, constants, cpSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = fileURLToPath(new URL("../../", import.meta.url));
const GOLDEN = fileURLToPath(new URL("golden.md", import.meta.url));

export const tool = () => {
  const built = join(process.env.CARGO_TARGET_DIR ?? join(ROOT, "target"), "release", "stablebench");
  const path = process.env.STABLEBENCH ?? built;
  try {
    accessSync(path, constants.X_OK);
  } catch {
    throw new Error(`there is no ${path}; build it (cargo build --release) or name it in STABLEBENCH`);
  }
  return path;
};

/** The committed comments by name, each below a heading with it. */
export const comments = () => Object.fromEntries(readFileSync(GOLDEN, "utf8").split(/^# /m).slice(1).map((part) => {
  const [name, ...lines] = part.split("\n");
  return [name, `${lines.join("\n").trim()}\n`];
}));

/** Compares a text with a committed one, in which hashes of commits and the tool's version are left out. */
export function golden(assert, name, text) {
  const plain = text
    .replace(/\b(head|at) [0-9a-f]{7}\b/g, "$1 COMMIT")
    .replace(/\bstablebench \d+\.\d+\.\d+/g, "stablebench VERSION")
    .replace(/<!-- stablebench [0-9a-f]{12} -->/g, "<!-- stablebench KEY -->");
  if (process.env.GOLDEN === "renew") {
    const all = Object.entries({ ...comments(), [name]: plain }).sort(([one], [other]) => (one < other ? -1 : 1));
    writeFileSync(GOLDEN, all.map(([of, comment]) => `# ${of}\n\n${comment}`).join("\n"));
  }
  assert.equal(plain, comments()[name], `${name} in ${GOLDEN} differs; GOLDEN=renew writes it again`);
}

/** A repository with two commits. Each is an object of files with their contents. */
export class Project {
  constructor() {
    this.path = mkdtempSync(join(tmpdir(), "stablebench-action-"));
    this.folder = join(this.path, "checkout");
    mkdirSync(this.folder);
    this.git("init", "--quiet", "--initial-branch", "main");
  }

  git(...args) {
    const author = ["-c", "user.name=a", "-c", "user.email=a@example.org", "-c", "commit.gpgsign=false"];
    return execFileSync("git", [...author, ...args], { cwd: this.folder, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"] }).trim();
  }

  /** Commits these files, and only these. Returns the hash. */
  commit(files) {
    this.git("rm", "-r", "--quiet", "--ignore-unmatch", ".");
    for (const [name, content] of Object.entries(files)) {
      const path = join(this.folder, name);
      mkdirSync(dirname(path), { recursive: true });
      writeFileSync(path, content);
    }
    this.git("add", "--all");
    this.git("commit", "--quiet", "--allow-empty", "--message", "commit");
    return this.git("rev-parse", "HEAD");
  }

  /** A clone without history, as actions/checkout makes it. */
  shallow(depth) {
    const other = new Project();
    rmSync(other.folder, { recursive: true });
    execFileSync("git", ["clone", "--quiet", "--depth", String(depth), `file://${this.folder}`, other.folder], { stdio: "ignore" });
    return other;
  }

  /** Runs the script. Returns its exit code and all that it wrote. */
  act(event, env = {}) {
    const file = (name) => join(this.path, name);
    writeFileSync(file("event.json"), JSON.stringify({ repository: { full_name: "owner/project" }, ...event }));
    for (const name of ["summary.md", "output"]) writeFileSync(file(name), "");
    const { PATH, HOME } = process.env;
    const mine = {
      PATH,
      HOME,
      XDG_CACHE_HOME: process.env.XDG_CACHE_HOME ?? join(HOME ?? this.path, ".cache"),
      GITHUB_EVENT_PATH: file("event.json"),
      GITHUB_EVENT_NAME: event.pull_request ? "pull_request" : "push",
      GITHUB_STEP_SUMMARY: file("summary.md"),
      GITHUB_OUTPUT: file("output"),
      GITHUB_SERVER_URL: "https://github.example",
      GITHUB_RUN_ID: "7",
      RUNNER_TEMP: this.path,
      STABLEBENCH: tool(),
      INPUT_COMMENT: "false",
      ...env,
    };
    return new Promise((done) => {
      execFile(process.execPath, [join(ROOT, "action/main.mjs")], { cwd: this.folder, env: mine, encoding: "utf8" }, (error, stdout, stderr) => {
        const text = (name) => readFileSync(file(name), "utf8");
        const output = Object.fromEntries(text("output").split("\n").filter(Boolean).map((line) => line.split("=")));
        done({ code: error ? error.code : 0, stdout, stderr, summary: text("summary.md"), output });
      });
    });
  }

  /** Writes a program in place of stablebench. */
  program(script) {
    const path = join(this.path, "program");
    writeFileSync(path, `#!/usr/bin/env bash\nset -eu\n${script}\n`, { mode: 0o755 });
    return path;
  }

  copy(from, name) {
    cpSync(from, join(this.path, name));
    return join(this.path, name);
  }

  drop() {
    rmSync(this.path, { recursive: true, force: true });
  }
}

export const pull = (base, head, number = 5) => ({ pull_request: { number, base: { sha: base }, head: { sha: head } } });

const leb = (number) => {
  const bytes = [];
  for (let left = BigInt(number); ; left >>= 7n) {
    if (left < 128n) return [...bytes, Number(left)];
    bytes.push(Number(left & 127n) | 128);
  }
};
const text = (string) => [...leb(Buffer.byteLength(string)), ...Buffer.from(string)];
const vector = (items) => [...leb(items.length), ...items.flat()];
const section = (id, items) => [id, ...text2(vector(items))];
const text2 = (bytes) => [...leb(bytes.length), ...bytes];

/** Candid's hash of a field's name. */
const field = (name) => [...Buffer.from(name)].reduce((hash, byte) => (Math.imul(hash, 223) + byte) >>> 0, 0);
const nat64 = (number) => {
  const bytes = Buffer.alloc(8);
  bytes.writeBigUInt64LE(BigInt(number));
  return [...bytes];
};

/** The reply of a benchmark, in Candid: `record { total : record { instructions; heap_increase; stable_memory_increase } }`. */
function reply({ instructions, heap = 0, stable = 0 }) {
  const fields = [["instructions", instructions], ["heap_increase", heap], ["stable_memory_increase", stable]]
    .map(([name, value]) => [field(name), value])
    .sort(([one], [other]) => one - other);
  const NAT64 = 0x78;
  const RECORD = 0x6c;
  const inner = [RECORD, ...vector(fields.map(([id]) => [...leb(id), NAT64]))];
  const outer = [RECORD, ...vector([[...leb(field("total")), 0]])];
  return [...Buffer.from("DIDL"), ...vector([inner, outer]), 1, 1, ...fields.flatMap(([, value]) => nat64(value))];
}

/** A canister whose benchmarks answer with these counts, by name; one without counts fails. */
export function canister(benches) {
  const I32 = 0x7f;
  const names = Object.keys(benches);
  const replies = names.map((name) => (benches[name] ? reply(benches[name]) : []));
  let at = 0;
  const places = replies.map((bytes) => [(at += bytes.length) - bytes.length, bytes.length]);
  const [CONST, CALL, END, TRAP] = [0x41, 0x10, 0x0b, 0x00];
  // Signed LEB128 needs a free bit of the sign.
  const signed = (number) => (number < 64 ? [number] : [(number & 127) | 128, ...signed(number >> 7)]);
  const codes = places.map(([from, length]) =>
    text2([0, ...(length === 0 ? [TRAP] : [CONST, ...signed(from), CONST, ...signed(length), CALL, 0, CALL, 1]), END]));
  const exports = names.map((name, index) => [...text(`canister_query __canbench__${name}`), 0, ...leb(index + 2)]);
  return Buffer.from([
    ...Buffer.from("\0asm"), 1, 0, 0, 0,
    ...section(1, [[0x60, 2, I32, I32, 0], [0x60, 0, 0]]),
    ...section(2, [[...text("ic0"), ...text("msg_reply_data_append"), 0, 0], [...text("ic0"), ...text("msg_reply"), 0, 1]]),
    ...section(3, names.map(() => [1])),
    ...section(5, [[0, 1]]),
    ...section(7, exports),
    ...section(10, codes),
    ...section(11, [[0, CONST, 0, END, ...text2(replies.flat())]]),
  ]);
}

/** The files of a canbench project. */
export const project = (benches, more = {}) => ({ "canbench.yml": "wasm_path: bench.wasm\n", "bench.wasm": canister(benches), ...more });

/** The login of comments that a workflow's token writes. */
export const BOT = "github-actions[bot]";

/** A fake of GitHub's API, which keeps comments. Its token belongs to `login`. */
export class Api {
  static async start({ comments = [], status, login = BOT } = {}) {
    const api = new Api();
    api.requests = [];
    api.comments = comments;
    api.login = login;
    api.server = createServer((request, response) => {
      let body = "";
      request.on("data", (part) => (body += part));
      request.on("end", () => {
        const content = body ? JSON.parse(body) : undefined;
        api.requests.push({ method: request.method, url: request.url, body: content?.body, token: request.headers.authorization });
        const refused = status?.[request.method];
        response.writeHead(refused ?? 200, { "content-type": "application/json" });
        response.end(JSON.stringify(refused ? { message: "refused" } : api.answer(request, content)));
      });
    });
    await new Promise((done) => api.server.listen(0, "127.0.0.1", done));
    api.env = { GITHUB_API_URL: `http://127.0.0.1:${api.server.address().port}`, GITHUB_TOKEN: "the-token", INPUT_COMMENT: "true" };
    return api;
  }

  answer({ method, url }, content) {
    const page = Number(new URL(url, "http://api").searchParams.get("page") ?? 1);
    if (method === "GET") return this.comments.slice((page - 1) * 100, page * 100);
    if (method === "POST") {
      this.comments.push({ id: 1_000 + this.comments.length, user: { login: this.login }, body: content.body });
      return this.comments.at(-1);
    }
    const found = this.comments.find((one) => url.endsWith(`/comments/${one.id}`));
    found.body = content.body;
    return found;
  }

  stop() {
    return new Promise((done) => this.server.close(done));
  }
}
