//! The Candid file says what the endpoints are.
//!
//! The endpoints of every canister come from one macro, so they are checked here, on
//! a canister that needs no wasm.

#![allow(missing_docs)]

mod cuckoo;
mod db_bench;
mod heap;
mod heap_map;
mod heap_records;
mod host;
mod model;
mod records;
mod work;

use candid_parser::utils::{CandidSource, service_equal};
use heap::HeapCanister;
use std::path::Path;

stablebench_harness::canister!(HeapCanister);

candid::export_service!();

#[test]
fn the_candid_file_is_the_interface() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/bench.did");
    let code = __export_service();
    if let Err(error) = service_equal(CandidSource::Text(&code), CandidSource::File(&file)) {
        panic!("{error}\nThe code's interface is:\n{code}");
    }
}
