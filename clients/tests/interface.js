/** The part of the canister's interface, canisters/bench/bench.did, that the tests use, for an actor. */

const measurement = (IDL) =>
  IDL.Record(
    Object.fromEntries(
      ["instructions", "counter_overhead", "message_instructions", "rows", "bytes", "heap_pages_before", "heap_pages_after", "stable_pages_before", "stable_pages_after"].map((name) => [name, IDL.Nat64]),
    ),
  );

/** @type {import("@icp-sdk/core/candid").IDL.InterfaceFactory} */
export const bench = ({ IDL }) => {
  const Engine = IDL.Variant({ btree: IDL.Null, sqlite: IDL.Null, append: IDL.Null, array: IDL.Null, cuckoo: IDL.Null });
  // Only the variants that occur here; any other would fail a test.
  const Error = IDL.Variant({ NotController: IDL.Null, IdExists: IDL.Record({ id: IDL.Nat64 }) });
  const answer = (ok) => IDL.Variant({ Ok: ok, Err: Error });
  const Selection = IDL.Variant({
    step: IDL.Record({ first: IDL.Nat64, step: IDL.Nat64, rows: IDL.Nat64 }),
    list: IDL.Vec(IDL.Nat64),
  });
  const Work = IDL.Record({
    engine: Engine,
    operation: IDL.Variant({ read: Selection, count: IDL.Null }),
    transaction: IDL.Opt(IDL.Nat64),
    each: IDL.Bool,
  });
  const Measurement = measurement(IDL);
  const rows = [IDL.Nat64, IDL.Nat64, IDL.Nat64];
  return IDL.Service({
    add_users_btree: IDL.Func(rows, [answer(Measurement)], []),
    add_users_sqlite: IDL.Func(rows, [answer(Measurement)], []),
    set_payload: IDL.Func([IDL.Nat32], [IDL.Variant({ Ok: IDL.Null, Err: Error })], []),
    look: IDL.Func([Work], [answer(IDL.Record({ measurement: Measurement }))], ["query"]),
    describe: IDL.Func(
      [],
      [answer(IDL.Record({ payload_bytes: IDL.Nat32, sqlite: IDL.Opt(IDL.Record({ version: IDL.Text })) }))],
      ["query"],
    ),
  });
};
