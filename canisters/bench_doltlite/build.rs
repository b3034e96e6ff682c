//! Archives without members for libraries that other crates ask the linker for, and the versions
//! of DoltLite's crates.
//!
//! ```text
//! libsqlite3.a    of libsqlite3-sys: its functions are DoltLite's here
//! libpthread.a    of doltlite: there are no threads
//! ```

use std::path::Path;
use std::{env, fs};

#[path = "../harness/lock.rs"]
mod lock;

const ARCHIVES: [&str; 2] = ["libsqlite3.a", "libpthread.a"];

/// What an archive without members is.
const EMPTY: &str = "!<arch>\n";

fn main() {
    lock::tell(&[
        "doltlite",
        "ic-cdk",
        "ic-stable-structures",
        "ic-wasi-polyfill",
        "libz-sys",
        "rusqlite",
        "stable-fs",
    ]);
    let out = env::var("OUT_DIR").unwrap_or_default();
    for name in ARCHIVES {
        let path = Path::new(&out).join(name);
        fs::write(&path, EMPTY)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
    println!("cargo::rustc-link-search=native={out}");
}
