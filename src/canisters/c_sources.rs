//! The C compiler for canisters that have C sources, and what it is told.
//!
//! `cc`, which the crates' build scripts use, reads it from the environment:
//!
//! ```text
//!   CC_wasm32_wasip1       clang-19, unless somebody chose another
//!   AR_wasm32_wasip1       ar
//!   CFLAGS_wasm32_wasip1   -isystem …/wasm32-wasi -include canisters/…/canister.h, in a shell's quotes
//! ```

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, bail};

use super::build::own_paths;
use super::hash;

/// One version, so that everybody gets the same module.
const COMPILER: &str = "clang-19";

/// Where the headers of WASI's C library are, by Debian's package.
const HEADERS: [&str; 2] = ["/usr/include/wasm32-wasi", "/usr/include/wasm32-wasip1"];

/// The environment in which cargo builds the canister.
///
/// # Errors
///
/// Where the compiler or the headers are missing, and says what to install.
pub fn environment(canister: &str, target: &str, header: &Path) -> Result<Vec<(String, OsString)>> {
    let name = |tool: &str| format!("{tool}_{}", target.replace('-', "_"));
    let chosen = |tool: &str| env::var_os(name(tool));
    let compiler = chosen("CC").unwrap_or_else(|| COMPILER.into());
    let mut missing = Vec::new();
    if !runs(&compiler) {
        missing.push(format!("the C compiler {}", compiler.display()));
    }
    let headers = HEADERS.into_iter().find(|folder| Path::new(folder).join("stdio.h").is_file());
    if headers.is_none() && chosen("CFLAGS").is_none() {
        missing.push(format!("the headers of wasi-libc in {}", HEADERS[0]));
    }
    if !missing.is_empty() {
        bail!(
            "canister {canister} has C sources, and for them {} {} missing; install them: \
             apt-get install {COMPILER} wasi-libc\n\
             No other canister needs that.",
            missing.join(" and "),
            if missing.len() == 1 { "is" } else { "are" },
        );
    }
    let mut flags = chosen("CFLAGS").unwrap_or_default();
    let mut add = |flag: &str, value: &Path| {
        // In quotes, since paths may have spaces.
        for part in [flag, "'"].map(OsString::from).into_iter().chain([value.into(), "'".into()]) {
            flags.push(part);
        }
    };
    if let Some(headers) = headers {
        add(" -isystem ", Path::new(headers));
    }
    add(" -include ", header);
    // Cargo does not know of the header, but compiles anew where flags changed.
    let text = fs::read(header).with_context(|| format!("cannot read {}", header.display()))?;
    add(" -DCANISTER_HEADER=", Path::new(&format!("0x{}", &hash(&text)[..8])));
    for (from, to) in own_paths() {
        let mut map = from.into_os_string();
        map.push("=");
        map.push(to);
        add(" -ffile-prefix-map=", Path::new(&map));
    }
    let archiver = chosen("AR").unwrap_or_else(|| "ar".into());
    Ok(vec![
        (name("CC"), compiler),
        (name("AR"), archiver),
        (name("CFLAGS"), flags),
        ("CC_SHELL_ESCAPED_FLAGS".to_owned(), "1".into()),
    ])
}

fn runs(program: &OsString) -> bool {
    let mut command = Command::new(program);
    let silent = command.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
    silent.status().is_ok_and(|status| status.success())
}
