/** The agent of @icp-sdk/core, which by default verifies certificates and signatures of queries. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, describe, test } from "node:test";
import { Actor, AnonymousIdentity, CanisterStatus, HttpAgent, polling } from "@icp-sdk/core/agent";
import { IDL } from "@icp-sdk/core/candid";
import { DelegationChain, DelegationIdentity, ECDSAKeyIdentity, Ed25519KeyIdentity } from "@icp-sdk/core/identity";
import { Secp256k1KeyIdentity } from "@icp-sdk/core/identity/secp256k1";
import { Principal } from "@icp-sdk/core/principal";
import { ADD, EMPTY, Folder, MEASURED, READ, ROOT, Server, expected, moduleHash } from "./support.js";

/**
 * The part of the canister's interface, canisters/bench.did, that the tests use, for an actor.
 * @type {import("@icp-sdk/core/candid").IDL.InterfaceFactory}
 */
const bench = ({ IDL }) => {
  // Only the variants that occur here; any other would fail a test.
  const Error = IDL.Variant({ NotController: IDL.Null, IdExists: IDL.Record({ id: IDL.Nat64 }) });
  const answer = (ok) => IDL.Variant({ Ok: ok, Err: Error });
  const Measurement = IDL.Record(Object.fromEntries(MEASURED.map((name) => [name, IDL.Nat64])));
  const rows = [IDL.Nat64, IDL.Nat64, IDL.Nat64];
  return IDL.Service({
    add_users_btree: IDL.Func(rows, [answer(Measurement)], []),
    add_users_sqlite: IDL.Func(rows, [answer(Measurement)], []),
    set_payload: IDL.Func([IDL.Nat32], [IDL.Variant({ Ok: IDL.Null, Err: Error })], []),
    read_users: IDL.Func([IDL.Text, ...rows], [answer(Measurement)], []),
    run_query: IDL.Func([], [answer(IDL.Record({ measurement: Measurement }))], ["query"]),
    describe: IDL.Func(
      [],
      [answer(IDL.Record({ payload_bytes: IDL.Nat32, sqlite: IDL.Opt(IDL.Record({ version: IDL.Text })) }))],
      ["query"],
    ),
  });
};

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

const bytes = (hex) => Uint8Array.from(Buffer.from(hex, "hex"));
const agentOf = (options = {}) => HttpAgent.create({ host: server.url, rootKey: bytes(server.rootKey), retryTimes: 0, ...options });
const actorOf = (agent) => Actor.createActor(bench, { agent, canisterId: server.canister });
const canister = () => Principal.fromText(server.canister);

/** Only the counts that the tool prints. */
function assertMeasured(measurement, expected) {
  for (const field of MEASURED) assert.equal(measurement[field], expected[field], field);
}

describe("a controller", () => {
  // This must be the first message to the canister, because its cost depends on earlier ones.
  test("gets the counts of the embedded run", async () => {
    const actor = actorOf(await agentOf());
    const added = await actor.add_users_sqlite(...ADD.values);
    assertMeasured(added.Ok, counts.add);
    assert.equal(added.Ok.rows, 1000n);
    const empty = await actor.run_query(...EMPTY.values);
    assertMeasured(empty.Ok.measurement, counts.empty);
    const read = await actor.read_users(...READ.values);
    assertMeasured(read.Ok, counts.read);
    assert.equal(read.Ok.rows, 100n);
  });

  test("receives errors of the canister as replies", async () => {
    const actor = actorOf(await agentOf());
    assert.deepEqual(await actor.add_users_sqlite(...ADD.values), { Err: { IdExists: { id: 0n } } });
  });

  test("receives certified rejects for a trap and a missing method", async () => {
    const missing = ({ IDL }) => IDL.Service({ nothing: IDL.Func([], [], []), describe: IDL.Func([IDL.Text], [], []) });
    const actor = Actor.createActor(missing, { agent: await agentOf(), canisterId: server.canister });
    await assert.rejects(actor.nothing(), ({ message }) => /has no update method 'nothing'/.test(message) && /IC0536/.test(message));
  });

  test("can send a call and request the answer later", async () => {
    const agent = await agentOf();
    const arg = IDL.encode([IDL.Nat32], [200]);
    const { requestId, response } = await agent.call(server.canister, { methodName: "set_payload", arg, callSync: false });
    assert.equal(response.status, 202);
    const { reply } = await polling.pollForResponse(agent, { canisterId: canister() }, requestId);
    const [done] = IDL.decode([IDL.Variant({ Ok: IDL.Null })], reply);
    assert.deepEqual(done, { Ok: null });
    const { Ok } = await actorOf(agent).describe();
    assert.equal(Ok.payload_bytes, 200);
  });
});

