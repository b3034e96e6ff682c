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

/// What an engine adds to the interface of `bench`: after a text, another.
type Addition = (&'static str, &'static str);

const LEVELDB: Addition = ("type Engine = variant {", "leveldb;");
const CONFIGURE: Addition = (
    "service : {",
    "configure_leveldb : (record { compression : opt variant { none; snappy }; \
     write_buffer_size : opt nat32 }) -> (variant { Ok : record { compression : opt variant \
     { none; snappy }; write_buffer_size : opt nat32 }; Err : Error });",
);
const HISTORY: Addition = (
    "type Job = variant {",
    "history : record { rows : nat64; task : variant { create; insert; change : nat64; commit; \
     diff; branch; diverge : nat64; part : nat64; checkout; diff_branch; merge } };",
);

fn file(canister: &str) -> String {
    let path = format!("../{canister}/{canister}.did");
    std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

fn bench_with(additions: &[Addition]) -> String {
    let mut text = file("bench");
    for (after, addition) in additions {
        assert_eq!(text.matches(after).count(), 1, "{after}");
        text = text.replacen(after, &format!("{after} {addition}"), 1);
    }
    text
}

fn equal(one: &str, other: &str) {
    if let Err(error) = service_equal(CandidSource::Text(one), CandidSource::Text(other)) {
        panic!("{error}\nOne interface is:\n{one}\nThe other:\n{other}");
    }
}

/// The tests are built with all features of the protocol.
#[test]
fn the_candid_file_is_the_interface() {
    equal(&__export_service(), &bench_with(&[LEVELDB, HISTORY]));
}

#[test]
fn other_engines_add_to_the_interface_what_is_theirs() {
    equal(&file("bench_leveldb"), &bench_with(&[LEVELDB, CONFIGURE]));
    equal(&file("bench_doltlite"), &bench_with(&[HISTORY]));
}
