/** The program icp from its npm package, which verifies certificates and signatures of queries: its commands, and projects. */

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import {
  ADD,
  EMPTY,
  Folder,
  MEASURED,
  MODULE,
  ROOT,
  Server,
  expected,
  fileHash,
  icpPath,
  moduleHash,
  numbers,
  run,
  skipIcp,
} from "./support.js";

const DOCUMENT = readFileSync(join(ROOT, "docs/serving.md"), "utf8");

/** Cycles of an account at the beginning, of a transaction, and of the creation of a canister. */
const INITIAL = 1_000_000_000_000_000_000n;
const FEE = 100_000_000n;
const CREATION = 500_000_000_000n;
const T = 1_000_000_000_000n;
/** The cycles with which icp creates a canister by default. */
const DEFAULT = 2n * T;
/** Cycles that the messages of one test cost at most. */
const LITTLE = T / 2n;

/** Two canisters whose module is built already, on a network that is there already. */
const project = ({ url, rootKey }) => `
canisters:
  - name: first
    build:
      steps:
        - type: pre-built
          path: ${MODULE}
    settings:
      freezing_threshold: 1000000
      environment_variables:
        GREETING: hello
  - name: second
    build:
      steps:
        - type: pre-built
          path: ${MODULE}
networks:
  - name: served
    mode: connected
    url: ${url}
    root-key: ${rootKey}
environments:
  - name: served
    network: served
`;

