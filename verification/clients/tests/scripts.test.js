/** scripts/deploy-local.sh and scripts/call-examples.sh, with fake clients that record their arguments, and on a server. */

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Folder, MEASURED, ROOT, Server, expected, icpPath, numbers, run, skipIcp } from "./support.js";

const folder = new Folder();
after(() => folder.drop());

const DEPLOY = join(ROOT, "scripts/deploy-local.sh");
const CALL = join(ROOT, "scripts/call-examples.sh");
const ID = "lxzze-o7777-77777-aaaaa-cai";

/** System programs that the scripts need, without icp and dfx. */
const SYSTEM = ["bash", "cat", "dirname", "basename", "env"];

let count = 0;

/** A folder with the system programs and the given programs, as scripts. */
function programs(given) {
  const path = folder.file(`programs-${(count += 1)}`);
  mkdirSync(path);
  for (const name of SYSTEM) {
    const found = process.env.PATH.split(":").map((place) => join(place, name));
    symlinkSync(found.find((file) => { try { return readFileSync(file); } catch { return undefined; } }), join(path, name));
  }
  for (const [name, script] of Object.entries(given)) {
    writeFileSync(join(path, name), `#!/usr/bin/env bash\n${script}\n`);
    chmodSync(join(path, name), 0o755);
  }
  return path;
}

/** A program that records its arguments. */
const recorder = (more) => `printf '%s' "$(basename "$0")" >>"$LOG"; printf ' <%s>' "$@" >>"$LOG"; echo >>"$LOG"\n${more}`;

async function recorded(script, args, given) {
  const LOG = folder.file(`log-${count}`);
  writeFileSync(LOG, "");
  const { code, stdout, stderr } = await run(script, args, folder, { PATH: programs(given), LOG });
  return { code, stdout, stderr, calls: readFileSync(LOG, "utf8").trimEnd().split("\n") };
}

const runs = (what) => recorder(`case "$*" in *ping*) exit 0 ;; *id*) echo ${ID} ;; ${what} esac`);

describe("deploy-local.sh", () => {
  test("prefers icp, and prints only the canister's id", async () => {
    const { code, stdout, calls } = await recorded(DEPLOY, [], { icp: runs(""), dfx: runs("") });
    assert.equal(code, 0);
    assert.equal(stdout, `${ID}\n`);
    assert.deepEqual(calls, ["icp <network> <ping> <local>", "icp <deploy> <bench> <-e> <local>", "icp <canister> <status> <bench> <-e> <local> <--id-only>"]);
  });

  test("starts the network if none is running, with a note", async () => {
    const none = recorder(`case "$*" in *ping*) exit 1 ;; *id*) echo ${ID} ;; esac`);
    const icp = await recorded(DEPLOY, ["bench_vfs"], { icp: none });
    assert.match(icp.stderr, /no local network of icp runs: starting it/);
    assert.deepEqual(icp.calls.slice(1, 3), ["icp <network> <start> <-d>", "icp <deploy> <bench_vfs> <-e> <local>"]);
    const dfx = await recorded(DEPLOY, ["--with", "dfx"], { icp: none, dfx: none });
    assert.match(dfx.stderr, /no local network of dfx runs: starting it/);
    assert.deepEqual(dfx.calls, [
      "dfx <ping> <local>",
      "dfx <start> <--background>",
      "dfx <deploy> <bench> <--network> <local>",
      "dfx <canister> <id> <bench> <--network> <local>",
    ]);
    assert.equal(dfx.stdout, `${ID}\n`);
  });

  test("does not mistake stablebench serve for the network of dfx", async () => {
    const serve = recorder(`case "$*" in *ping*) echo '{ "impl_version": "stablebench 0.1.0" }' ;; esac`);
    const { code, stderr, calls } = await recorded(DEPLOY, ["--with", "dfx"], { dfx: serve });
    assert.equal(code, 1);
    assert.match(stderr, /'stablebench serve' answers .*--no-wallet/);
    assert.deepEqual(calls, ["dfx <ping> <local>"]);
  });

  test("names missing programs and where to get them", async () => {
    const neither = await recorded(DEPLOY, ["--with", "dfx"], {});
    assert.equal(neither.code, 1);
    assert.match(neither.stderr, /dfx is not installed; https:/);
  });

  test("fails if the deployment fails", async () => {
    const failing = recorder('case "$*" in *deploy*) echo broken >&2; exit 3 ;; esac');
    const { code, stdout, stderr } = await recorded(DEPLOY, ["--with", "icp"], { icp: failing });
    assert.deepEqual([code, stdout, stderr], [3, "", "broken\n"]);
  });
});

