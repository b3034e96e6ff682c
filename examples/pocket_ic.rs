//! Tests of a canister on a PocketIC server. Copy this file and replace the methods by those of
//! your canister; `docs/testing-with-pocket-ic.md` explains it.
//!
//! ```text
//! POCKET_IC_BIN=… cargo run --release --features pocket-ic --example pocket_ic -- canisters/modules/bench.wasm.gz
//! ```

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a failed test panics")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]
#![allow(clippy::print_stdout, reason = "an example shows what it does")]

use candid::utils::ArgumentEncoder;
use candid::{CandidType, Principal, decode_one, encode_args};
// In a package of your own, the crate is `pocket_ic`.
use pocket_ic_16::{PocketIc, PocketIcBuilder};
use serde::de::DeserializeOwned;
use stablebench_protocol::{Digest, DigestPart, Engine, Error, Job, Measurement, Result};
use stablebench_suite_users::{Users, UsersTask};

/// The principal that creates and calls canisters here, and therefore controls them.
const CONTROLLER: Principal = Principal::anonymous();
const STRANGER: Principal = Principal::from_slice(&[7]);

#[allow(dead_code, reason = "tests call the functions below")]
fn main() {
    let path = std::env::args().nth(1).expect("the path of the bench canister's module");
    let wasm = std::fs::read(&path).unwrap_or_else(|error| panic!("{path}: {error}"));
    // Starts the server that POCKET_IC_BIN names, and creates an instance.
    let pic = PocketIcBuilder::new().with_application_subnet().build();
    rows_survive_an_upgrade(&pic, &wasm);
    strangers_may_not_write(&pic, &wasm);
    a_snapshot_restores_rows(&pic, &wasm);
    println!("all tests passed");
}

/// Installs, writes, upgrades and reads.
pub fn rows_survive_an_upgrade(pic: &PocketIc, wasm: &[u8]) {
    let canister = installed(pic, wasm);
    let added: Measurement =
        update(pic, canister, CONTROLLER, "add_users", (Engine::SQLITE, 0_u64, 10_u64, 50_u64))
            .unwrap();
    assert_eq!(added.rows, 50);
    // The canister's own measurement with `performance_counter(0)`.
    assert!(added.instructions > 50_000, "{added:?}");
    let before = digest(pic, canister);

    let upgraded = pic.upgrade_canister(canister, wasm.to_vec(), no_arguments(), Some(CONTROLLER));
    upgraded.expect("the module is accepted");

    assert_eq!(digest(pic, canister), before);
    assert_eq!(before.rows, 50);
}

/// Calls an update as a stranger.
pub fn strangers_may_not_write(pic: &PocketIc, wasm: &[u8]) {
    let canister = installed(pic, wasm);
    let before = pic.cycle_balance(canister);
    let refused: Result<()> = update(pic, canister, STRANGER, "set_payload", (7_u32,));
    assert_eq!(refused, Err(Error::NotController));
    assert!(pic.cycle_balance(canister) < before, "a refused update is charged too");
}

/// Populates once, then starts several attempts from the same state.
pub fn a_snapshot_restores_rows(pic: &PocketIc, wasm: &[u8]) {
    let canister = installed(pic, wasm);
    let arguments = (Engine::SQLITE, 0_u64, 10_u64, 200_u64);
    update::<Measurement>(pic, canister, CONTROLLER, "add_users", arguments).unwrap();
    let before = digest(pic, canister);
    let snapshot = pic.take_canister_snapshot(canister, Some(CONTROLLER), None).unwrap();
    for _ in 0..2 {
        update::<()>(pic, canister, CONTROLLER, "reset", (Engine::SQLITE,)).unwrap();
        assert_eq!(digest(pic, canister).rows, 0);
        pic.load_canister_snapshot(canister, Some(CONTROLLER), snapshot.id.clone()).unwrap();
        assert_eq!(digest(pic, canister), before);
    }
}

/// Creates a canister for one test, so that tests do not depend on each other.
fn installed(pic: &PocketIc, wasm: &[u8]) -> Principal {
    let canister = pic.create_canister();
    // A module of more than 2 MB is sent in chunks.
    pic.install_canister(canister, wasm.to_vec(), no_arguments(), Some(CONTROLLER));
    canister
}

/// Sends an update and executes rounds until it is answered.
fn update<T>(
    pic: &PocketIc,
    canister: Principal,
    caller: Principal,
    method: &str,
    arguments: impl ArgumentEncoder,
) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    let argument = encode_args(arguments).unwrap();
    // A message that traps is rejected; an error of the canister's own is a reply.
    let reply = pic.update_call(canister, caller, method, argument);
    let reply = reply.unwrap_or_else(|reject| panic!("{method}: {reject}"));
    decode_one(&reply)
        .unwrap_or_else(|error| panic!("cannot decode the reply of {method}: {error}"))
}

/// Returns a fingerprint of the rows. It is a query, which changes nothing and costs nothing.
fn digest(pic: &PocketIc, canister: Principal) -> Digest {
    // The content of an engine is that of any job of it.
    let job = Users { engine: Engine::SQLITE, payload_bytes: 0, task: UsersTask::Close };
    let argument = encode_args((Job::new(&job), None::<DigestPart>, 1_000_u64)).unwrap();
    let reply = pic.query_call(canister, STRANGER, "content", argument).unwrap();
    let part: Result<DigestPart> = decode_one(&reply).unwrap();
    part.unwrap().digest
}

fn no_arguments() -> Vec<u8> {
    encode_args(()).unwrap()
}
