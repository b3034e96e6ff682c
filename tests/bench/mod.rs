//! What is asked of the canister, one question a file.

mod arguments;
mod callers;
mod canister;
mod cold;
mod contents;
mod cuckoo;
mod db_bench;
mod doltlite;
mod floors;
mod harness;
mod jobs;
mod leveldb;
mod life;
mod measurements;
mod module;
mod recorded;
mod settings;
mod settings_refused;
mod sqlite;
mod transactions;
mod vfs;
mod work;
