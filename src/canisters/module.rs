//! A module of a canister, and the content of its sections.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, bail};
use stablebench_protocol::CrateVersion;
use stablebench_replica::files;
use stablebench_wasi::is_wasi;
use wasmparser::{Import, Parser, Payload};

use super::gzip::{inflated, plain};
use super::list::{BENCH, BENCH_DOLTLITE, BENCH_VFS, SOURCES, Source};

/// The maximum size of a module that is read from a file, in bytes: more than any replica
/// accepts.
const MAX_FILE: u64 = 256 << 20;

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

/// The names of the modules that were found, by hashes of them.
static NAMES: Mutex<BTreeMap<u64, String>> = Mutex::new(BTreeMap::new());

/// Returns the name of a module that was found.
pub fn name_of(wasm: &[u8]) -> Option<String> {
    NAMES.lock().unwrap_or_else(PoisonError::into_inner).get(&short_hash(wasm)).cloned()
}

/// A hash that only tells modules apart.
fn short_hash(wasm: &[u8]) -> u64 {
    let mut hasher = DefaultHasher::new();
    wasm.hash(&mut hasher);
    hasher.finish()
}

impl Built {
    pub(super) fn new(name: &str, wasm: Vec<u8>) -> Self {
        let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
        names.insert(short_hash(&wasm), name.to_owned());
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
    any_import(module, |import| is_wasi(import.module))
}

/// Returns `true` if a module imports a function of the System API.
pub fn imports(module: &[u8], function: &str) -> bool {
    any_import(module, |import| import.name == function)
}

/// The bytes of a module in which its imports usually are.
const BEGINNING: u64 = 256 << 10;

/// Returns `true` if a module has an import of this kind. Usually only its beginning is unpacked.
fn any_import(module: &[u8], is_it: impl Fn(&Import<'_>) -> bool) -> bool {
    let found = |wasm: &[u8]| {
        for payload in Parser::new(0).parse_all(wasm) {
            match payload.ok()? {
                Payload::ImportSection(section) => {
                    let mut imports = section.into_imports().filter_map(Result::ok);
                    return Some(imports.any(|import| is_it(&import)));
                }
                Payload::FunctionSection(_) | Payload::CodeSectionStart { .. } => break,
                _ => {}
            }
        }
        Some(false)
    };
    found(&inflated(module, BEGINNING)).or_else(|| found(&plain(module))).unwrap_or_default()
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

/// Returns the first result for a module's sections.
fn found_in<T>(module: &[u8], find: impl Fn(Payload<'_>) -> Option<T>) -> Option<T> {
    let wasm = plain(module);
    Parser::new(0).parse_all(&wasm).filter_map(Result::ok).find_map(find)
}

#[cfg(test)]
mod tests {
    use super::super::gzip::deployable;
    use super::*;

    #[test]
    fn imports_are_found_wherever_they_are() {
        let import = r#"(import "wasi_snapshot_preview1" "sched_yield" (func (result i32)))"#;
        // More than the beginning.
        let section = format!("(@custom \"a\" (before first) \"{}\")", "a".repeat(300 << 10));
        for (text, expected) in [
            (format!("(module {import})"), true),
            (format!("(module {section} {import})"), true),
            ("(module (func (nop)))".to_owned(), false),
            (format!("(module {section} (func (nop)))"), false),
        ] {
            let wasm = wat::parse_str(text).unwrap();
            for module in [deployable(&wasm).unwrap(), wasm] {
                assert_eq!(imports_wasi(&module), expected);
                assert_eq!(imports(&module, "sched_yield"), expected);
            }
        }
        assert!(!imports_wasi(b"\0asm\x01\0\0\0\xff") && !imports_wasi(b""));
    }
}