describe("the root key", () => {
  test("can be fetched and equals the printed one", async () => {
    const agent = await HttpAgent.create({ host: server.url });
    assert.equal(Buffer.from(await agent.fetchRootKey()).toString("hex"), server.rootKey);
    const { Ok } = await actorOf(agent).describe();
    assert.equal(typeof Ok.sqlite[0].version, "string");
  });

  // A check that passed with any key would verify nothing.
  test("of another network is not accepted", async () => {
    const agent = await HttpAgent.create({ host: server.url, retryTimes: 0 });
    const actor = actorOf(agent);
    await assert.rejects(actor.set_payload(300), /signature|certificate/i);
    await assert.rejects(actor.describe(), /signature|certificate/i);
  });
});

test("a modified query reply is refused", async () => {
  const changing = async (url, init) => {
    const response = await fetch(url, init);
    if (!String(url).endsWith("/query")) return response;
    const body = Buffer.from(await response.arrayBuffer());
    const place = body.indexOf("3.");
    assert.notEqual(place, -1);
    body[place] += 1;
    return new Response(body, { status: response.status, headers: response.headers });
  };
  const actor = actorOf(await agentOf({ fetch: changing }));
  await assert.rejects(actor.describe(), /signature/i);
});

describe("a stranger", () => {
  const strangers = {
    "with an Ed25519 key": () => Ed25519KeyIdentity.generate(),
    "with a secp256k1 key": () => Secp256k1KeyIdentity.generate(),
    "with a P-256 key": () => ECDSAKeyIdentity.generate(),
    "with a delegation": async () => {
      const [root, session] = [Ed25519KeyIdentity.generate(), await ECDSAKeyIdentity.generate()];
      return DelegationIdentity.fromDelegation(session, await DelegationChain.create(root, session.getPublicKey()));
    },
    "with a delegation of a delegation, for this canister": async () => {
      const [root, middle, session] = [Secp256k1KeyIdentity.generate(), Ed25519KeyIdentity.generate(), Ed25519KeyIdentity.generate()];
      const soon = new Date(Date.now() + 60_000);
      const first = await DelegationChain.create(root, middle.getPublicKey(), soon);
      const chain = await DelegationChain.create(middle, session.getPublicKey(), soon, { previous: first, targets: [canister()] });
      return DelegationIdentity.fromDelegation(session, chain);
    },
  };
  for (const [name, identity] of Object.entries(strangers)) {
    test(`${name} may read, not write`, async () => {
      const agent = await agentOf({ identity: await identity() });
      const actor = actorOf(agent);
      assert.deepEqual(await actor.set_payload(300), { Err: { NotController: null } });
      assert.equal(typeof (await actor.describe()).Ok.payload_bytes, "number");
    });
  }

  const impostors = {
    "whose signature is of something else": () => {
      const identity = Ed25519KeyIdentity.generate();
      const sign = identity.sign.bind(identity);
      identity.sign = () => sign(new Uint8Array(32));
      return identity;
    },
    "whose delegation has expired": async () => {
      const [root, session] = [Ed25519KeyIdentity.generate(), Ed25519KeyIdentity.generate()];
      const chain = await DelegationChain.create(root, session.getPublicKey(), new Date(Date.now() - 600_000));
      return DelegationIdentity.fromDelegation(session, chain);
    },
    "whose delegation is for another canister": async () => {
      const [root, session] = [Ed25519KeyIdentity.generate(), Ed25519KeyIdentity.generate()];
      const targets = [Principal.fromText("ryjl3-tyaaa-aaaaa-aaaba-cai")];
      const chain = await DelegationChain.create(root, session.getPublicKey(), new Date(Date.now() + 60_000), { targets });
      return DelegationIdentity.fromDelegation(session, chain);
    },
  };
  for (const [name, identity] of Object.entries(impostors)) {
    test(`${name} is refused by the server`, async () => {
      const actor = actorOf(await agentOf({ identity: await identity() }));
      const refused = ({ message }) => /\b40[03]\b/.test(message);
      await assert.rejects(actor.set_payload(300), refused);
      await assert.rejects(actor.describe(), refused);
    });
  }
});

describe("the state of the system", () => {
  test("is healthy", async () => {
    const status = await (await agentOf()).status();
    assert.equal(status.replica_health_status, "healthy");
    assert.equal(Buffer.from(status.root_key).toString("hex"), server.rootKey);
  });

  test("contains the canister's interface, module, controllers and the time", async () => {
    const status = await CanisterStatus.request({ agent: await agentOf(), canisterId: canister(), paths: ["time", "controllers", "module_hash", "candid", "subnet"] });
    assert.ok(Math.abs(status.get("time") - Date.now()) < 60_000, String(status.get("time")));
    assert.deepEqual(status.get("controllers").map(String), [new AnonymousIdentity().getPrincipal().toText()]);
    assert.equal(status.get("module_hash"), moduleHash());
    assert.equal(status.get("candid"), readFileSync(join(ROOT, "canisters/bench.did"), "utf8"));
    assert.ok(status.get("subnet").nodeKeys.size > 0);
  });
});