for (const script of [DEPLOY, CALL]) {
  test(`${script.split("/").at(-1)} has a help text`, async () => {
    const help = await recorded(script, ["--help"], {});
    assert.equal(help.code, 0);
    assert.match(help.stdout, /usage: scripts\//);
    for (const args of [["nothing"], ["--with"], ["--with", "nothing"]]) {
      const wrong = await recorded(script, args, {});
      assert.equal(wrong.code, 2);
      assert.match(wrong.stderr, /--help says how\n$/);
    }
  });
}

describe("call-examples.sh", () => {
  test("calls the deployed canister", async () => {
    const dfx = await recorded(CALL, ["--with", "dfx"], { dfx: recorder('echo "(variant { Ok = 1 })"') });
    assert.equal(dfx.code, 0, dfx.stderr);
    assert.equal(dfx.calls[0], "dfx <canister> <call> <bench> <add_users_sqlite> <(0, 10, 1000)> <--network> <local>");
    assert.match(dfx.calls[1], /^dfx <canister> <call> <bench> <read_users> <\("sqlite", 0, 10, 100\)> <--network> <local>$/);
    assert.equal(dfx.calls.length, 5);
  });

  test("removes rows with the same ids", async () => {
    const full = recorder('case "$*" in *add*) [[ -e $LOG.empty ]] || { echo "(variant { Err = variant { IdExists } })"; exit; } ;; *reset*) touch "$LOG.empty" ;; esac; echo "(variant { Ok })"');
    const { code, stderr, calls } = await recorded(CALL, ["--with", "icp"], { icp: full, touch: 'echo >"$1"' });
    assert.equal(code, 0, stderr);
    assert.match(stderr, /removing the rows that are there/);
    assert.equal(calls[1], 'icp <canister> <call> <bench> <reset> <("sqlite")> <-e> <local>');
  });

  test("fails if the canister refuses", async () => {
    const refuses = recorder('echo "(variant { Err = variant { NotController } })"');
    const { code, stdout, stderr } = await recorded(CALL, ["--with", "icp"], { icp: refuses });
    assert.equal(code, 1);
    assert.match(stdout, /NotController/);
    assert.match(stderr, /the canister refused/);
  });

  test("needs all options of a server together", async () => {
    const some = await recorded(CALL, ["--url", "http://127.0.0.1:1"], {});
    assert.equal(some.code, 2);
    assert.match(some.stderr, /--url, --root-key and --canister go together/);
  });

  describe("on a server", { skip: skipIcp() }, () => {
    let server;
    before(async () => (server = await Server.start()));
    after(() => server?.stop());

    test("prints the counts of the embedded run", async () => {
      const args = ["--url", server.url, "--root-key", server.rootKey, "--canister", server.canister];
      const { code, stdout, stderr } = await run(CALL, args, folder, { PATH: `${dirname(icpPath())}:${process.env.PATH}` });
      assert.equal(code, 0, stderr);
      const counts = expected(folder);
      const [, added, read] = stdout.split("> ").map(numbers);
      for (const field of MEASURED) {
        assert.equal(added[field], counts.add[field], field);
        assert.equal(read[field], counts.read[field], field);
      }
      // It also works on a canister that has rows.
      assert.equal((await run(CALL, args, folder, { PATH: `${dirname(icpPath())}:${process.env.PATH}` })).code, 0);
    });
  });
});
