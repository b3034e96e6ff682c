//! The replica: compiles modules and makes canisters.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ic_principal::Principal;
use wasmtime::{Engine, Linker};

use crate::canister::{Canister, HostError, Settings};
use crate::engine;
use crate::limits::DEFAULT_WASM_MEMORY_LIMIT;
use crate::module::{Module, first_canister};
use crate::reject::Reject;
use crate::saved::{self, LoadError};
use crate::system_api::host::{Host, link};
use crate::system_api::names::AddressWidth;
use crate::units::Cycles;

/// The replica could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the WebAssembly engine cannot be used on this machine: {0}")]
pub struct EngineError(String);

/// An embedded replica. Cloning it is cheap; it may be used from many threads.
#[derive(Clone)]
pub struct Replica(Arc<Inner>);

struct Inner {
    engine: Engine,
    wasm32: Linker<Host>,
    wasm64: Linker<Host>,
    cache: Option<PathBuf>,
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica").field("cache", &self.0.cache).finish_non_exhaustive()
    }
}

impl Replica {
    /// Starts a replica. Compiled modules are kept in `cache`, if there is one.
    ///
    /// # Errors
    ///
    /// If the machine is not one that the engine compiles for.
    pub fn new(cache: Option<PathBuf>) -> Result<Self, EngineError> {
        let failed = |error: wasmtime::Error| EngineError(format!("{error:#}"));
        let engine = engine::new().map_err(failed)?;
        let mut wasm32 = Linker::new(&engine);
        link(&mut wasm32, AddressWidth::Bits32).map_err(failed)?;
        let mut wasm64 = Linker::new(&engine);
        link(&mut wasm64, AddressWidth::Bits64).map_err(failed)?;
        Ok(Self(Arc::new(Inner { engine, wasm32, wasm64, cache })))
    }

    /// Validates, rewrites and compiles a module, plain or gzipped.
    ///
    /// # Errors
    ///
    /// The reject with which the replica answers installing such a module.
    pub fn compile(&self, module: &[u8]) -> Result<Module, Reject> {
        let inner = &*self.0;
        let linker = |width| match width {
            AddressWidth::Bits32 => &inner.wasm32,
            AddressWidth::Bits64 => &inner.wasm64,
        };
        Module::new(&inner.engine, linker, inner.cache.as_deref(), module)
            .map_err(|fault| fault.reject(&first_canister()))
    }

    /// A canister from a file that [`Canister::save`] wrote. The file is mapped,
    /// not read, and must not change while the canister is used.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is damaged, or is of another version.
    pub fn load(&self, path: &Path) -> Result<Canister, LoadError> {
        saved::load(path, |module| self.compile(module))
    }

    /// A canister without a module, with settings as PocketIC gives the first
    /// canister of an instance: controlled by the anonymous principal, with
    /// 1 000 T cycles.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn create_canister(&self) -> Result<Canister, HostError> {
        Canister::new(Settings {
            id: first_canister(),
            controllers: vec![Principal::anonymous()],
            balance: Cycles(1_000_000_000_000_000),
            heap_limit: DEFAULT_WASM_MEMORY_LIMIT,
        })
    }
}
