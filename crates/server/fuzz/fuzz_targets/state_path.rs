//! Paths of the state tree, which are read or refused without a change.

#![no_main]

#[path = "../../tests/server/server.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod server;
#[path = "../../tests/server/targets/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each binary runs one target")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::state_path(bytes));
