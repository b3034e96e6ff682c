//! The suite on canisters that need no wasm.
//!
//! Two macros define the endpoints of every canister that offers the suite, so that the interface is
//! checked here.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(missing_docs)]

mod by_hand;
#[path = "../../../../canisters/harness/tests/heap/mod.rs"]
mod heap;
mod memory;
mod parts;
mod records;
mod support;

use candid_parser::utils::{CandidSource, service_equal};
use support::HeapCanister;

stablebench_harness::canister!(HeapCanister, include_bytes!("../../../../canisters/bench.did"));
stablebench_suite_users::methods_by_hand!();

candid::export_service!();

#[test]
fn the_candid_file_is_the_interface() {
    let exported = __export_service();
    let file = include_str!("../../../../canisters/bench.did");
    // Another suite has this method.
    let (before, sql) = file.split_once("  sql : (").unwrap();
    let file = format!("{before}{}", sql.split_once(";\n").unwrap().1);
    if let Err(error) = service_equal(CandidSource::Text(&exported), CandidSource::Text(&file)) {
        panic!("{error}\nThe interface is:\n{exported}");
    }
}
