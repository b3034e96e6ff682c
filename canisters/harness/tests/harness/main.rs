//! The harness on canisters that need no wasm.
//!
//! One macro defines the endpoints of every canister, so that the interface is checked here.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(missing_docs)]

mod by_hand;
mod records;
mod suites;
mod support;

use candid_parser::utils::{CandidSource, service_equal};
use support::HeapCanister;

stablebench_harness::canister!(HeapCanister);

candid::export_service!();

#[test]
fn the_candid_file_is_the_interface() {
    let (exported, file) = (__export_service(), include_str!("../../../bench.did"));
    if let Err(error) = service_equal(CandidSource::Text(&exported), CandidSource::Text(file)) {
        panic!("{error}\nThe interface is:\n{exported}");
    }
}
