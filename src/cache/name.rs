//! How the files of a cache are called.
//!
//! ```text
//!   HASH-VERSION.module   a compiled module: SHA-256 of the module, of all else
//!   HASH-VERSION.state    a populated canister: SHA-256 of its setup, of the tool
//!   HASH-VERSION.stamp    how that file looked when it was last known to be whole
//!   HASH-VERSION.digests  what was read back from forks of it
//!   .stablebench-XXXXXX   a file that is being written
//! ```
//!
//! HASH has 64 hexadecimal digits, VERSION 16. Files with other names are not ours.

use stablebench_replica::cache::{MODULE, TEMPORARY};

const STATE: &str = ".state";
const STAMP: &str = ".stamp";
const DIGESTS: &str = ".digests";

/// The versions that this program reads and writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Versions {
    pub module: String,
    pub state: String,
    /// Those of modules under other rules.
    pub others: Vec<String>,
}

/// What a file of the cache is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A compiled module.
    Module,
    /// A populated canister.
    State,
    /// The stamp of one.
    Stamp,
    /// Digests of forks of one.
    Digests,
    /// A file that is being written, or was when a program was ended.
    Temporary,
}

/// What a name says, if it is one of ours; with the version where there is one.
pub fn parse(name: &str) -> Option<(Kind, &str)> {
    if let Some(random) = name.strip_prefix(TEMPORARY) {
        let ours = !random.is_empty() && random.bytes().all(|byte| byte.is_ascii_alphanumeric());
        return ours.then_some((Kind::Temporary, ""));
    }
    let (stem, kind) = [
        (MODULE, Kind::Module),
        (STATE, Kind::State),
        (STAMP, Kind::Stamp),
        (DIGESTS, Kind::Digests),
    ]
    .into_iter()
    .find_map(|(end, kind)| Some((name.strip_suffix(end)?, kind)))?;
    let (hash, version) = stem.split_once('-')?;
    let digits = |text: &str, length: usize| {
        text.len() == length && text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    (digits(hash, 64) && digits(version, 16)).then_some((kind, version))
}

/// The file of a module, by its hash.
pub fn module(hash: &str, version: &str) -> String {
    format!("{hash}-{version}{MODULE}")
}

/// The file of a populated canister.
pub fn state(key: &str, version: &str) -> String {
    format!("{key}-{version}{STATE}")
}

/// The file of a populated canister's digests.
pub fn digests(key: &str, version: &str) -> String {
    format!("{key}-{version}{DIGESTS}")
}

/// The files beside a populated canister's that are of no use without it.
pub fn companions(state: &str) -> [String; 2] {
    let stem = state.trim_end_matches(STATE);
    [STAMP, DIGESTS].map(|end| format!("{stem}{end}"))
}
