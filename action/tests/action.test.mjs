/**
 * The action without GitHub: its script, from the event to the comment, with a real stablebench, and the file that runs it.
 */

import assert from "node:assert/strict";
import { existsSync, readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { after, afterEach, describe, test } from "node:test";
import { LIMIT } from "../comment.mjs";
import { kept } from "../main.mjs";
import { Api, BOT, Project, ROOT, comments, golden, project, pull, tool } from "./support.mjs";

const created = [];
const fresh = () => {
  created.push(new Project());
  return created.at(-1);
};
after(() => created.forEach((one) => one.drop()));
const servers = [];
const api = async (options) => {
  servers.push(await Api.start(options));
  return servers.at(-1);
};
afterEach(() => Promise.all(servers.splice(0).map((server) => server.stop())));

/** A project with two commits, and the event of a pull request between them. */
function two(before, now) {
  const made = fresh();
  const base = made.commit(before);
  const head = made.commit(now);
  return { made, base, head, event: pull(base, head) };
}

const BEFORE = {
  insert: { instructions: 1_000_000 },
  "insert::many": { instructions: 40_000 },
  read: { instructions: 20_000, stable: 1 },
  remove: { instructions: 5_000 },
  old: { instructions: 1 },
};
const NOW = {
  insert: { instructions: 1_042_000 },
  "insert::many": { instructions: 30_000 },
  read: { instructions: 20_010, stable: 2 },
  remove: { instructions: 5_000 },
  "new": { instructions: 77 },
};

const YAML = `benches:
  insert:
    total:
      calls: 1
      instructions: 900000
      heap_increase: 0
      stable_memory_increase: 0
    scopes: {}
  'old: one':
    total:
      calls: 1
      instructions: 9
      heap_increase: 0
      stable_memory_increase: 0
    scopes: {}
version: 0.7.0
`;

describe("a canbench project", () => {
  test("is compared with its base commit, worst first", async () => {
    const { made, event } = two(project(BEFORE), project(NOW));
    const { code, stdout, stderr, summary, output } = await made.act(event);
    assert.equal(code, 0, stderr);
    golden(assert, "canbench", stdout);
    assert.equal(summary, stdout);
    assert.deepEqual(readdirSync(output.report).sort(), ["base.json", "comment.md", "head.json", "report.html"]);
    assert.match(readFileSync(join(output.report, "report.html"), "utf8"), /<td>insert<\/td><td>1 000 000<\/td><td>1 042 000<\/td><td>\+4\.20 %<\/td>/);
    assert.equal(made.git("worktree", "list").split("\n").length, 1);
  });

  test("is compared with a committed file, which other rules counted", async () => {
    const { made, event } = two(project(BEFORE, { "results.yml": YAML }), project(NOW));
    const { code, stdout, stderr } = await made.act(event, { INPUT_BASE: "results.yml" });
    assert.equal(code, 0, stderr);
    golden(assert, "canbench-file", stdout);
  });

  test("without a change", async () => {
    const { made, event } = two(project(BEFORE), project(BEFORE));
    const { code, stdout } = await made.act(event);
    assert.equal(code, 0);
    golden(assert, "canbench-equal", stdout);
  });

  test("with a change below the threshold", async () => {
    const { made, event } = two(project({ a: { instructions: 1_000 } }), project({ a: { instructions: 1_019 } }));
    const at = async (threshold) => (await made.act(event, { INPUT_NOISE_THRESHOLD: threshold })).stdout.split("\n")[1];
    assert.equal(await at("2"), "### stablebench: no change of 2 % or more");
    assert.equal(await at("1.9"), "### stablebench: 1 of 1 case became more expensive");
  });

  test("in a folder of the repository", async () => {
    const nested = (benches) => Object.fromEntries(Object.entries(project(benches)).map(([name, content]) => [`deep/er/${name}`, content]));
    const { made, event } = two(nested(BEFORE), nested(NOW));
    const { code, stdout, stderr } = await made.act(event, { INPUT_WORKING_DIRECTORY: "deep/er", INPUT_COMMAND: "canbench insert --jobs 1" });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /1 of 2 cases became more expensive, 1 cheaper/);
    assert.doesNotMatch(stdout, /Missing/);
  });

  test("without results of the base", async () => {
    const first = two({ "a.txt": "" }, project(NOW));
    const { code, stdout, stderr } = await first.made.act(first.event);
    assert.equal(code, 0, stderr);
    golden(assert, "canbench-first", stdout);
    const file = await first.made.act(first.event, { INPUT_BASE: "results.yml", INPUT_MAX_RATIO: "1" });
    assert.equal(file.code, 0);
    assert.match(file.stdout, /There is no base: results\.yml does not exist at [0-9a-f]{7}\./);
  });

  test("whose base fails shows the error, and is no failure", async () => {
    const { made, event } = two(project({ a: undefined }), project({ a: { instructions: 1 } }));
    const { code, stdout } = await made.act(event);
    assert.equal(code, 0);
    assert.match(stdout, /1 case measured, nothing to compare with/);
    assert.match(stdout, /There is no base: the run at [0-9a-f]{7} failed\.\n\n```text\nError executing benchmark a\. /);
  });

  test("that fails leaves a comment with the error", async () => {
    const { made, event } = two(project(BEFORE), project({ insert: undefined }));
    const github = await api();
    const { code, stdout } = await made.act(event, github.env);
    assert.equal(code, 2);
    golden(assert, "canbench-failed", stdout);
    assert.deepEqual(github.comments.map(({ body }) => body), [stdout]);
  });
});

describe("the base", () => {
  test("has names with any escape of YAML", () => {
    const name = (text) => kept(`benches:\n  ${text}:\n    total:\n`)[0];
    for (const [text, expected] of [
      ['"bell \\a \\x07 \\0"', "bell \x07 \x07 \0"],
      ['"\\e[31m\\v\\b\\t\\n\\f\\r"', "\x1b[31m\v\b\t\n\f\r"],
      ['"\\N\\_\\L\\P\\u2028\\U0001F600"', "\x85\xa0\u2028\u2029\u2028\u{1f600}"],
      ['"a \\"b\\" \\/ \\\\x07 \\ c"', 'a "b" / \\x07  c'],
      // What YAML does not have is no error here: the tool has read the file already.
      ['"\\q \\x7 \\UFFFFFFFF \\"', "\\q \\x7 \ufffd \\"],
      ["'it''s'", "it's"],
      ["plain", "plain"],
    ]) {
      assert.equal(name(text), expected, text);
    }
  });

  test("whose results file has such a name is compared", async () => {
    const escaped = YAML.replace("'old: one'", '"old \\e\\x07\\U0001F600"');
    const { made, event } = two(project(BEFORE, { "results.yml": escaped }), project(NOW));
    const { code, stdout, stderr } = await made.act(event, { INPUT_BASE: "results.yml" });
    assert.equal(code, 0, stderr);
    assert.match(stdout, /Missing or failed:\*\*\n\n- <code>old &#65533;&#65533;&#128512;<\/code>\n/);
  });

  test("of a merge is its first parent, also in a shallow clone, from which older commits are fetched", async () => {
    const { made, base } = two(project(BEFORE), project(BEFORE));
    made.git("checkout", "--quiet", "-b", "topic", base);
    const head = made.commit(project({ ...BEFORE, more: { instructions: 1 } }));
    made.git("checkout", "--quiet", "main");
    const newer = made.commit(project({ ...BEFORE, insert: { instructions: 2_000_000 } }));
    made.git("merge", "--quiet", "--strategy", "ours", "--no-edit", "topic");
    const clone = made.shallow(1);
    created.push(clone);
    const { code, stdout, stderr } = await clone.act(pull(base, head));
    assert.equal(code, 0, stderr);
    assert.match(stdout, new RegExp(`no change\n[^]*head ${head.slice(0, 7)} · base: measured at ${newer.slice(0, 7)}`));
  });

  test("that cannot be fetched is named", async () => {
    const { made, head } = two(project(BEFORE), project(NOW));
    const { code, stdout } = await made.act(pull("1".repeat(40), head));
    assert.equal(code, 0);
    assert.match(stdout, /There is no base: commit 1111111 cannot be fetched\./);
  });

  test("of a push is the commit before it, and there is no comment", async () => {
    const { made, base, head } = two(project(BEFORE), project(NOW));
    const github = await api();
    const push = await made.act({ before: base, after: head }, github.env);
    assert.equal(push.code, 0, push.stderr);
    assert.match(push.summary, /2 of 5 cases became more expensive/);
    const created = await made.act({ before: "0".repeat(40), after: head }, github.env);
    assert.match(created.summary, /There is no base: the event names no earlier commit/);
    const group = await made.act({ merge_group: { base_sha: base, head_sha: head } }, { ...github.env, GITHUB_EVENT_NAME: "merge_group" });
    assert.match(group.summary, /2 of 5 cases became more expensive/);
    assert.deepEqual(github.requests, []);
  });
});

describe("the comment", () => {
  test("replaces an earlier one, also on a later page", async () => {
    const { made, event } = two(project(BEFORE), project(NOW));
    const others = Array.from({ length: 101 }, (_, id) => ({ id, body: `text ${id}` }));
    const github = await api({ comments: others });
    const first = await made.act(event, github.env);
    assert.equal(first.code, 0, first.stderr);
    const [, , posted] = github.requests;
    assert.deepEqual(github.requests.map(({ method, url }) => `${method} ${url}`), [
      "GET /repos/owner/project/issues/5/comments?per_page=100&page=1",
      "GET /repos/owner/project/issues/5/comments?per_page=100&page=2",
      "POST /repos/owner/project/issues/5/comments",
    ]);
    assert.equal(posted.token, "Bearer the-token");
    github.requests.length = 0;
    made.git("commit", "--quiet", "--allow-empty", "--message", "again");
    const again = await made.act(event, github.env);
    assert.equal(github.requests.at(-1).method, "PATCH");
    assert.equal(github.requests.at(-1).url, "/repos/owner/project/issues/comments/1101");
    assert.equal(github.comments.length, 102);
    assert.equal(github.comments.at(-1).body, again.stdout);
    // Another command has a comment of its own.
    await made.act(event, { ...github.env, INPUT_COMMAND: "canbench insert" });
    assert.equal(github.comments.length, 103);
  });

  test("never replaces a comment of somebody else", async () => {
    const { made, event } = two(project(BEFORE), project(NOW));
    const probe = await api();
    await made.act(event, probe.env);
    const [marker] = probe.comments[0].body.split("\n");
    // GitHub gives nobody else a login with brackets. The author of an account that was deleted is null.
    const strangers = ["someone", "github-actions", "github-actions-bot", "other[bot]", undefined].map((login, id) =>
      ({ id, user: login === undefined ? null : { login }, body: `${marker}\nby ${login}` }));
    const untouched = structuredClone(strangers);
    const github = await api({ comments: [...strangers] });
    const { code, stdout, stderr } = await made.act(event, github.env);
    assert.equal(code, 0, stderr);
    assert.deepEqual(github.comments.slice(0, -1), untouched);
    assert.equal(github.comments.at(-1).body, stdout);
    // Its own comment behind theirs is still found, and a comment of its own without the marker at the start is another one.
    github.comments.unshift({ id: 77, user: { login: BOT }, body: `> ${marker}` });
    await made.act(event, github.env);
    assert.deepEqual(github.requests.map(({ method }) => method), ["GET", "POST", "GET", "PATCH"]);
    assert.equal(github.comments[0].body, `> ${marker}`);
    assert.equal(github.comments.length, 7);
  });

  test("is found by the login of another token, which a note names", async () => {
    const { made, event } = two(project(BEFORE), project(NOW));
    const github = await api({ login: "My-App[bot]" });
    const first = await made.act(event, github.env);
    assert.equal(first.code, 0);
    const note = "The comment is by `My-App[bot]`, not by `github-actions[bot]`, so the next run leaves another one: set the input comment-author to `My-App[bot]`.\n";
    assert.ok(first.stderr.endsWith(note), first.stderr);
    assert.ok(first.summary.endsWith(note), first.summary);
    const again = await made.act(event, { ...github.env, INPUT_COMMENT_AUTHOR: "my-app[bot]" });
    assert.equal(github.requests.at(-1).method, "PATCH");
    assert.equal(again.summary, again.stdout);
    assert.equal(github.comments.length, 1);
  });

  test("is left to the summary if the token can only read", async () => {
    const { made, event } = two(project(BEFORE), project(NOW));
    for (const method of ["GET", "POST"]) {
      const github = await api({ status: { [method]: 403 } });
      const { code, stdout, summary } = await made.act(event, github.env);
      assert.equal(code, 0);
      assert.ok(summary.startsWith(stdout));
      assert.match(summary, new RegExp(`The comment was not written: GitHub answered 403 to ${method}\\. The token of a pull request from a fork can only read`));
    }
  });

  test("is an error if GitHub fails", async () => {
    const { made, event } = two(project(BEFORE), project(NOW));
    const github = await api({ status: { POST: 500 } });
    const { code, stderr, summary } = await made.act(event, github.env);
    assert.equal(code, 2);
    assert.match(stderr, /The comment was not written: POST .*answered with 500.*run the job again/);
    assert.match(summary, /became more expensive/);
    const gone = await made.act(event, { ...github.env, GITHUB_API_URL: "http://127.0.0.1:1" });
    assert.equal(gone.code, 2);
    assert.match(gone.stderr, /GET http:\/\/127\.0\.0\.1:1\/.* failed/);
  });

  test("is posted before a ceiling ends the job", async () => {
    const { made, event } = two(project(BEFORE), project(NOW));
    const github = await api();
    const over = await made.act(event, { ...github.env, INPUT_MAX_RATIO: "1.04", INPUT_MAX_AVERAGE: "0.9" });
    assert.equal(over.code, 1, over.stderr);
    golden(assert, "ceilings", github.comments[0].body);
    const under = await made.act(event, { ...github.env, INPUT_MAX_RATIO: "1.042", INPUT_MAX_AVERAGE: "1" });
    assert.equal(under.code, 0);
  });

  test("contains names as text", async () => {
    const names = ["a|b", "`code`", "<script>alert(1)</script>", "two\nlines", "a\\|b", "@someone [x](http://x)", "x".repeat(500), "$1$ **b** <!-- c -->", "\u202eright"];
    const of = (factor) => Object.fromEntries(names.map((name, index) => [name, { instructions: (index + 1) * 1_000 * factor }]));
    const { made, event } = two(project(of(1)), project(of(2)));
    const { code, stdout, stderr, output } = await made.act(event);
    assert.equal(code, 0, stderr);
    golden(assert, "names", stdout);
    assert.doesNotMatch(stdout, /<script|@someone|\[x\]|\*\*b|<!-- c/);
    const table = stdout.split("\n").filter((line) => line.startsWith("| "));
    assert.equal(table.length, names.length + 1);
    for (const line of table) assert.equal(line.split("|").length, 6, line);
    const page = readFileSync(join(output.report, "report.html"), "utf8");
    assert.doesNotMatch(page, /<script/);
  });

  test("stays below GitHub's limit", async () => {
    const of = (factor) => {
      const name = (index) => `${"|".repeat(90)}${index}`;
      return Object.fromEntries(Array.from({ length: 160 }, (_, index) => [name(index), { instructions: 1_000 * factor + index }]));
    };
    const { made, event } = two(project(of(1)), project(of(2)));
    const { code, stdout, stderr, output } = await made.act(event, { INPUT_MAX_RATIO: "1.5" });
    assert.equal(code, 1, stderr);
    assert.ok(Buffer.byteLength(stdout) <= LIMIT, String(Buffer.byteLength(stdout)));
    assert.match(stdout, /\n\d+ more do not fit here; the HTML report lists all\.\n\n<\/details>\n/);
    assert.match(stdout, /- and 150 more\n/);
    assert.equal(readFileSync(join(output.report, "report.html"), "utf8").match(/<tr><td>/g).length, 160);
  });
});

describe("a suite", () => {
  const published = JSON.parse(readFileSync(join(ROOT, "suites/users/published.json"), "utf8"));
  const changed = (change) => {
    const results = structuredClone(published);
    change(results.cases);
    return JSON.stringify(results);
  };
  const same = changed(() => {});
  const other = changed((cases) => {
    cases[0].outcome.measured.instructions = 74_039;
    cases[1].outcome.measured.instructions -= 100_000;
    cases.splice(3, 1);
  });
  /** Instead of a measurement, copies the results in the folder; all else is done by stablebench. */
  const copying = (made) => made.program(`if [[ $1 = run ]]; then while [[ $1 != --out ]]; do shift; done; cp measured.json "$2"; else exec '${tool()}' "$@"; fi`);
  const COMMAND = "run users --rows 100000";

  test("is compared case by case", async () => {
    const { made, event } = two({ "measured.json": same }, { "measured.json": other });
    const env = { STABLEBENCH: copying(made), INPUT_COMMAND: COMMAND, INPUT_MAX_RATIO: "1.05", INPUT_MAX_AVERAGE: "1.01" };
    const { code, stdout, stderr, output } = await made.act(event, env);
    assert.equal(code, 1, stderr);
    golden(assert, "suite", stdout);
    assert.match(readFileSync(join(output.report, "report.html"), "utf8"), /^<!doctype html>/i);
    const file = await made.act(event, { ...env, INPUT_BASE: "measured.json" });
    assert.equal(file.code, 1);
    assert.match(file.stdout, /base: measured\.json at/);
  });

  test("without a change, and without a base", async () => {
    const { made, event } = two({ "measured.json": same }, { "measured.json": same });
    const env = { STABLEBENCH: copying(made), INPUT_COMMAND: COMMAND };
    const equal = await made.act(event, env);
    assert.equal(equal.code, 0, equal.stderr);
    assert.match(equal.stdout, /### stablebench: no change\n/);
    const first = await made.act(event, { ...env, INPUT_BASE: "none.json" });
    assert.equal(first.code, 0, first.stderr);
    assert.match(first.stdout, /20 cases measured, nothing to compare with[^]*\| `insert: middle 1, btree` \| – \| 49 359 \| new \|/);
  });

  test("that cannot be compared is a failure", async () => {
    const { made, event } = two({ "measured.json": same }, { "measured.json": changed((cases) => (cases[0].rows = 7)) });
    const { code, stdout } = await made.act(event, { STABLEBENCH: copying(made), INPUT_COMMAND: COMMAND });
    assert.equal(code, 2);
    assert.match(stdout, /the results cannot be compared\n\n```text\nstablebench: these runs cannot be compared/);
  });
});

