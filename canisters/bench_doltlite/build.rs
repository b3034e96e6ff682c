//! Empty archives for libraries that other crates link, and the versions of the crates that decide
//! what the engine costs.
//!
//! ```text
//! libsqlite3.a    of libsqlite3-sys: DoltLite has its functions
//! libpthread.a    of doltlite: there are no threads
//! ```

use std::path::Path;
use std::{env, fs};

#[path = "../locked_versions.rs"]
mod locked_versions;

const ARCHIVES: [&str; 2] = ["libsqlite3.a", "libpthread.a"];

/// The content of an archive without members.
const EMPTY: &str = "!<arch>\n";

fn main() {
    locked_versions::main();
    let out = env::var("OUT_DIR").unwrap_or_default();
    for name in ARCHIVES {
        let path = Path::new(&out).join(name);
        fs::write(&path, EMPTY)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
    println!("cargo::rustc-link-search=native={out}");
}
