//! Valid modules that call the System API: properties of every message.

#![no_main]

#[path = "../../tests/replica/fuzzing/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each binary runs one of the targets")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::generated_module(bytes));