describe("the script", () => {
  test("refuses wrong usage", async () => {
    const { made, event } = two(project(BEFORE), project(NOW));
    for (const [env, expected] of [
      [{ INPUT_COMMAND: "rm -rf" }, /the input command begins with "rm"; begin it with canbench, or with run/],
      [{ INPUT_MAX_RATIO: "5%" }, /the input max-ratio is "5%"; give a number, such as 1\.05/],
      [{ INPUT_MAX_AVERAGE: "0" }, /the input max-average is "0"/],
      [{ INPUT_NOISE_THRESHOLD: "-1" }, /the input noise-threshold is "-1"/],
      [{ INPUT_COMMENT: "yes" }, /the input comment is "yes"; give true or false/],
      [{ INPUT_WORKING_DIRECTORY: "nowhere" }, /working-directory is "nowhere", which does not exist/],
      [{ GITHUB_EVENT_PATH: "" }, /GITHUB_EVENT_PATH is not set/],
      [{ GITHUB_EVENT_PATH: "nowhere" }, /the event in nowhere cannot be read/],
      [{ GITHUB_EVENT_NAME: "pull_request_target" }, /use pull_request/],
    ]) {
      const { code, stderr } = await made.act(event, env);
      assert.equal(code, 2);
      assert.match(stderr, expected);
    }
    const missing = await made.act(event, { STABLEBENCH: join(made.path, "nowhere") });
    assert.equal(missing.code, 2);
    assert.match(missing.stdout, /nowhere cannot be run in/);
  });

  test("passes inputs to no shell, and to programs neither tokens nor files of the runner", async () => {
    const { made, event } = two(project(BEFORE), project(NOW));
    const recorder = made.program('printf "%s\\n" "$@" >"$RUNNER_TEMP/arguments"; env >"$RUNNER_TEMP/environment"; exit 3');
    const names = (text) => text.split(" ");
    const hidden = names(
      "GITHUB_TOKEN GITHUB_ENV GITHUB_PATH GITHUB_STATE GITHUB_OF_A_LATER_RUNNER GH_TOKEN ACTIONS_RUNTIME_TOKEN " +
        "ACTIONS_RUNTIME_URL ACTIONS_RESULTS_URL ACTIONS_CACHE_URL ACTIONS_ID_TOKEN_REQUEST_TOKEN ACTIONS_ID_TOKEN_REQUEST_URL STATE_x",
    );
    const shown = names("CI GITHUB_ACTIONS GITHUB_SHA GITHUB_REF GITHUB_WORKSPACE CARGO_TARGET_DIR LIBCLANG_PATH");
    const env = Object.fromEntries([...hidden.map((name) => [name, "secret"]), ...shown.map((name) => [name, `shown ${name}`])]);
    await made.act(event, { ...env, STABLEBENCH: recorder, INPUT_COMMAND: "canbench $(touch${IFS}hacked);`id` ''" });
    assert.equal(readFileSync(join(made.path, "arguments"), "utf8"), "canbench\n$(touch${IFS}hacked);`id`\n''\n--format\njson\n");
    const passed = readFileSync(join(made.path, "environment"), "utf8");
    // Those that act() sets are among them.
    assert.doesNotMatch(passed, /secret|^(INPUT_|STATE_|ACTIONS_|GITHUB_(ENV|PATH|OUTPUT|STATE|STEP_SUMMARY|EVENT_PATH)=)/m);
    for (const name of shown) assert.match(passed, new RegExp(`^${name}=shown ${name}$`, "m"));
    assert.match(passed, /^PATH=/m);
    assert.ok(!existsSync(join(made.folder, "hacked")));
  });

  test("lets no program command GitHub's runner by what it prints", async () => {
    const { made, event } = two(project(BEFORE), project(NOW));
    const printing = made.program('echo "::set-output name=report::/etc" >&2; exit 3');
    const { stdout, stderr } = await made.act(event, { STABLEBENCH: printing, GITHUB_ACTIONS: "true" });
    const [, end] = /^::stop-commands::(.+)\n/.exec(stderr);
    assert.ok(stderr.includes("\n::set-output name=report::/etc\n"));
    assert.ok(stdout.startsWith(`::stop-commands::${end}\n`) && stdout.endsWith(`\n::${end}::\n`), stdout);
    assert.match(end, /^[\da-f-]{36}$/);
  });
});

