//! The canisters of this repository: building them, and their interfaces.

mod build;
mod c_sources;
mod deployable;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use stablebench_replica::files;

pub use build::{build, write};
pub use deployable::{deployable, hash, plain};

use crate::progress::Progress;

/// Bytes of the largest module that is read: more than any replica takes.
const MOST: u64 = 256 << 20;

/// A canister of this repository.
#[derive(Clone, Copy, Debug)]
pub struct Source {
    /// The name by which it is called.
    pub name: &'static str,
    package: &'static str,
    target: &'static str,
    candid: &'static str,
    /// The header before each of its C sources, where it has such.
    c_header: Option<&'static str>,
}

/// Every canister.
pub const SOURCES: [Source; 4] = [BENCH, BENCH_VFS, BENCH_LEVELDB, BENCH_DOLTLITE];

/// StableBTreeMap and SQLite through `ic-rusqlite`.
pub const BENCH: Source = Source {
    name: "bench",
    package: "stablebench-bench",
    target: "wasm32-wasip1",
    candid: "canisters/bench/bench.did",
    c_header: None,
};

/// SQLite through `ic-sqlite-vfs`.
pub const BENCH_VFS: Source = Source {
    name: "bench_vfs",
    package: "stablebench-bench-vfs",
    target: "wasm32-unknown-unknown",
    candid: "canisters/bench/bench.did",
    c_header: None,
};

/// LevelDB, by `rusty-leveldb`.
pub const BENCH_LEVELDB: Source = Source {
    name: "bench_leveldb",
    package: "stablebench-bench-leveldb",
    target: "wasm32-unknown-unknown",
    candid: "canisters/bench_leveldb/bench_leveldb.did",
    c_header: None,
};

/// DoltLite: SQL on a prolly tree.
pub const BENCH_DOLTLITE: Source = Source {
    name: "bench_doltlite",
    package: "stablebench-bench-doltlite",
    target: "wasm32-wasip1",
    candid: "canisters/bench_doltlite/bench_doltlite.did",
    c_header: Some("canisters/bench_doltlite/include/canister.h"),
};

/// A built canister.
#[derive(Clone, Debug)]
pub struct Built {
    /// What it is called.
    pub name: String,
    /// Where its module is.
    pub path: PathBuf,
    /// Its module.
    pub wasm: Vec<u8>,
    /// Its interface, in Candid.
    pub candid: String,
}

impl Source {
    /// The canister of that name.
    pub fn named(name: &str) -> Option<Self> {
        SOURCES.iter().copied().find(|source| source.name == name)
    }

    /// Where the ready module is put.
    pub fn wasm_path(&self) -> PathBuf {
        root().join("target/canisters").join(format!("{}.wasm", self.name))
    }

    /// Where the module is put as it is deployed.
    pub fn deployable_path(&self) -> PathBuf {
        self.wasm_path().with_extension("wasm.gz")
    }

    fn candid_path(&self) -> PathBuf {
        root().join(self.candid)
    }
}

impl Built {
    /// Reads a module from anywhere, plain or in gzip; its interface is in its metadata.
    pub fn read(path: &Path) -> Result<Self> {
        let wasm =
            files::read(path, MOST).with_context(|| format!("cannot read {}", path.display()))?;
        let candid = candid_of(&wasm).unwrap_or_default();
        if wasm.is_empty() {
            bail!("{} is empty", path.display());
        }
        let file = path.file_name().unwrap_or_default().to_string_lossy();
        let name = file.strip_suffix(".gz").unwrap_or(&file);
        let name = name.strip_suffix(".wasm").unwrap_or(name).to_owned();
        Ok(Self { name, path: path.to_owned(), wasm, candid })
    }
}

/// The canister of that name, built, or the module at that path.
pub fn find(name: &str, progress: &Progress) -> Result<Built> {
    match Source::named(name) {
        Some(source) => build(source, progress),
        None if Path::new(name).is_file() => Built::read(Path::new(name)),
        None => bail!(
            "no canister {name}; there is {}, or give the path of a wasm file",
            SOURCES.map(|source| source.name).join(", ")
        ),
    }
}

/// The interface in a module's `icp:public candid:service` section.
pub fn candid_of(module: &[u8]) -> Option<String> {
    let wasm = plain(module);
    wasmparser::Parser::new(0).parse_all(&wasm).filter_map(Result::ok).find_map(|payload| {
        match payload {
            wasmparser::Payload::CustomSection(section)
                if section.name() == "icp:public candid:service" =>
            {
                String::from_utf8(section.data().to_vec()).ok()
            }
            _ => None,
        }
    })
}

/// The repository: where the sources of the canisters are.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
