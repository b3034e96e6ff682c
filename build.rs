//! Embeds the canisters' modules in the program, with the feature `embed-canisters`.
//!
//! Writes `embedded.rs`: the modules that `stablebench build` has left in `target/canisters`,
//! in gzip by name, and the revision of the sources. `just install` does both steps.

#[path = "src/canisters/revision.rs"]
mod revision;

use std::error::Error;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// The canisters, and whether one may be left out because it needs a C compiler.
const CANISTERS: [(&str, bool); 5] = [
    ("bench", false),
    ("bench_vfs", false),
    ("bench_leveldb", false),
    ("bench_doltlite", true),
    ("bench_calls", false),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("embedded.rs");
    if env::var_os("CARGO_FEATURE_EMBED_CANISTERS").is_none() {
        return Ok(fs::write(out, "(&[], None)")?);
    }
    for changing in [".git", "canisters", "crates", "src", "target/canisters"] {
        println!("cargo::rerun-if-changed={changing}");
    }
    let root = env::var("CARGO_MANIFEST_DIR")?;
    let mut modules = String::new();
    for (name, optional) in CANISTERS {
        let path = Path::new(&root).join("target/canisters").join(format!("{name}.wasm.gz"));
        if path.is_file() {
            modules += &format!("({name:?}, include_bytes!({path:?})),");
        } else if !optional {
            println!(
                "cargo::error=the feature embed-canisters embeds {}, which is missing; write it \
                 with `cargo run --release -- build {name}`, or install with `just install`",
                path.display()
            );
        }
    }
    let revision = revision::revision_of(Path::new(&root));
    Ok(fs::write(out, format!("(&[{modules}], {revision:?})"))?)
}
