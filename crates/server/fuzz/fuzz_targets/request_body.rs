//! Requests of every kind, each of which the server must answer.

#![no_main]

#[path = "../../tests/server/server.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod server;
#[path = "../../tests/server/targets/mod.rs"]
#[allow(dead_code, unused_imports, reason = "each binary runs one target")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| targets::request_body(bytes));
