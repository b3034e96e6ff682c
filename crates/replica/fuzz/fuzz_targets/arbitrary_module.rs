//! Bytes as an upload: refused in words, or installed and called.

#![no_main]

#[path = "../../tests/fuzzing/targets/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each binary runs one of the targets")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::arbitrary_module(bytes));
