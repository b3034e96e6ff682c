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
use wasmparser::{Parser, Payload};

use crate::builds::is_wasi;

/// The maximum size of a module that is read from a file, in bytes: more than any replica
/// accepts.
const MAX_FILE: u64 = 256 << 20;

/// The maximum size of a decompressed module, in bytes: no replica accepts a larger one.
const MAX_INFLATED: u64 = 100 << 20;

/// A canister of this repository.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    pub name: &'static str,
    pub(super) origin: Origin,
}

/// The origin of a canister's module.
#[derive(Clone, Copy, Debug)]
pub(super) enum Origin {
    /// Cargo builds it.
    Package(Package),
    /// A file of the checkout, in gzip: cargo cannot build it.
    File(&'static str),
}

/// A package that cargo builds for a target.
#[derive(Clone, Copy, Debug)]
pub(super) struct Package {
    pub name: &'static str,
    pub target: &'static str,
    /// The header that is included before each of its C sources, if it has any.
    pub c_header: Option<&'static str>,
}

/// All canisters.
pub const SOURCES: [Source; 8] = [
    BENCH,
    BENCH_VFS,
    BENCH_LEVELDB,
    BENCH_DOLTLITE,
    BENCH_CALLS,
    BENCH_COLLECTIONS,
    BENCH_MOTOKO,
    BENCH_MOTOKO_CLASSICAL,
];

/// StableBTreeMap and SQLite through `ic-rusqlite`.
pub const BENCH: Source = wasi("bench", "stablebench-bench");

/// SQLite through `ic-sqlite-vfs`.
pub const BENCH_VFS: Source = unknown("bench_vfs", "stablebench-bench-vfs");

/// LevelDB through `rusty-leveldb`.
pub const BENCH_LEVELDB: Source = unknown("bench_leveldb", "stablebench-bench-leveldb");

/// DoltLite: SQL on a prolly tree.
pub const BENCH_DOLTLITE: Source = Source {
    name: "bench_doltlite",
    origin: Origin::Package(Package {
        name: "stablebench-bench-doltlite",
        target: WASI,
        c_header: Some("canisters/bench_doltlite/include/canister.h"),
    }),
};

/// Calls to other canisters, and a map on the heap.
pub const BENCH_CALLS: Source = unknown("bench_calls", "stablebench-bench-calls");

/// Maps from numbers to numbers.
pub const BENCH_COLLECTIONS: Source = unknown("bench_collections", "stablebench-bench-collections");

/// The same in Motoko, with enhanced orthogonal persistence.
pub const BENCH_MOTOKO: Source = Source {
    name: "bench_motoko",
    origin: Origin::File("canisters/bench_collections/motoko/enhanced.wasm.gz"),
};

/// The same in Motoko, with classical persistence.
pub const BENCH_MOTOKO_CLASSICAL: Source = Source {
    name: "bench_motoko_classical",
    origin: Origin::File("canisters/bench_collections/motoko/classical.wasm.gz"),
};

/// The package of the suite builds. The name of its canister is followed by a slash and the options.
pub(super) const BUILDS: Package =
    Package { name: "stablebench-bench-builds", target: WASI, c_header: None };
/// The name of its canister without options.
pub const BENCH_BUILDS: &str = "bench_builds";

/// The target of canisters with code in C.
const WASI: &str = "wasm32-wasip1";

const fn wasi(name: &'static str, package: &'static str) -> Source {
    let package = Package { name: package, target: WASI, c_header: None };
    Source { name, origin: Origin::Package(package) }
}

const fn unknown(name: &'static str, package: &'static str) -> Source {
    let package = Package { name: package, target: "wasm32-unknown-unknown", c_header: None };
    Source { name, origin: Origin::Package(package) }
}

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
    /// Returns `true` if the canister has the table of the suite users in SQLite.
    pub fn has_sqlite(self) -> bool {
        [BENCH, BENCH_VFS, BENCH_DOLTLITE].iter().any(|source| source.name == self.name)
    }

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
    /// The versions of the programs that made it, if they are known.
    pub programs: Vec<CrateVersion>,
}

impl Built {
    pub(super) fn new(name: &str, wasm: Vec<u8>) -> Self {
        Self { name: name.to_owned(), wasm, programs: Vec::new() }
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

/// The section of modules whose heap stays in upgrades.
#[cfg(any(feature = "network", feature = "pocket-ic"))]
const PERSISTENCE: [&str; 2] =
    ["icp:public enhanced-orthogonal-persistence", "icp:private enhanced-orthogonal-persistence"];

/// The sections that contain an interface. Motoko's compiler makes a private one.
const INTERFACE: [&str; 2] = ["icp:public candid:service", "icp:private candid:service"];

/// Returns the interface in a module's section `candid:service`, public or private.
pub fn candid_of(module: &[u8]) -> Option<String> {
    section_of(module, &INTERFACE).and_then(|interface| String::from_utf8(interface).ok())
}

/// Returns `true` if an upgrade of a module keeps the heap: enhanced orthogonal persistence.
#[cfg(any(feature = "network", feature = "pocket-ic"))]
pub fn keeps_heap(module: &[u8]) -> bool {
    section_of(module, &PERSISTENCE).is_some()
}

/// Returns `true` if a module imports functions of WASI.
pub fn imports_wasi(module: &[u8]) -> bool {
    found_in(module, |payload| match payload {
        Payload::ImportSection(section) => {
            let mut imports = section.into_imports().filter_map(Result::ok);
            imports.any(|import| is_wasi(import.module)).then_some(())
        }
        _ => None,
    })
    .is_some()
}

/// Returns `true` if a module imports a function of the System API.
pub fn imports(module: &[u8], function: &str) -> bool {
    found_in(module, |payload| match payload {
        Payload::ImportSection(section) => {
            let mut imports = section.into_imports().filter_map(Result::ok);
            imports.any(|import| import.name == function).then_some(())
        }
        _ => None,
    })
    .is_some()
}

/// Returns the first custom section with one of these names.
fn section_of(module: &[u8], names: &[&str]) -> Option<Vec<u8>> {
    found_in(module, |payload| match payload {
        Payload::CustomSection(section) if names.contains(&section.name()) => {
            Some(section.data().to_vec())
        }
        _ => None,
    })
}

/// Returns what is found in one of a module's sections.
fn found_in<T>(module: &[u8], find: impl Fn(Payload<'_>) -> Option<T>) -> Option<T> {
    let wasm = plain(module);
    Parser::new(0).parse_all(&wasm).filter_map(Result::ok).find_map(find)
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
