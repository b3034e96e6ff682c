//! The fuzz targets of the server: each binary of this source runs the one of its name.

#![no_main]

#[path = "../tests/server/server.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod server;
#[path = "../tests/server/targets.rs"]
#[allow(dead_code, reason = "tests use the rest")]
mod targets;

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| match env!("CARGO_BIN_NAME") {
    "request_body" => targets::request_body(bytes),
    "management_argument" => targets::management_argument(bytes),
    "state_path" => targets::state_path(bytes),
    other => panic!("no target is named {other}"),
});
