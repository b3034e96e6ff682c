//! The costs of another canister with the same engines, whose counts are recorded.
//!
//! The conformance cases hold what a PocketIC server counted for `users.wasm.gz`,
//! which does the same inserts in the plainest way. Here it runs beside the bench
//! canister, with fewer rows: what the bench canister measures is the engines' work
//! and next to nothing of its own.

use super::canister::{Bench, CONTROLLER, replica, root, rows};
use candid::{decode_one, encode_args};
use stablebench_protocol::Engine;
use stablebench_replica::Canister;

const POPULATED: u64 = 10_000;

fn recorded() -> Canister {
    let path = root().join("crates/conformance/cases/users.wasm.gz");
    let module = replica().compile(&std::fs::read(path).unwrap()).unwrap();
    let mut canister = replica().create_canister().unwrap();
    let installed = canister.install(&module, CONTROLLER, b"").unwrap();
    installed.outcome.unwrap();
    let argument = encode_args(("PERSIST",)).unwrap();
    let created = canister.update(CONTROLLER, "create_tables", &argument);
    created.unwrap().outcome.unwrap();
    canister
}

#[test]
fn inserts_cost_what_they_cost_in_the_recorded_canister() {
    // SQLite comes compiled and is the same code in both; here it is called through what
    // all SQL engines share, which takes some 150 instructions a row. The map is Rust, which
    // each canister inlines in its own way: here it costs 2.5 to 5.5 percent less.
    for (engine, method, percent) in
        [(Engine::Btree, "add_users_btree", 8), (Engine::Sqlite, "add_users_sqlite", 2)]
    {
        let mut recorded = recorded();
        let mut bench = Bench::new();
        let mut costs = |first: u64, number: u64| {
            let argument = encode_args((first, 10_u64, number)).unwrap();
            let execution = recorded.update(CONTROLLER, method, &argument).unwrap();
            let theirs: u64 = decode_one(&execution.outcome.unwrap()).unwrap();
            let ours = bench.measure("add_users", rows(engine, first, 10, number));
            (ours.instructions, theirs)
        };
        let end = POPULATED * 10;
        for (first, number) in
            [(0, POPULATED), (end / 2 + 5, 1), (end / 2 + 15, 100), (end, 1), (end + 10, 1_000)]
        {
            let (ours, theirs) = costs(first, number);
            let most = theirs * percent / 100;
            assert!(
                ours.abs_diff(theirs) <= most,
                "{engine}, {number} rows from {first}: {ours} here, {theirs} recorded"
            );
        }
    }
}
