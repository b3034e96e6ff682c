//! The build script of canisters, which other build scripts call too: the versions of the crates that
//! decide what a canister costs, from the lock file that it is built with.

use std::path::Path;
use std::{env, fs};

/// The canisters, and the crates of each.
const CRATES: &[(&str, &[&str])] = &[
    (
        "stablebench-bench",
        &[
            "ic-cdk",
            "ic-rusqlite",
            "ic-stable-structures",
            "ic-wasi-polyfill",
            "rusqlite",
            "stable-fs",
        ],
    ),
    (
        "stablebench-bench-builds",
        &[
            "candid",
            "ciborium",
            "ic-cdk",
            "ic-rusqlite",
            "ic-stable-structures",
            "rusqlite",
            "talc",
        ],
    ),
    ("stablebench-bench-calls", &["ic-cdk", "ic-cdk-executor", "futures-util"]),
    ("stablebench-bench-collections", &["candid", "ic-cdk", "ic-stable-structures", "rustc-hash"]),
    (
        "stablebench-bench-doltlite",
        &[
            "doltlite",
            "ic-cdk",
            "ic-stable-structures",
            "ic-wasi-polyfill",
            "libz-sys",
            "rusqlite",
            "stable-fs",
        ],
    ),
    ("stablebench-bench-leveldb", &["ic-cdk", "ic-stable-structures", "rusty-leveldb", "snap"]),
    ("stablebench-bench-vfs", &["ic-cdk", "ic-sqlite-vfs", "ic-stable-structures"]),
];

/// Exports the versions of the crates to the compiler as `CRATE_VERSIONS`.
pub fn main() {
    let package = env::var("CARGO_PKG_NAME").unwrap_or_default();
    let (_, crates) = CRATES
        .iter()
        .find(|(name, _)| *name == package)
        .unwrap_or_else(|| panic!("no crates are listed for {package}"));
    let manifest = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let lock = Path::new(&manifest)
        .ancestors()
        .map(|folder| folder.join("Cargo.lock"))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("no Cargo.lock above {manifest}"));
    println!("cargo::rerun-if-changed={}", lock.display());
    let text = fs::read_to_string(&lock)
        .unwrap_or_else(|error| panic!("cannot read {}: {error}", lock.display()));

    let versions: Vec<String> = crates
        .iter()
        .map(|name| match locked_version(&text, name) {
            Some(version) => format!("{name} {version}"),
            None => panic!("{} has no crate {name}", lock.display()),
        })
        .collect();
    println!("cargo::rustc-env=CRATE_VERSIONS={}", versions.join(","));
}

/// The version in the entry `name = "…"`, `version = "…"`.
fn locked_version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    rest.split('"').next()
}
