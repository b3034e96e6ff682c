//! Tells the canister the versions of LevelDB's crates.

#[path = "../harness/lock.rs"]
mod lock;

fn main() {
    lock::tell(&["rusty-leveldb", "snap"]);
}
