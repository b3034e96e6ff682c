//! Bytes as the file of a saved canister: it is refused, or the canister continues.

#![no_main]

#[path = "../../tests/replica/fuzzing/targets/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each binary runs one of the targets")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::saved_state(bytes));
