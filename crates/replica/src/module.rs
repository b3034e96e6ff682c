//! A canister's module, validated, rewritten and compiled.

use std::borrow::Cow;
use std::fmt;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use ic_principal::Principal;
use sha2::{Digest, Sha256};
use wasmtime::{Engine, InstancePre, Linker};

use crate::fault::Fault;
use crate::instrument::{self, Instrumented, instrument};
use crate::reject::ErrorCode;
use crate::system_api::host::Host;
use crate::system_api::names::AddressWidth;
use crate::validate::{EntryPoint, MethodKind, ModuleInfo, decode, validate};

/// A module that canisters can be installed from. Cloning it is cheap.
#[derive(Clone)]
pub struct Module(Arc<Inner>);

struct Inner {
    uploaded: Vec<u8>,
    info: ModuleInfo,
    rewritten: Instrumented,
    ready: InstancePre<Host>,
}

impl fmt::Debug for Module {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Module").field("info", &self.0.info).finish_non_exhaustive()
    }
}

impl Module {
    /// Prepares an uploaded module, plain or gzipped.
    pub(crate) fn new<'l>(
        engine: &Engine,
        linker: impl Fn(AddressWidth) -> &'l Linker<Host>,
        cache: Option<&Path>,
        uploaded: &[u8],
    ) -> Result<Self, Fault> {
        let wasm = decode(uploaded)?;
        let info = validate(&wasm)?;
        let rewritten = instrument(&wasm).map_err(|error| Fault::Module {
            code: ErrorCode::CanisterInvalidWasm,
            message: format!("Could not instrument wasm module of canister: {error}"),
        })?;
        let compiled = compile(engine, &rewritten.wasm, cache)
            .map_err(|error| Fault::Engine(format!("Failed to compile: {error:#}")))?;
        let ready = linker(info.address_width)
            .instantiate_pre(&compiled)
            .map_err(|error| Fault::Engine(format!("Failed to instantiate module: {error:#}")))?;
        let uploaded = uploaded.to_vec();
        Ok(Self(Arc::new(Inner { uploaded, info, rewritten, ready })))
    }

    /// The module as it was uploaded.
    pub fn uploaded(&self) -> &[u8] {
        &self.0.uploaded
    }

    /// The module, plain.
    pub fn wasm(&self) -> Cow<'_, [u8]> {
        // What was installed could be decoded.
        decode(&self.0.uploaded).unwrap_or_default()
    }

    /// SHA-256 of the module as it was uploaded: the IC's module hash.
    pub fn hash(&self) -> [u8; 32] {
        Sha256::digest(&self.0.uploaded).into()
    }

    /// What validation found.
    pub fn info(&self) -> &ModuleInfo {
        &self.0.info
    }

    pub(crate) fn rewritten(&self) -> &Instrumented {
        &self.0.rewritten
    }

    pub(crate) fn ready(&self) -> &InstancePre<Host> {
        &self.0.ready
    }

    pub(crate) fn method(&self, name: &str) -> Option<MethodKind> {
        let found = self.0.info.methods.iter().find(|method| method.name == name);
        found.map(|method| method.kind)
    }

    pub(crate) fn has(&self, entry_point: EntryPoint) -> bool {
        self.0.info.has(entry_point)
    }
}

/// Compiles `wasm`, or takes it from the cache. A cache that cannot be read or
/// written only costs time.
#[expect(unsafe_code, reason = "compiled modules are machine code, which the engine runs")]
fn compile(
    engine: &Engine,
    wasm: &[u8],
    cache: Option<&Path>,
) -> wasmtime::Result<wasmtime::Module> {
    let Some(directory) = cache else {
        return wasmtime::Module::new(engine, wasm);
    };
    let path = cached_at(engine, wasm, directory);
    if let Some(serialized) = read_checked(&path) {
        // SAFETY: the checksum shows that the bytes are those that this engine,
        // whose version is in the name, has serialized.
        if let Ok(module) = unsafe { wasmtime::Module::deserialize(engine, serialized) } {
            return Ok(module);
        }
    }
    let module = wasmtime::Module::new(engine, wasm)?;
    if let Ok(serialized) = module.serialize() {
        // A full disk must not stop a run that can do without a cache.
        let _ = write_checked(&path, &serialized);
    }
    Ok(module)
}

fn cached_at(engine: &Engine, wasm: &[u8], directory: &Path) -> PathBuf {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut version = DefaultHasher::new();
    engine.precompile_compatibility_hash().hash(&mut version);
    instrument::VERSION.hash(&mut version);
    let name = format!("{}-{:016x}.module", hex(&Sha256::digest(wasm)), version.finish());
    directory.join(name)
}

/// A cache file is the SHA-256 of its content, then the content.
fn read_checked(path: &Path) -> Option<Vec<u8>> {
    let mut bytes = fs::read(path).ok()?;
    let content = bytes.split_off(bytes.len().min(32));
    (bytes == Sha256::digest(&content).as_slice()).then_some(content)
}

fn write_checked(path: &Path, content: &[u8]) -> std::io::Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(directory)?;
    let mut file = tempfile::NamedTempFile::new_in(directory)?;
    file.write_all(&Sha256::digest(content))?;
    file.write_all(content)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The id that PocketIC and a fresh subnet give to the first canister.
pub fn first_canister() -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, 0, 1, 1])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_damaged_cache_file_is_not_taken() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("below").join("file");
        assert_eq!(read_checked(&path), None);
        write_checked(&path, b"content").unwrap();
        assert_eq!(read_checked(&path).as_deref(), Some(&b"content"[..]));
        let mut bytes = fs::read(&path).unwrap();
        bytes[35] ^= 1;
        fs::write(&path, &bytes).unwrap();
        assert_eq!(read_checked(&path), None);
        fs::write(&path, &bytes[..20]).unwrap();
        assert_eq!(read_checked(&path), None);
    }
}
