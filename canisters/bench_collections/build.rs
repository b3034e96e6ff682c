//! Exports the versions of the crates that decide what the work costs.

#[path = "../locked_versions.rs"]
mod locked_versions;

fn main() {
    locked_versions::export(&["candid", "ic-cdk", "ic-stable-structures", "rustc-hash"]);
}
