/** The program icp from its npm package, which verifies certificates and signatures of queries. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { ADD, EMPTY, Folder, MEASURED, ROOT, Server, expected, icpPath, moduleHash, numbers, run, skipIcp } from "./support.js";

const DOCUMENT = readFileSync(join(ROOT, "docs/serving.md"), "utf8");

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
