/** The program icp of its npm package. It verifies certificates and signatures of queries. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Folder, MEASURED, ROOT, Server, icpPath, moduleHash, numbers, run, skipIcp } from "./support.js";
import { ADD, LOOK, expected } from "./work.js";

const README = readFileSync(join(ROOT, "README.md"), "utf8");

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

  /** Returns the output of a command that must succeed. */
  async function output(command) {
    const { code, stdout, stderr } = await command;
    assert.equal(code, 0, stdout + stderr);
    return stdout;
  }

  /** Compares the fields of a measurement. */
  function assertMeasured(printed, expected) {
    const measured = numbers(printed);
    for (const field of MEASURED) assert.equal(measured[field], expected[field], `${field} of ${printed}`);
  }

  // The first message to the canister: its cost depends on the canister's state.
  test("an update and a query have the counts of the embedded run", async () => {
    const added = await output(canister("call", ADD.method, ADD.candid));
    assert.match(added, /Ok = record/);
    assertMeasured(added, counts.add);
    assert.ok(README.includes(added), `README.md, Deploying, shows another answer than ${added}`);
    const looked = await output(canister("call", LOOK.method, LOOK.candid, "--query"));
    assert.match(looked, /Ok = record/);
    assertMeasured(looked, counts.look);
  });

  test("a query as a replicated call has the same counts", async () => {
    const looked = await output(canister("call", LOOK.method, LOOK.candid));
    assert.equal(numbers(looked).instructions, counts.look.instructions);
  });

  test("the canister's own errors are replies", async () => {
    assert.match(await output(canister("call", ADD.method, ADD.candid)), /Err = variant \{\s*IdExists = record \{\s*id = 0/);
  });

  test("the root key can be fetched", async () => {
    const printed = await output(icp("canister", "call", server.canister, "describe", "()", "--query", "-n", server.url, "-k", "fetch"));
    assert.match(printed, /max_rows/);
  });

  // Otherwise the answers above were not verified.
  for (const more of [[], ["--query"]]) {
    test(`an answer is refused with another root key, ${more[0] ?? "update"}`, async () => {
      const { rootKey } = server;
      const other = rootKey.slice(0, -1) + (rootKey.endsWith("0") ? "1" : "0");
      const { code, stderr } = await icp("canister", "call", server.canister, "describe", "()", ...more, ...network(other));
      assert.equal(code, 1, stderr);
      assert.match(stderr, /ertificat|signature|key/);
    });
  }

  test("a stranger may not write", async () => {
    await output(icp("identity", "new", "stranger", "--storage", "plaintext"));
    const printed = await output(canister("call", "set_payload", "(300)", "--identity", "stranger"));
    assert.match(printed, /Err = variant \{\s*NotController/);
  });

  test("ping", async () => {
    const status = JSON.parse(await output(icp("network", "ping", server.url)));
    assert.equal(status.replica_health_status, "healthy");
    assert.equal(Buffer.from(status.root_key).toString("hex"), server.rootKey);
  });

  test("status for controllers, and for anybody as JSON", async () => {
    const mine = await output(canister("status"));
    assert.match(mine, new RegExp(`Canister Id: ${server.canister}`));
    assert.match(mine, /Status: Running/);
    assert.match(mine, new RegExp(`Module hash: 0x${moduleHash()}`));
    const everyones = JSON.parse(await output(canister("status", "--public", "--json")));
    assert.equal(everyones.module_hash, `0x${moduleHash()}`);
    assert.deepEqual(everyones.controllers, ["2vxsx-fae"]);
  });

  test("metadata", async () => {
    const candid = readFileSync(join(ROOT, "canisters/bench/bench.did"), "utf8");
    assert.equal(await output(canister("metadata", "candid:service")), `${candid}\n`);
    const { code, stderr } = await canister("metadata", "nothing");
    assert.equal(code, 1);
    assert.match(stderr, /'nothing' not found/);
  });
});
