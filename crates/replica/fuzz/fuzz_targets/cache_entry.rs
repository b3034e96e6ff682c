//! Bytes as the file of a compiled module: it is used unchanged, or rebuilt.

#![no_main]

#[path = "../../tests/replica/fuzzing/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each binary runs one of the targets")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::cache_entry(bytes));
