//! Modules of canisters, plain and as they are deployed.
//!
//! A plain module of a canister here is larger than one message to the IC may be (2 MiB), so it
//! is deployed in gzip. The IC accepts gzip, and its `module_hash` is the hash of what was
//! uploaded. The file's header contains no time, name or operating system, so the file is
//! identical wherever it is made.

use std::borrow::Cow;
use std::io::{self, Read, Write};
use std::path::Path;

use anyhow::{Context, Result, bail};
use flate2::bufread::GzDecoder;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};
use stablebench_protocol::CrateVersion;
use stablebench_replica::files;

/// The maximum size of a module that is read from a file, in bytes: more than any replica
/// accepts.
const MAX_FILE: u64 = 256 << 20;

/// The maximum size of a decompressed module, in bytes: no replica accepts a larger one.
const MAX_INFLATED: u64 = 100 << 20;

/// A canister of this repository.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub name: &'static str,
    pub(super) package: &'static str,
    pub(super) target: &'static str,
    /// The header that is included before each of its C sources, if it has any.
    pub(super) c_header: Option<&'static str>,
}

/// All canisters.
pub const SOURCES: [Source; 5] = [BENCH, BENCH_VFS, BENCH_LEVELDB, BENCH_DOLTLITE, BENCH_CALLS];

/// StableBTreeMap and SQLite through `ic-rusqlite`.
pub const BENCH: Source =
    Source { name: "bench", package: "stablebench-bench", target: "wasm32-wasip1", c_header: None };

/// SQLite through `ic-sqlite-vfs`.
pub const BENCH_VFS: Source = Source {
    name: "bench_vfs",
    package: "stablebench-bench-vfs",
    target: "wasm32-unknown-unknown",
    c_header: None,
};

/// LevelDB through `rusty-leveldb`.
pub const BENCH_LEVELDB: Source = Source {
    name: "bench_leveldb",
    package: "stablebench-bench-leveldb",
    target: "wasm32-unknown-unknown",
    c_header: None,
};

/// DoltLite: SQL on a prolly tree.
pub const BENCH_DOLTLITE: Source = Source {
    name: "bench_doltlite",
    package: "stablebench-bench-doltlite",
    target: "wasm32-wasip1",
    c_header: Some("canisters/bench_doltlite/include/canister.h"),
};

/// Calls to other canisters, and a map on the heap.
pub const BENCH_CALLS: Source = Source {
    name: "bench_calls",
    package: "stablebench-bench-calls",
    target: "wasm32-unknown-unknown",
    c_header: None,
};

/// The canister of the suite builds, whose name is followed by a slash and the options.
pub const BENCH_BUILDS: Source = Source {
    name: "bench_builds",
    package: "stablebench-bench-builds",
    target: "wasm32-wasip1",
    c_header: None,
};

/// Returns names of canisters, each once: those of this repository first, in their order.
pub fn in_order<'a>(names: impl IntoIterator<Item = &'a str>) -> Vec<&'a str> {
    let mut ordered: Vec<&str> = Vec::new();
    for name in names {
        if !ordered.contains(&name) {
            ordered.push(name);
        }
    }
    let place = |name: &str| SOURCES.iter().position(|source| source.name == name);
    ordered.sort_by_key(|name| place(name).unwrap_or(SOURCES.len()));
    ordered
}

impl Source {
    /// Returns the canister with this name.
    pub fn named(name: &str) -> Option<Self> {
        SOURCES.iter().copied().find(|source| source.name == name)
    }
}

/// A canister's module.
#[derive(Clone, Debug)]
pub struct Built {
    /// The name of the canister, or of the file without its extensions.
    pub name: String,
    pub wasm: Vec<u8>,
    /// The interface in Candid, from the module's metadata; empty if it has none.
    pub candid: String,
    /// The versions of the programs that made it, if they are known.
    pub programs: Vec<CrateVersion>,
}

impl Built {
    pub(super) fn new(name: &str, wasm: Vec<u8>) -> Self {
        let candid = candid_of(&wasm).unwrap_or_default();
        Self { name: name.to_owned(), wasm, candid, programs: Vec::new() }
    }

    /// Reads a module from a file, plain or in gzip.
    pub fn read(path: &Path) -> Result<Self> {
        let wasm = files::read(path, MAX_FILE)
            .with_context(|| format!("cannot read {}", path.display()))?;
        if wasm.is_empty() {
            bail!("{} is empty", path.display());
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = file.strip_suffix(".gz").unwrap_or(&file);
        Ok(Self::new(name.strip_suffix(".wasm").unwrap_or(name), wasm))
    }
}

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
    if deployed.starts_with(&[0x1f, 0x8b]) {
        let mut wasm = Vec::new();
        if GzDecoder::new(deployed).take(MAX_INFLATED).read_to_end(&mut wasm).is_ok() {
            return wasm.into();
        }
    }
    deployed.into()
}

/// Returns the SHA-256 of a file in hex. For a deployed file, this is the IC's `module_hash`.
pub fn hash(file: &[u8]) -> String {
    format!("{:x}", Sha256::digest(file))
}

/// The sections that contain an interface. Motoko's compiler makes a private one.
const INTERFACE: [&str; 2] = ["icp:public candid:service", "icp:private candid:service"];

/// Returns the interface in a module's section `candid:service`, public or private.
pub fn candid_of(module: &[u8]) -> Option<String> {
    let wasm = plain(module);
    wasmparser::Parser::new(0).parse_all(&wasm).filter_map(Result::ok).find_map(|payload| {
        match payload {
            wasmparser::Payload::CustomSection(section) if INTERFACE.contains(&section.name()) => {
                String::from_utf8(section.data().to_vec()).ok()
            }
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn compression_is_deterministic_and_reversible() {
        let wasm: Vec<u8> = (0..200_000_u32).flat_map(|n| (n % 977).to_le_bytes()).collect();
        let file = deployable(&wasm).unwrap();
        assert_eq!(file, deployable(&wasm).unwrap());
        assert!(file.len() < wasm.len() / 10);
        assert_eq!(plain(&file), wasm);
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
