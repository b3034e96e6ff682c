//! The files of the committed modules, their record, `canisters/modules/list.json`, and the comparison of a
//! module's sources with it.
//!
//! ```text
//!   "bench": {
//!     "sha256"       of the plain module, as results have it
//!     "module_hash"  of the file, as the IC reports it
//!     "sources"      the hash of the files: SHA-256 of path, 0, length, content of each, in order
//!     "files"        every file of this repository that the compiler read, and its toolchain
//!     "crates"       the name and version of each crate of the lock file that is in it
//!   }
//! ```
//!
//! A plain module of a canister here is larger than one message to the IC may be (2 MiB), so it
//! is deployed in gzip. The IC accepts gzip, and its `module_hash` is the hash of what was
//! uploaded. The file's header contains no time, name or operating system, so the file is
//! identical wherever it is made.
//!
//! A module is stale if a file has changed or a crate has another version. That is found without cargo.
//! A change of the profile or of the workspace's features is found by `cargo xtask modules --check`,
//! which compares bytes.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::{self, Read, Write};
use std::path::Path;

use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The path of the record in the repository.
pub const RECORD: &str = "canisters/modules/list.json";

/// The record of all modules, by the names of their canisters.
pub type Record = BTreeMap<String, Recorded>;

/// The record of a module.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Recorded {
    pub sha256: String,
    pub module_hash: String,
    /// Nothing if cargo does not build it.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub sources: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub crates: Vec<String>,
}

impl Recorded {
    /// Returns the first difference between a checkout and what the module was built from.
    pub fn difference(&self, root: &Path) -> Option<String> {
        let lock = read(&root.join("Cargo.lock")).unwrap_or_default();
        let lock = String::from_utf8_lossy(&lock);
        for locked in &self.crates {
            let (name, version) = locked.split_once(' ').unwrap_or((locked, ""));
            if !lock.contains(&format!("name = \"{name}\"\nversion = \"{version}\"\n")) {
                return Some(format!("Cargo.lock has no longer {locked}"));
            }
        }
        match hash_of_files(root, &self.files) {
            // Not built from files.
            _ if self.files.is_empty() => None,
            Ok(hash) if hash == self.sources => None,
            Ok(_) => Some("its sources have changed".to_owned()),
            Err((file, error)) => Some(format!("{file}: {error}")),
        }
    }
}

/// Returns the hash of files in a folder, which is the same on every system.
///
/// # Errors
///
/// The file that cannot be read.
pub fn hash_of_files(root: &Path, files: &[String]) -> Result<String, (String, io::Error)> {
    let mut hash = Sha256::new();
    for file in files {
        let content = read(&root.join(file)).map_err(|error| (file.clone(), error))?;
        hash.update(file);
        hash.update([0]);
        hash.update((content.len() as u64).to_le_bytes());
        hash.update(content);
    }
    Ok(format!("{:x}", hash.finalize()))
}

#[expect(clippy::disallowed_methods, reason = "files of the checkout")]
fn read(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::read(path)
}

/// The maximum size of a decompressed module, in bytes: no replica accepts a larger one.
const MAX_INFLATED: u64 = 100 << 20;

/// Returns the module in gzip. The same module gives the same bytes.
///
/// # Errors
///
/// Never in practice: the compressor writes into memory.
pub fn deployable(wasm: &[u8]) -> io::Result<Vec<u8>> {
    let mut gzip = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    gzip.write_all(wasm)?;
    gzip.finish()
}

/// Returns the plain module of a deployed file. A file that is not in gzip is returned
/// unchanged: the replica reports best what is wrong with it.
pub fn plain(deployed: &[u8]) -> Cow<'_, [u8]> {
    inflated(deployed, MAX_INFLATED)
}

/// Returns the plain module of a deployed file, of a compressed one at most this number of bytes.
pub fn inflated(deployed: &[u8], most: u64) -> Cow<'_, [u8]> {
    if deployed.starts_with(&[0x1f, 0x8b]) {
        let mut wasm = Vec::new();
        if GzDecoder::new(deployed).take(most).read_to_end(&mut wasm).is_ok() {
            return wasm.into();
        }
    }
    deployed.into()
}

/// Returns the SHA-256 of a file in hex. For a deployed file, this is the IC's `module_hash`.
pub fn hash(file: &[u8]) -> String {
    format!("{:x}", Sha256::digest(file))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_changed_file_and_another_version_of_a_crate_are_differences() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let files = ["a.rs", "b.rs"].map(str::to_owned).to_vec();
        let write = |name: &str, text: &str| fs::write(root.join(name), text).unwrap();
        let lock = |version: &str| {
            let text = format!("[[package]]\nname = \"used\"\nversion = \"{version}\"\n");
            write("Cargo.lock", &text);
        };
        write("a.rs", "one");
        write("b.rs", "two");
        lock("1.0.1");
        let recorded = Recorded {
            sha256: String::new(),
            module_hash: String::new(),
            sources: hash_of_files(root, &files).unwrap(),
            files,
            crates: vec!["used 1.0.1".to_owned()],
        };
        assert_eq!(recorded.difference(root), None);
        lock("1.0.10");
        assert_eq!(recorded.difference(root).unwrap(), "Cargo.lock has no longer used 1.0.1");
        lock("1.0.1");
        // The same bytes in other files.
        write("a.rs", "onetwo");
        write("b.rs", "");
        assert_eq!(recorded.difference(root).unwrap(), "its sources have changed");
        fs::remove_file(root.join("b.rs")).unwrap();
        assert!(recorded.difference(root).unwrap().starts_with("b.rs: "));
        let none = Recorded { sources: String::new(), files: vec![], crates: vec![], ..recorded };
        assert_eq!(none.difference(root), None);
    }

    #[test]
    fn compression_is_deterministic_and_reversible() {
        let wasm: Vec<u8> = (0..200_000_u32).flat_map(|n| (n % 977).to_le_bytes()).collect();
        let file = deployable(&wasm).unwrap();
        assert_eq!(file, deployable(&wasm).unwrap());
        assert!(file.len() < wasm.len() / 10);
        assert_eq!(plain(&file), wasm);
        assert_eq!(*inflated(&file, 1_000), wasm[..1_000]);
    }

    #[test]
    fn the_gzip_header_contains_no_time_name_or_system() {
        let file = deployable(b"\0asm").unwrap();
        // Deflate; no name, no extras; time 0; best compression; unknown system.
        assert_eq!(file[..10], [0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 255]);
    }

    #[test]
    fn files_that_are_not_gzip_are_unchanged() {
        for bytes in [&b""[..], b"\0asm", &[0x1f, 0x8b], &[0x1f, 0x8b, 8, 0, 0, 0]] {
            assert_eq!(plain(bytes), bytes);
        }
    }
}
