//! The fuzz targets of the replica: each binary of this source runs the one of its name.

#![no_main]

#[path = "../tests/replica/fuzzing/mod.rs"]
#[allow(dead_code, unused_imports, reason = "tests use the rest")]
mod fuzzing;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match env!("CARGO_BIN_NAME") {
    "arbitrary_module" => fuzzing::arbitrary_module(bytes),
    "generated_module" => fuzzing::generated_module(bytes),
    "call_sequence" => fuzzing::call_sequence(bytes),
    "subnet_calls" => fuzzing::subnet_calls(bytes),
    "saved_state" => fuzzing::saved_state(bytes),
    "cache_entry" => fuzzing::cache_entry(bytes),
    other => panic!("no target is named {other}"),
});
