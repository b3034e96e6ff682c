//! Command lines of PocketIC clients, which take this program for their server.
//!
//! Clients start the program that `POCKET_IC_BIN` names, with arguments of their own:
//!
//! ```text
//!   --version                    pocket-ic-server 16.1.0
//!   --port-file FILE --ttl 60    serves until no request has come for a minute
//! ```
//!
//! So the program acts as the command `pocket-ic` if its name begins with `pocket-ic`, as
//! that of a link to it may, or if its arguments are those of a client.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::path::Path;

/// The variable with the version that clients require.
pub const VERSION: &str = "STABLEBENCH_POCKET_IC_VERSION";
/// The variable with which clients find a server.
const BINARY: &str = "POCKET_IC_BIN";
/// The name of the command, and of links.
const NAME: &str = "pocket-ic";

/// Returns the words of the command `pocket-ic` if a PocketIC client started the program, or else
/// the given words.
pub fn as_pocket_ic(words: Vec<OsString>) -> Vec<OsString> {
    let Some((program, arguments)) = words.split_first() else { return words };
    let name = Path::new(program).file_name().and_then(OsStr::to_str).unwrap_or_default();
    let linked = name.strip_prefix(NAME);
    let first = arguments.first().and_then(|word| word.to_str()).unwrap_or_default();
    let by_client = match first {
        "--port-file" | "--pid" | "--ttl" | "--hard-ttl" => true,
        "--version" => arguments.len() == 1 && (is_named() || std::env::var_os(VERSION).is_some()),
        _ => false,
    };
    if linked.is_none() && !by_client {
        return words;
    }
    let mut all = vec![program.clone(), NAME.into()];
    // A link such as pocket-ic-10 or pocket-ic-server-10.0.0 names the version.
    let version = linked.map(|rest| rest.trim_start_matches("-server").trim_start_matches('-'));
    if let Some(version) = version.filter(|version| is_version(version)) {
        all.extend(["--pocket-ic-version".into(), version.into()]);
    }
    all.extend_from_slice(arguments);
    all
}

/// Returns `true` if `POCKET_IC_BIN` names this program.
fn is_named() -> bool {
    let named = std::env::var_os(BINARY).and_then(|path| fs::canonicalize(path).ok());
    let this = std::env::current_exe().and_then(fs::canonicalize).ok();
    named.is_some() && named == this
}

fn is_version(text: &str) -> bool {
    text.split('.').all(|number| number.parse::<u32>().is_ok())
}
