//! Calls, forks, files, installs and upgrades of one canister, compared with a model.

#![no_main]

#[path = "../../tests/replica/fuzzing/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each binary runs one of the targets")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::call_sequence(bytes));