describe("icp", { skip: skipIcp() }, () => {
  const folder = new Folder();
  let server;
  let counts;

  before(async () => {
    server = await Server.start();
    counts = expected(folder);
  });

  after(async () => {
    await server?.stop();
    folder.drop();
  });

  const icp = (...args) => run(icpPath(), args, folder);
  const network = (rootKey = server.rootKey) => ["-n", server.url, "-k", rootKey];
  const canister = (what, ...args) => icp("canister", what, server.canister, ...args, ...network());

  async function done(running) {
    const { code, stdout, stderr } = await running;
    assert.equal(code, 0, stdout + stderr);
    return stdout;
  }

  /** Only the counts that the tool prints. */
  function assertMeasured(printed, expected) {
    const measured = numbers(printed);
    for (const field of MEASURED) assert.equal(measured[field], expected[field], `${field} of ${printed}`);
  }

  // This must be the first message to the canister, because its cost depends on earlier ones.
  test("an update and a query have the counts of the embedded run", async () => {
    const added = await done(canister("call", ADD.method, ADD.candid));
    assert.match(added, /Ok = record/);
    assertMeasured(added, counts.add);
    assert.ok(DOCUMENT.includes(added), `docs/serving.md does not contain ${added}`);
    const empty = await done(canister("call", EMPTY.method, EMPTY.candid, "--query"));
    assert.match(empty, /Ok = record/);
    assertMeasured(empty, counts.empty);
  });

  test("a query called as an update has the same counts", async () => {
    const empty = await done(canister("call", EMPTY.method, EMPTY.candid));
    assert.equal(numbers(empty).instructions, counts.empty.instructions);
  });

  test("errors of the canister are replies", async () => {
    assert.match(await done(canister("call", ADD.method, ADD.candid)), /Err = variant \{\s*IdExists = record \{\s*id = 0/);
  });

  test("the root key can be fetched", async () => {
    const printed = await done(icp("canister", "call", server.canister, "describe", "()", "--query", "-n", server.url, "-k", "fetch"));
    assert.match(printed, /max_rows/);
  });

  // A check that passed with any key would verify nothing.
  for (const more of [[], ["--query"]]) {
    test(`answers are refused with another root key, ${more[0] ?? "update"}`, async () => {
      const { rootKey } = server;
      const other = rootKey.slice(0, -1) + (rootKey.endsWith("0") ? "1" : "0");
      const { code, stderr } = await icp("canister", "call", server.canister, "describe", "()", ...more, ...network(other));
      assert.equal(code, 1, stderr);
      assert.match(stderr, /ertificat|signature|key/);
    });
  }

  test("a stranger may not write", async () => {
    await done(icp("identity", "new", "stranger", "--storage", "plaintext"));
    const printed = await done(canister("call", "set_payload", "(300)", "--identity", "stranger"));
    assert.match(printed, /Err = variant \{\s*NotController/);
  });

  test("ping", async () => {
    const status = JSON.parse(await done(icp("network", "ping", server.url)));
    assert.equal(status.replica_health_status, "healthy");
    assert.equal(Buffer.from(status.root_key).toString("hex"), server.rootKey);
  });

  test("status, for a controller, for others, and as JSON", async () => {
    const mine = await done(canister("status"));
    assert.match(mine, new RegExp(`Canister Id: ${server.canister}`));
    assert.match(mine, /Status: Running/);
    assert.match(mine, new RegExp(`Module hash: 0x${moduleHash()}`));
    const everyones = JSON.parse(await done(canister("status", "--public", "--json")));
    assert.equal(everyones.module_hash, `0x${moduleHash()}`);
    assert.deepEqual(everyones.controllers, ["2vxsx-fae"]);
  });

  test("metadata", async () => {
    const candid = readFileSync(join(ROOT, "canisters/bench.did"), "utf8");
    assert.equal(await done(canister("metadata", "candid:service")), `${candid}\n`);
    const { code, stderr } = await canister("metadata", "nothing");
    assert.equal(code, 1);
    assert.match(stderr, /'nothing' not found/);
  });
});

/** `icp deploy` of a project, and what follows: calls, upgrades, settings, logs, snapshots, deletion. */
describe("icp deploy", { skip: skipIcp() }, () => {
  const folder = new Folder();
  let server;

  before(async () => {
    server = await Server.start();
    writeFileSync(folder.file("icp.yaml"), project(server));
  });

  after(async () => {
    await server?.stop();
    folder.drop();
  });

  const icp = (...args) => run(icpPath(), [...args, "-e", "served"], folder);

  async function done(...args) {
    const { code, stdout, stderr } = await icp(...args);
    assert.equal(code, 0, stdout + stderr);
    return stdout;
  }

  async function refused(...args) {
    const { code, stdout, stderr } = await icp(...args);
    assert.equal(code, 1, stdout + stderr);
    return stderr;
  }

  const number = (text) => BigInt(text.replaceAll(/\D/g, ""));
  const balance = async () => number(await done("cycles", "balance", "--quiet"));
  const status = async (name) => JSON.parse(await done("canister", "status", name, "--json"));
  const cycles = async (name) => number((await status(name)).cycles);

  test("creates and installs canisters", async () => {
    assert.equal(await balance(), INITIAL);
    const deployed = await done("deploy");
    for (const name of ["first", "second"]) {
      const { id, module_hash, settings, cycles } = await status(name);
      assert.match(deployed, new RegExp(`Created canister ${name} with ID ${id}`));
      assert.equal(module_hash, `0x${fileHash()}`);
      assert.deepEqual(settings.controllers, ["2vxsx-fae"]);
      const variables = Object.fromEntries(settings.environment_variables.map(({ name, value }) => [name, value]));
      assert.equal(variables[`PUBLIC_CANISTER_ID:${name}`], id);
      assert.equal(variables.GREETING, name === "first" ? "hello" : undefined);
      const has = number(cycles);
      assert.ok(has <= DEFAULT - CREATION && has > DEFAULT - CREATION - LITTLE, cycles);
    }
    assert.equal((await status("first")).settings.freezing_threshold, "1_000_000");
    assert.equal(await balance(), INITIAL - 2n * (DEFAULT + FEE));
  });

  test("the canister works, and an upgrade keeps its id", async () => {
    const { id } = await status("first");
    assert.match(await done("canister", "call", "first", "describe", "()", "--query"), /max_rows/);
    assert.match(await done("deploy", "first"), /Deployed canisters/);
    assert.equal((await status("first")).id, id);
    assert.match(await done("canister", "call", "first", "describe", "()"), /max_rows/);
    assert.equal(await balance(), INITIAL - 2n * (DEFAULT + FEE));
  });

  test("settings and cycles", async () => {
    await done("canister", "settings", "update", "first", "--freezing-threshold", "2000000", "--add-controller", "aaaaa-aa", "--force");
    const { settings } = await status("first");
    assert.equal(settings.freezing_threshold, "2_000_000");
    assert.deepEqual(settings.controllers.toSorted(), ["2vxsx-fae", "aaaaa-aa"]);
    const [account, before] = [await balance(), await cycles("first")];
    await done("canister", "top-up", "first", "--amount", "3t");
    const more = (await cycles("first")) - before;
    assert.ok(more <= 3n * T && more > 3n * T - LITTLE, `${more}`);
    assert.equal(await balance(), account - 3n * T - FEE);
  });

  test("the log shows a trap", async () => {
    // No values where one is required.
    const trapped = await refused("canister", "call", "first", "set_payload", "4449444c0000", "--args-format", "hex");
    assert.match(trapped, /IC0503/);
    assert.match(await done("canister", "logs", "first"), /\[TRAP\]/);
  });

  test("a snapshot is taken, restored and deleted", async () => {
    await done("canister", "stop", "first");
    const taken = await done("canister", "snapshot", "create", "first");
    const id = taken.match(/[0-9a-f]{36}/)[0];
    assert.match(await done("canister", "snapshot", "list", "first"), new RegExp(id));
    await done("canister", "snapshot", "restore", "first", id);
    await done("canister", "snapshot", "delete", "first", id);
    await done("canister", "start", "first");
    assert.match(await refused("canister", "snapshot", "restore", "first", id), /running|not found/i);
  });

  test("deletion returns the cycles", async () => {
    const [account, left] = [await balance(), await cycles("second")];
    await done("canister", "delete", "second");
    const returned = (await balance()) - account;
    assert.ok(returned < left - FEE && returned > left - LITTLE, `${returned} of ${left}`);
    assert.match(await refused("canister", "status", "second"), /could not find ID/);
    assert.match(await done("deploy", "second"), /Created canister second/);
  });

  test("what is missing is refused by name", async () => {
    assert.match(await refused("cycles", "transfer", "1t", "aaaaa-aa"), /no update method 'icrc1_transfer'/);
    assert.match(await refused("cycles", "mint", "--cycles", "1t"), /no query method 'get_icp_xdr_conversion_rate'/);
  });
});
