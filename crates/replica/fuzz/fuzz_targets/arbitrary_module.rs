//! Bytes as an upload: it is refused with a message, or installed and called.

#![no_main]

#[path = "../../tests/replica/fuzzing/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each binary runs one of the targets")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| fuzzing::arbitrary_module(bytes));
