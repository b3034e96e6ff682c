//! Tells canisters the versions of the crates that decide what they cost.

mod lock;

/// Those of all canisters.
const CRATES: [&str; 7] = [
    "ic-cdk",
    "ic-rusqlite",
    "ic-sqlite-vfs",
    "ic-stable-structures",
    "ic-wasi-polyfill",
    "rusqlite",
    "stable-fs",
];

fn main() {
    lock::tell(&CRATES);
}
