/** The part of the canister's interface, canisters/bench.did, that the tests use, for an actor. */

const measurement = (IDL) =>
  IDL.Record(
    Object.fromEntries(
      ["instructions", "counter_overhead", "message_instructions", "rows", "bytes", "heap_pages_before", "heap_pages_after", "stable_pages_before", "stable_pages_after"].map((name) => [name, IDL.Nat64]),
    ),
  );

/** @type {import("@icp-sdk/core/candid").IDL.InterfaceFactory} */
export const bench = ({ IDL }) => {
  // Only the variants that occur here; any other would fail a test.
  const Error = IDL.Variant({ NotController: IDL.Null, IdExists: IDL.Record({ id: IDL.Nat64 }) });
  const answer = (ok) => IDL.Variant({ Ok: ok, Err: Error });
  const Measurement = measurement(IDL);
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
