//! Arguments of the management canister: answered, and the endpoint goes on.

#![no_main]

#[path = "../../tests/endpoint/server.rs"]
#[allow(dead_code, reason = "the tests need more")]
mod server;
#[path = "../../tests/endpoint/targets/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each binary runs one of the targets")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::management_argument(bytes));
