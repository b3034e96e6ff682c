//! For build scripts of canisters: the versions of the crates that decide what they cost, from the
//! lock file they are built with.

use std::path::Path;
use std::{env, fs};

/// Exports the versions of the crates to the compiler as `CRATE_VERSIONS`.
pub fn export(crates: &[&str]) {
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