/** It declares what it uses, and puts no input into the text of a program. */
const definition = readFileSync(join(ROOT, "action.yml"), "utf8");
const script = readFileSync(join(ROOT, "action/main.mjs"), "utf8");
const docs = readFileSync(join(ROOT, "docs/ci.md"), "utf8");

/** The lines that are indented below a key at the start of a line. */
const below = (key) => definition.match(new RegExp(`^${key}:\n((?: .*\n|\n)*)`, "m"))[1];
const matches = (text, pattern) => [...text.matchAll(pattern)].map(([, name]) => name);
const unique = (names) => [...new Set(names)].sort();

const declared = matches(below("inputs"), /^ {2}([\w-]+):$/gm);
const steps = below("runs").split(/^ {4}- /m).slice(1);

test("the file has the keys of a composite action, and no tabs", () => {
  assert.deepEqual(matches(definition, /^([\w-]+):/gm), ["name", "description", "inputs", "outputs", "runs"]);
  assert.match(below("runs"), /^ {2}using: composite$/m);
  assert.doesNotMatch(definition, /\t/);
  assert.equal(steps.length, 5);
});

test("each input is declared with a description and used", () => {
  assert.deepEqual(unique(matches(definition, /\binputs\.([\w-]+)/g)), unique(declared));
  for (const name of declared) {
    assert.match(below("inputs"), new RegExp(`^ {2}${name}:\n {4}description: .+\n {4}default: .+$`, "m"));
    assert.match(docs, new RegExp(`^\\| \`${name}\` \\|`, "m"), `docs/ci.md does not describe ${name}`);
  }
});

