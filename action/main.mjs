#!/usr/bin/env node
/**
 * Measures a commit and its base with stablebench, compares them, and leaves a comment on the pull request.
 * action.yml runs it on GitHub; docs/ci.md describes it and its variables.
 *
 * ```text
 *   event ──→ subject ──→ measured (head, base) ──→ comparison ──→ text ──→ summary, comment, exit code
 * ```
 *
 * The exit code is 0 on success, 1 if a ceiling was exceeded, and 2 for wrong usage or a failure.
 */

import { spawn } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { appendFileSync, existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { comment, failure, page } from "./comment.mjs";

/** An error for the user. */
class Refused extends Error {}

/** A program that did not succeed. */
class Failed extends Error {}

const message = (error) => (error instanceof Refused || error instanceof Failed ? error.message : error.stack);

/** The inputs, which action.yml names and describes. An empty one is not set. */
function settings(env) {
  const input = (name, otherwise) => env[`INPUT_${name.toUpperCase().replaceAll("-", "_")}`]?.trim() || otherwise;
  const number = (name, otherwise, least) => {
    const text = input(name, otherwise);
    if (text === undefined) return undefined;
    if (/^\d+(\.\d+)?$/.test(text) && Number(text) >= least) return Number(text);
    throw new Refused(`the input ${name} is "${text}"; give a number, such as ${name === "noise-threshold" ? "2" : "1.05"}`);
  };
  const words = input("command", "canbench").split(/\s+/);
  if (!["canbench", "run"].includes(words[0])) {
    throw new Refused(`the input command begins with "${words[0]}"; begin it with canbench, or with run and a suite`);
  }
  const yes = (name) => {
    const text = input(name, "true");
    if (!["true", "false"].includes(text)) throw new Refused(`the input ${name} is "${text}"; give true or false`);
    return text === "true";
  };
  const folder = input("working-directory", ".");
  if (!existsSync(folder)) throw new Refused(`the input working-directory is "${folder}", which does not exist; name a folder of the checkout`);
  const key = createHash("sha256").update(`${words.join(" ")}\0${folder}`).digest("hex").slice(0, 12);
  return {
    words,
    key,
    folder: resolve(folder),
    base: input("base", "measure"),
    maxRatio: number("max-ratio", undefined, Number.MIN_VALUE),
    maxAverage: number("max-average", undefined, Number.MIN_VALUE),
    noise: number("noise-threshold", "2", 0),
    posting: yes("comment"),
    author: input("comment-author", "github-actions[bot]"),
    uploading: yes("report"),
    marker: `<!-- stablebench ${key} -->`,
    output: join(env.RUNNER_TEMP || tmpdir(), `stablebench-${key}`),
    program: env.STABLEBENCH || "stablebench",
    config: env.CANBENCH_CFG_FILE || "canbench.yml",
  };
}

/** Reads the event. */
function read(env) {
  const path = env.GITHUB_EVENT_PATH;
  if (!path) throw new Refused("GITHUB_EVENT_PATH is not set; set it to a file with the event, as docs/ci.md shows");
  let event;
  try {
    event = JSON.parse(readFileSync(path, "utf8"));
  } catch (error) {
    throw new Refused(`the event in ${path} cannot be read: ${error.message}`);
  }
  const name = env.GITHUB_EVENT_NAME || "pull_request";
  if (name === "pull_request_target") {
    throw new Refused("the event is pull_request_target, which would run code of a fork with write access; use pull_request");
  }
  if (name === "pull_request" && !event.pull_request?.head?.sha) {
    throw new Refused(`the event in ${path} has no pull_request with a head; give the event of a pull request`);
  }
  return { name, event };
}

/**
 * The commits of an event, and the number of the pull request if it is one.
 * @param {string} name
 * @param {Object} event
 * @param {string[]} parents of the commit that is checked out
 */
export function subject(name, event, parents) {
  const known = (sha) => (/^[0-9a-f]{40,64}$/.test(sha ?? "") && !/^0+$/.test(sha) ? sha : undefined);
  const request = event.pull_request;
  switch (name) {
    case "pull_request": {
      // GitHub checks out a merge with the base branch, which can be newer than the base of the event.
      const merged = parents.length === 2 && parents[1] === request.head.sha;
      return { number: request.number, base: known(merged ? parents[0] : request.base?.sha), head: known(request.head.sha) };
    }
    case "merge_group":
      return { base: known(event.merge_group?.base_sha), head: known(event.merge_group?.head_sha) };
    case "push":
      return { base: known(event.before), head: known(event.after) };
    default:
      return {};
  }
}

/** What programs may know about the run: no path of a file that GitHub reads or writes, and no token. */
const DESCRIBING = new Set(
  `ACTIONS ACTOR ACTOR_ID API_URL BASE_REF EVENT_NAME GRAPHQL_URL HEAD_REF JOB REF REF_NAME REF_PROTECTED REF_TYPE
  REPOSITORY REPOSITORY_ID REPOSITORY_OWNER REPOSITORY_OWNER_ID RETENTION_DAYS RUN_ATTEMPT RUN_ID RUN_NUMBER SERVER_URL SHA
  TRIGGERING_ACTOR WORKFLOW WORKFLOW_REF WORKFLOW_SHA WORKSPACE`.split(/\s+/).map((name) => `GITHUB_${name}`),
);

/**
 * The environment of programs, which run code of the pull request. Names that GitHub adds later are left out too.
 * @param {Object<string, string>} env
 */
function environment(env) {
  // Windows ignores the case of names.
  const passes = (name) => DESCRIBING.has(name) || !/^(GITHUB|GH|ACTIONS|INPUT|STATE)_/.test(name);
  return Object.fromEntries(Object.entries(env).filter(([name]) => passes(name.toUpperCase())));
}

/** Runs programs. */
function runner(env) {
  const clean = environment(env);
  return (program, args, cwd, { codes = [0], quiet = false } = {}) =>
    new Promise((done, fail) => {
      const child = spawn(program, args, { cwd, env: { ...clean, NO_COLOR: "1" }, stdio: ["ignore", "pipe", "pipe"] });
      let [stdout, stderr] = ["", ""];
      child.stdout.setEncoding("utf8").on("data", (text) => (stdout += text));
      child.stderr.setEncoding("utf8").on("data", (text) => {
        stderr += text;
        if (!quiet) process.stderr.write(text);
      });
      child.on("error", (error) => fail(new Failed(`${program} cannot be run in ${cwd}: ${error.message}`)));
      child.on("close", (code, signal) => {
        if (codes.includes(code)) done(stdout);
        else fail(new Failed(`${stderr.trim() || stdout.trim()}\n(${args[0]} ended with ${signal ?? `code ${code}`})`));
      });
    });
}

const short = (sha) => sha.slice(0, 7);

/** The repository around the folder of the project. */
class Checkout {
  constructor(run, folder) {
    this.git = (...args) => run("git", args, folder, { quiet: true });
    this.folder = folder;
  }

  async parents() {
    // In a shallow clone, `HEAD^1` does not exist, but the commit names its parents.
    const commit = await this.git("cat-file", "commit", "HEAD");
    return [...commit.split("\n\n")[0].matchAll(/^parent (\w+)$/gm)].map(([, sha]) => sha);
  }

  async head() {
    return (await this.git("rev-parse", "HEAD")).trim();
  }

  /** Fetches a commit unless it is there. */
  async have(sha) {
    const exists = () => this.git("cat-file", "-e", `${sha}^{commit}`);
    await exists().catch(() => this.git("fetch", "--quiet", "--no-tags", "--depth=1", "origin", sha)).then(exists);
  }

  /** Calls `use` with the project's folder in a work tree of the commit. */
  async at(sha, path, use) {
    const prefix = (await this.git("rev-parse", "--show-prefix")).trim();
    await this.git("worktree", "add", "--force", "--quiet", "--detach", path, sha);
    try {
      return await use(join(path, prefix));
    } finally {
      await this.git("worktree", "remove", "--force", path);
    }
  }
}

/** The results of the base: `{file}` or `{json}` with `text`, or `{none}` with the reason. */
async function baseOf(settings, checkout, sha, measure) {
  if (!sha) return { none: "the event names no earlier commit" };
  try {
    await checkout.have(sha);
  } catch (error) {
    return { none: `commit ${short(sha)} cannot be fetched`, error: error.message };
  }
  if (settings.base !== "measure") {
    const file = join(settings.output, "base-results");
    try {
      writeFileSync(file, await checkout.git("show", `${sha}:./${settings.base}`));
    } catch {
      return { none: `${settings.base} does not exist at ${short(sha)}` };
    }
    return { file, text: `${settings.base} at ${short(sha)}` };
  }
  return checkout.at(sha, join(settings.output, "base"), async (folder) => {
    const { config } = settings;
    if (!existsSync(folder)) return { none: `the folder does not exist at ${short(sha)}` };
    if (settings.words[0] === "canbench" && !existsSync(join(folder, config))) return { none: `${config} does not exist at ${short(sha)}` };
    try {
      return { ...(await measure(folder, "base.json")), text: `measured at ${short(sha)}` };
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      return { none: `the run at ${short(sha)} failed`, error: error.message };
    }
  });
}

const METRICS = { instructions: "", heap_increase: "heap pages", stable_memory_increase: "stable pages" };

const ratio = (base, now) => (base === now ? 1 : now / base);

/** The totals and scopes of benchmarks by name. */
function entries(benches, of = (bench) => bench) {
  const found = new Map();
  for (const bench of benches) {
    const measured = of(bench);
    if (!measured) continue;
    found.set(bench.name, measured.total);
    for (const [scope, one] of Object.entries(measured.scopes)) found.set(`${bench.name}::${scope}`, one);
  }
  return found;
}

/** The names of benchmarks in a results file of canbench, whose layout is fixed. */
export function kept(text) {
  const names = [...text.matchAll(/^ {2}([^\s#].*):(?: \{\})?\s*$/gm)].map(([, name]) => name);
  return names.map((name) => (/^'.*'$/.test(name) ? name.slice(1, -1).replaceAll("''", "'") : /^".*"$/.test(name) ? unescaped(name.slice(1, -1)) : name));
}

/** YAML's escapes that stand for one character. JSON has fewer. */
const ESCAPES = {
  0: "\0", a: "\x07", b: "\b", t: "\t", "\t": "\t", n: "\n", v: "\v", f: "\f", r: "\r", e: "\x1b",
  " ": " ", '"': '"', "/": "/", "\\": "\\", N: "\x85", _: "\xa0", L: "\u2028", P: "\u2029",
};

/** The text between the double quotes of YAML. An escape that YAML does not have stands for itself. */
function unescaped(text) {
  const code = /\\(?:x([\dA-Fa-f]{2})|u([\dA-Fa-f]{4})|U([\dA-Fa-f]{8})|(.))/gu;
  return text.replace(code, (all, two, four, eight, letter) => {
    if (letter !== undefined) return ESCAPES[letter] ?? all;
    const point = parseInt(two ?? four ?? eight, 16);
    return point > 0x10ffff ? "\u{fffd}" : String.fromCodePoint(point);
  });
}

/** A project of canbench. */
const canbench = {
  async measure(settings, run, folder, name, base) {
    const compared = base?.file ? ["--compare", base.file] : [];
    const text = await run(settings.program, [...settings.words, "--format", "json", ...compared], folder);
    writeFileSync(join(settings.output, name), text);
    return { json: JSON.parse(text) };
  },

  async compare(settings, run, base, { json }) {
    const [{ rules, benches }] = json.runs;
    const now = entries(benches);
    let [before, notes, rulesBefore] = [new Map(), [], undefined];
    if (base.json) before = entries(base.json.runs[0].benches);
    if (base.file) {
      before = entries(benches, (bench) => bench.before);
      // A word right after the command selects benchmarks.
      const pattern = settings.words[1]?.startsWith("-") ? "" : (settings.words[1] ?? "");
      for (const name of kept(readFileSync(base.file, "utf8"))) if (name.includes(pattern) && !now.has(name)) before.set(name, undefined);
      rulesBefore = json.compared?.rules;
    }
    if (rulesBefore && rulesBefore !== rules) {
      notes.push(`the base was counted by the rules ${rulesBefore}, this run by ${rules}: changes include those of the rules`);
    }
    const setupBefore = json.compared?.setup;
    if (setupBefore && setupBefore !== json.setup) {
      notes.push(`the setup of the base's benchmarks was ${setupBefore}, that of this run's is ${json.setup}: changes include pages that setup touched`);
    }
    const [rows, added] = [[], []];
    for (const [name, one] of now) {
      const other = before.get(name);
      for (const [metric, unit] of Object.entries(METRICS)) {
        const row = { name, unit, base: other?.[metric], now: one[metric] };
        if (unit !== "" && (!other || row.base === row.now)) continue;
        if (other) rows.push({ ...row, ratio: ratio(row.base, row.now) });
        else added.push(row);
      }
    }
    const missing = [...before.keys()].filter((name) => !now.has(name)).map((name) => ({ name, reason: "" }));
    return { tool: json.stablebench, rules, rows, added, missing, notes, exceeded: this.exceeded(settings, rows, benches) };
  },

  /** Ceilings are about instructions, as those of `stablebench compare`. */
  exceeded({ maxRatio, maxAverage }, rows, benches) {
    const counts = rows.filter((row) => row.unit === "");
    const found = counts.filter((row) => row.ratio > maxRatio).map(({ name, ratio }) => ({ name, ratio, ceiling: maxRatio, average: false }));
    const totals = counts.filter((row) => benches.some((bench) => bench.name === row.name));
    const average = totals.reduce((sum, row) => sum + row.ratio, 0) / totals.length;
    // Sums of ratios are rounded.
    if (average > maxAverage * (1 + 1e-12)) found.push({ name: "", ratio: average, ceiling: maxAverage, average: true });
    return found;
  },

  async report(settings, run, base, head, comparison, context) {
    writeFileSync(join(settings.output, "report.html"), page(comparison, context));
  },
};

/** A suite. */
const suite = {
  async measure(settings, run, folder, name) {
    const file = join(settings.output, name);
    await run(settings.program, [...settings.words, "--out", file], folder);
    if (!existsSync(file)) throw new Failed(`${settings.words.join(" ")} left no results file; name one suite`);
    return { file, json: JSON.parse(readFileSync(file, "utf8")) };
  },

  async compare(settings, run, base, { file, json }) {
    const known = { tool: json.stablebench, rules: json.replica.rules, rows: [], added: [], missing: [], exceeded: [], notes: [] };
    if (!base.file) return { ...known, ...this.alone(json) };
    const { maxRatio, maxAverage } = settings;
    // Without a ceiling, every value would have to be equal.
    const ceilings = ["--max-ratio", maxRatio ?? "1e300", ...(maxAverage === undefined ? [] : ["--max-average", maxAverage])];
    const args = ["compare", base.file, file, ...ceilings, "--format", "json"];
    const found = JSON.parse(await run(settings.program, args, settings.folder, { codes: [0, 1] }));
    const unit = { instructions: "", operations_that_fit: "operations that fit" };
    const title = (row) => `${row.section}: ${row.name}, ${row.configuration}`;
    // JSON has no infinity.
    const rows = found.rows.map((row) => ({ name: title(row), unit: unit[row.unit], base: row.base, now: row.new, ratio: row.ratio ?? Infinity }));
    const failures = (kind) => found.failures.filter((failure) => failure.kind === kind);
    const missing = failures("missing").map(({ name, new: reason }) => ({ name, reason }));
    const over = (kind, ceiling, average) => failures(kind).map(({ name, by }) => ({ name, ratio: by?.ratio ?? Infinity, ceiling, average }));
    const exceeded = [...over("ratio", maxRatio, false), ...over("average", maxAverage, true)];
    return { ...known, rows, missing, exceeded, notes: found.notes };
  },

  /** The cases of a run that is compared with nothing. */
  alone(json) {
    const [added, missing] = [[], []];
    for (const { section, name: case_, configuration, outcome } of json.cases) {
      const name = `${section}: ${case_}, ${configuration}`;
      const { measured, failed } = outcome;
      if (measured?.capacity) added.push({ name, unit: "operations that fit", now: measured.capacity.fits });
      else if (measured) added.push({ name, unit: "", now: measured.instructions });
      else if (failed) missing.push({ name, reason: `failed: ${failed.reason}` });
    }
    return { added, missing };
  },

  async report(settings, run, base, head) {
    const files = [base.file, head.file].filter(Boolean);
    await run(settings.program, ["report", ...files, "--out", join(settings.output, "report.html")], settings.folder);
  },
};

/** The reason why a comment was not written, as a sentence. */
const unwritten = (reason) =>
  `The comment was not written: ${reason}. The token of a pull request from a fork can only read; others need \`pull-requests: write\`.`;

/**
 * Writes the comment, in place of an earlier one by `author`. Anybody can write the marker, so a comment by somebody else
 * stays as it is. Returns a note if the token may not write, or writes under another name.
 */
async function post(env, repository, number, { marker, author }, body) {
  const token = env.GITHUB_TOKEN;
  if (!token) return unwritten("GITHUB_TOKEN is not set");
  const api = `${env.GITHUB_API_URL || "https://api.github.com"}/repos/${repository}/issues`;
  const headers = { authorization: `Bearer ${token}`, accept: "application/vnd.github+json", "content-type": "application/json", "user-agent": "stablebench" };
  const request = async (method, address, content) => {
    const options = { method, headers, body: content && JSON.stringify(content), signal: AbortSignal.timeout(60_000) };
    let answer;
    try {
      answer = await fetch(address, options);
    } catch (error) {
      throw new Failed(`${method} ${address} failed: ${error.cause?.message ?? error.message}; run the job again`);
    }
    const text = await answer.text();
    const limited = answer.headers.get("x-ratelimit-remaining") === "0";
    if (answer.ok) return { json: JSON.parse(text) };
    if (answer.status === 403 && !limited) return { refused: `GitHub answered 403 to ${method}` };
    throw new Failed(`${method} ${address} was answered with ${answer.status}: ${text.slice(0, 300)}; run the job again`);
  };
  for (let at = 1; ; at += 1) {
    const { json, refused } = await request("GET", `${api}/${number}/comments?per_page=100&page=${at}`);
    if (refused) return unwritten(refused);
    const own = (one) => one.user?.login?.toLowerCase() === author.toLowerCase();
    const earlier = json.find((one) => one.body?.startsWith(marker) && own(one));
    if (!earlier && json.length === 100) continue;
    const [method, address] = earlier ? ["PATCH", `${api}/comments/${earlier.id}`] : ["POST", `${api}/${number}/comments`];
    const written = await request(method, address, { body });
    if (written.refused) return unwritten(written.refused);
    if (own(written.json)) return "";
    const name = (login) => `\`${String(login).replace(/[^\w[\]-]/g, "")}\``;
    const writer = name(written.json.user?.login);
    return `The comment is by ${writer}, not by ${name(author)}, so the next run leaves another one: set the input comment-author to ${writer}.`;
  }
}

/** Measures, compares and renders. Returns the text and the exit code. */
async function work(settings, run, checkout, found, context) {
  const kind = settings.words[0] === "canbench" ? canbench : suite;
  const measure = (folder, name, base) => kind.measure(settings, run, folder, name, base);
  const base = await baseOf(settings, checkout, found.base, measure);
  context.base = base.text ?? "none";
  context.none = base.none;
  let head;
  try {
    head = await measure(settings.folder, "head.json", base);
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    return { text: failure(`the run at ${context.head} failed`, error.message, context), code: 2 };
  }
  let comparison;
  try {
    comparison = await kind.compare(settings, run, base, head);
  } catch (error) {
    if (!(error instanceof Failed)) throw error;
    return { text: failure("the results cannot be compared", error.message, context), code: 2 };
  }
  context.error = base.error;
  await kind.report(settings, run, base, head, comparison, context);
  if (settings.uploading) context.report = "HTML report";
  // The suites' comparison is a gate for missing cases as well; benchmarks of a project come and go.
  const failed = comparison.exceeded.length > 0 || (kind === suite && comparison.missing.length > 0);
  return { text: comment(comparison, context), code: failed ? 1 : 0 };
}

/**
 * Does everything. Returns the exit code.
 * @param {Object<string, string>} env
 * @returns {Promise<number>}
 */
export async function main(env) {
  const chosen = settings(env);
  const { name, event } = read(env);
  rmSync(chosen.output, { recursive: true, force: true });
  mkdirSync(chosen.output, { recursive: true });
  const run = runner(env);
  const checkout = new Checkout(run, chosen.folder);
  const found = subject(name, event, await checkout.parents());
  const repository = /^[\w.-]+\/[\w.-]+$/.exec(event.repository?.full_name ?? env.GITHUB_REPOSITORY ?? "")?.[0];
  const context = {
    marker: chosen.marker,
    command: chosen.words.join(" "),
    noise: chosen.noise,
    head: short(found.head ?? (await checkout.head())),
    base: "",
    run: repository && env.GITHUB_RUN_ID && `${env.GITHUB_SERVER_URL || "https://github.com"}/${repository}/actions/runs/${env.GITHUB_RUN_ID}`,
  };
  const { text, code } = await work(chosen, run, checkout, found, context);
  writeFileSync(join(chosen.output, "comment.md"), text);
  process.stdout.write(text);
  if (env.GITHUB_OUTPUT) appendFileSync(env.GITHUB_OUTPUT, `key=${chosen.key}\nreport=${chosen.output}\n`);

  let [note, last] = ["", code];
  if (found.number !== undefined && chosen.posting) {
    try {
      if (!Number.isInteger(found.number) || !repository) throw new Failed("the event names no pull request with a number and a repository");
      note = await post(env, repository, found.number, chosen, text);
    } catch (error) {
      if (!(error instanceof Failed)) throw error;
      note = `The comment was not written: ${error.message.replace(/[^\w .,:;/()=?-]/g, " ")}.`;
      last = 2;
    }
  }
  if (note) process.stderr.write(`${note}\n`);
  if (env.GITHUB_STEP_SUMMARY) appendFileSync(env.GITHUB_STEP_SUMMARY, `${text}${note && `\n${note}\n`}`);
  return last;
}

if (process.argv[1] && resolve(process.argv[1]) === fileURLToPath(import.meta.url)) {
  // Lines such as `::set-output …` are commands to GitHub's runner, but programs of the pull request can print them.
  const end = process.env.GITHUB_ACTIONS === "true" && randomUUID();
  if (end) for (const stream of [process.stdout, process.stderr]) stream.write(`::stop-commands::${end}\n`);
  process.exitCode = await main(process.env).catch((error) => {
    process.stderr.write(`stablebench action: ${message(error)}\n`);
    return 2;
  });
  if (end) process.stdout.write(`::${end}::\n`);
}
