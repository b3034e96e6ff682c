//! Tests of the canisters, one subject per file. DoltLite has its own target.

mod calls;
#[allow(dead_code, reason = "the target doltlite uses the rest")]
mod canister;
mod floors;
mod key_value;
mod leveldb;
mod methods;
mod model;
mod module;
mod sqlite;
mod upgrades;
mod users;
mod vfs;
