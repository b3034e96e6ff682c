//! Tests of the canisters on the embedded replica, one subject per file.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by a panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

mod canister;
mod doltlite;
mod key_value;
mod leveldb;
mod memory;
mod methods;
mod modules;
mod sqlite;
mod users;
mod vfs;
