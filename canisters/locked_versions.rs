//! The build script of canisters, which other build scripts call too: the versions of the crates that
//! decide what a canister costs, from the lock file that it is built with.
//!
//! The manifest of a canister names them:
//!
//! ```text
//! [package.metadata]
//! measured-crates = ["ic-cdk", "ic-stable-structures"]
//! ```

use std::path::Path;
use std::{env, fs};

/// Exports the versions of the crates to the compiler as `CRATE_VERSIONS`.
pub fn main() {
    let folder = env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    let manifest = Path::new(&folder).join("Cargo.toml");
    let lock = Path::new(&folder)
        .ancestors()
        .map(|folder| folder.join("Cargo.lock"))
        .find(|file| file.is_file())
        .unwrap_or_else(|| panic!("no Cargo.lock above {folder}"));
    println!("cargo::rerun-if-changed={}", manifest.display());
    println!("cargo::rerun-if-changed={}", lock.display());
    let [manifest_text, lock_text] = [&manifest, &lock].map(|file| {
        fs::read_to_string(file)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", file.display()))
    });
    let versions: Vec<String> = measured_crates(&manifest_text)
        .unwrap_or_else(|| panic!("{} has no measured-crates", manifest.display()))
        .map(|name| match locked_version(&lock_text, name) {
            Some(version) => format!("{name} {version}"),
            None => panic!("{} has no crate {name}", lock.display()),
        })
        .collect();
    println!("cargo::rustc-env=CRATE_VERSIONS={}", versions.join(","));
}

/// The names in the list `measured-crates = ["…", …]`.
fn measured_crates(manifest: &str) -> Option<impl Iterator<Item = &str>> {
    let (_, rest) = manifest.split_once("\nmeasured-crates = [")?;
    let (names, _) = rest.split_once(']')?;
    Some(names.split('"').skip(1).step_by(2))
}

/// The version in the entry `name = "…"`, `version = "…"`.
fn locked_version<'a>(lock: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = lock.split_once(&format!("name = \"{name}\"\nversion = \""))?;
    rest.split('"').next()
}
