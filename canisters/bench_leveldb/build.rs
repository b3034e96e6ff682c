//! Exports the versions of the crates that decide what the engine costs.

#[path = "../locked_versions.rs"]
mod locked_versions;

fn main() {
    locked_versions::export(&["ic-cdk", "ic-stable-structures", "rusty-leveldb", "snap"]);
}