test("each step that is used by others exists, and is before them", () => {
  const known = [];
  for (const step of steps) {
    for (const id of matches(step, /\bsteps\.([\w-]+)\./g)) assert.ok(known.includes(id), id);
    known.push(...matches(step, /^ +id: ([\w-]+)$/gm));
  }
});

test("the script reads the variables that the action sets", () => {
  const set = matches(definition, /^ +INPUT_([A-Z_]+): /gm).map((name) => name.toLowerCase().replaceAll("_", "-"));
  const read = matches(script, /\b(?:input|number|yes)\("([\w-]+)"/g);
  assert.deepEqual(unique(set), unique(read));
  for (const name of set) {
    assert.match(definition, new RegExp(`^ +INPUT_${name.toUpperCase().replaceAll("-", "_")}: \\$\\{\\{ inputs\\.${name} \\}\\}$`, "m"));
  }
});

test("expressions are values of keys, never part of a program", () => {
  let seen = 0;
  for (const step of steps) {
    const run = step.match(/^ +run: ?(?:\|\n((?: {8}.*\n|\n)+)|(.*)\n)/m);
    if (!run) continue;
    seen += 1;
    assert.doesNotMatch(run[0], /\$\{\{/);
  }
  assert.equal(seen, 3);
});

test("other actions are named with a version", () => {
  const used = matches(definition, /uses: (.+)/g);
  assert.equal(used.length, 2);
  for (const name of used) assert.match(name, /^actions\/[\w-]+@v\d+ # /);
});

test("the documented comment is that of a test", () => {
  assert.ok(docs.includes(comments().ceilings.replaceAll(/\(https:[^#)]*/g, "(https://…")), "docs/ci.md shows another comment than that of ceilings");
});
