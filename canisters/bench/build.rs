//! Exports the versions of the crates that decide what the engines cost.

#[path = "../locked_versions.rs"]
mod locked_versions;

fn main() {
    locked_versions::export(&[
        "ic-cdk",
        "ic-rusqlite",
        "ic-stable-structures",
        "ic-wasi-polyfill",
        "rusqlite",
        "stable-fs",
    ]);
}
