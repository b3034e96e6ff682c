//! Embeds the canisters' modules in the program: with the feature `embed-canisters`, and always in a
//! package, which has no sources of canisters.
//!
//! Writes `embedded.rs`: the modules in gzip by name, and the revision of the sources. In a checkout
//! they are those that `stablebench build` has left in `target/canisters` (`just install` does both
//! steps), in a package those that `scripts/package` has put into it.

#[path = "src/canisters/revision.rs"]
mod revision;

use std::error::Error;
use std::path::PathBuf;
use std::{env, fs};

/// The canisters, and whether one may be left out because it needs a C compiler.
const CANISTERS: [(&str, bool); 8] = [
    ("bench", false),
    ("bench_vfs", false),
    ("bench_leveldb", false),
    ("bench_doltlite", true),
    ("bench_calls", false),
    ("bench_collections", false),
    ("bench_motoko", false),
    ("bench_motoko_classical", false),
];

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let out = PathBuf::from(env::var("OUT_DIR")?).join("embedded.rs");
    let root = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?);
    let is_package = !root.join("canisters").is_dir();
    if !is_package && env::var_os("CARGO_FEATURE_EMBED_CANISTERS").is_none() {
        return Ok(fs::write(out, "(&[], None)")?);
    }
    let (folder, sources): (_, &[&str]) = match is_package {
        true => ("modules", &["modules"]),
        false => ("target/canisters", &[".git", "canisters", "crates", "src", "target/canisters"]),
    };
    for changing in sources {
        println!("cargo::rerun-if-changed={changing}");
    }
    let mut modules = String::new();
    for (name, optional) in CANISTERS {
        let path = root.join(folder).join(format!("{name}.wasm.gz"));
        if path.is_file() {
            modules += &format!("({name:?}, include_bytes!({path:?})),");
        } else if !optional {
            let next_step = match is_package {
                true => "make the package with `scripts/package`".to_owned(),
                false => format!(
                    "write it with `cargo run --release -- build {name}`, or install with `just install`"
                ),
            };
            println!(
                "cargo::error=this program embeds {}, which is missing; {next_step}",
                path.display()
            );
        }
    }
    let revision = match is_package {
        #[expect(clippy::disallowed_methods, reason = "a file of the package")]
        true => fs::read_to_string(root.join(folder).join("REVISION")).ok(),
        false => revision::revision_of(&root),
    };
    Ok(fs::write(out, format!("(&[{modules}], {revision:?})"))?)
}
