//! The replica: compiles modules and creates canisters.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ic_principal::Principal;
use sha2::{Digest, Sha256};

use crate::canister::{Canister, Settings};
use crate::compiler::{Compiler, Effort, Entries, Note, Prepared};
use crate::fault::{Fault, HostError, Reject};
use crate::instrument::Metering;
use crate::memory::os::{self, UnknownOs};
use crate::module::{Module, Modules, first_canister};
use crate::rules::Rules;
use crate::saved::{self, LoadError};
use crate::units::Cycles;
use crate::validate::Purpose;

/// The replica could not be started.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The engine does not support this machine.
    #[error("the WebAssembly engine cannot be used on this machine: {0}")]
    Engine(String),
    /// The environment variable `STABLEBENCH_MEMORY` names no backend of this system.
    #[error(transparent)]
    Memory(#[from] UnknownOs),
}

/// An embedded replica. Cloning it is cheap; it may be used from many threads.
#[derive(Clone)]
pub struct Replica(Arc<Inner>);

struct Inner {
    compiler: Arc<Compiler>,
    /// The compiler of modules that are not cached, if they run for a short time only.
    quick: Option<Arc<Compiler>>,
    modules: Modules,
    rules: Rules,
}

impl std::fmt::Debug for Replica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Replica").field("modules", &self.0.modules).finish_non_exhaustive()
    }
}

impl Replica {
    /// Starts a replica that charges by `rules`. Compiled modules are kept in the folder `cache`,
    /// if given, which is created on demand.
    ///
    /// # Errors
    ///
    /// If the engine does not support this machine, or `STABLEBENCH_MEMORY` is wrong.
    pub fn new(rules: Rules, cache: Option<PathBuf>) -> Result<Self, EngineError> {
        Self::with_notes(rules, cache, |_| {})
    }

    /// Starts a replica and passes notes about the cache to `tell`.
    ///
    /// # Errors
    ///
    /// If the engine does not support this machine, or `STABLEBENCH_MEMORY` is wrong.
    pub fn with_notes(
        rules: Rules,
        cache: Option<PathBuf>,
        tell: impl Fn(Note) + Send + Sync + 'static,
    ) -> Result<Self, EngineError> {
        Self::with_effort(Effort::Full, rules, cache, tell)
    }

    /// Starts a replica that compiles modules with this effort. What it counts does not depend on
    /// that, and modules that are cached in optimised form are used in that form.
    ///
    /// # Errors
    ///
    /// If the engine does not support this machine, or `STABLEBENCH_MEMORY` is wrong.
    pub fn with_effort(
        effort: Effort,
        rules: Rules,
        cache: Option<PathBuf>,
        tell: impl Fn(Note) + Send + Sync + 'static,
    ) -> Result<Self, EngineError> {
        let compiler = |effort| match Compiler::new(rules, effort) {
            Ok(compiler) => Ok(Arc::new(compiler)),
            Err(error) => Err(EngineError::Engine(format!("{error:#}"))),
        };
        os::selected()?;
        let quick = match effort {
            Effort::Full => None,
            Effort::Least => Some(compiler(effort)?),
        };
        let compiler = compiler(Effort::Full)?;
        let modules = Modules::new(Entries::new(&compiler.engine, rules, cache, Box::new(tell)));
        Ok(Self(Arc::new(Inner { compiler, quick, modules, rules })))
    }

    /// The rules by which canisters are charged.
    pub fn rules(&self) -> Rules {
        self.0.rules
    }

    /// The version part of file names in the cache: files of this version have it between the
    /// module's hash and the extension.
    pub fn cache_version(&self) -> &str {
        self.0.modules.entries().version()
    }

    /// Validates, rewrites and compiles a module, plain or gzipped, or takes it from the cache. The
    /// module is for a canister that runs by itself: a message that calls another canister fails.
    ///
    /// # Errors
    ///
    /// The reject that the replica returns for such a module, or an error if the module has
    /// heartbeats or timers, which only run on a subnet.
    pub fn compile(&self, module: &[u8]) -> Result<Module, Reject> {
        self.compile_for(&first_canister(), module)
    }

    /// Compiles a module for the given canister, whose id appears in errors.
    ///
    /// # Errors
    ///
    /// As [`Replica::compile`].
    pub fn compile_for(&self, canister: &Principal, module: &[u8]) -> Result<Module, Reject> {
        self.compile_as(Sha256::digest(module).into(), module, Purpose::Everything)
            .map_err(|fault| fault.reject(canister))
    }

    /// Compiles a module for a canister of a [`Subnet`](crate::subnet::Subnet), where heartbeats,
    /// timers and calls to other canisters are executed.
    ///
    /// # Errors
    ///
    /// The reject that the replica returns for such a module.
    pub fn compile_for_subnet(
        &self,
        canister: &Principal,
        module: &[u8],
    ) -> Result<Module, Reject> {
        self.compile_as(Sha256::digest(module).into(), module, Purpose::Subnet)
            .map_err(|fault| fault.reject(canister))
    }

    /// Compiles a module that may have heartbeats or timers. They never run, so queries return
    /// what they return on the network before the first heartbeat and before the first timer is
    /// due. A canister with such a module can be saved, but only loaded with
    /// [`Replica::load_with_note`].
    ///
    /// # Errors
    ///
    /// The reject that the replica returns for such a module.
    pub fn compile_for_queries(&self, module: &[u8]) -> Result<Module, Reject> {
        self.compile_as(Sha256::digest(module).into(), module, Purpose::Queries)
            .map_err(|fault| fault.reject(&first_canister()))
    }

    pub(crate) fn compile_as(
        &self,
        hash: [u8; 32],
        module: &[u8],
        purpose: Purpose,
    ) -> Result<Module, Fault> {
        let Inner { compiler, quick, modules, rules } = &*self.0;
        modules.get(hash, purpose, |entries| {
            let (used, optimiser) = match quick {
                Some(quick) if !entries.contains(hash) => (quick, Some(compiler)),
                _ => (compiler, None),
            };
            let prepared = entries.prepared(used, hash, module, Metering::Local, purpose)?;
            Module::link(prepared, used, entries, module, hash, *rules, optimiser)
        })
    }

    /// Compiles a module without charges, to measure the cost of metering. Its counts are wrong.
    ///
    /// # Errors
    ///
    /// As [`Replica::compile`].
    #[doc(hidden)]
    pub fn compile_unmetered(&self, module: &[u8]) -> Result<Module, Reject> {
        self.compile_with(Metering::Off, module)
    }

    /// Compiles a module that stores each charge in the global.
    #[cfg(test)]
    pub(crate) fn compile_stored(&self, module: &[u8]) -> Result<Module, Reject> {
        self.compile_with(Metering::Stored, module)
    }

    fn compile_with(&self, metering: Metering, module: &[u8]) -> Result<Module, Reject> {
        let Inner { compiler, modules, rules, .. } = &*self.0;
        let hash = Sha256::digest(module).into();
        Prepared::new(&compiler.engine, module, metering, *rules, Purpose::Everything)
            .and_then(|it| {
                Module::link(it, compiler, modules.entries(), module, hash, *rules, None)
            })
            .map_err(|fault| fault.reject(&first_canister()))
    }

    /// Loads a canister from a file that [`Canister::save`] wrote. The whole file is read and
    /// checked, then its memories are mapped: the file must not change while the canister is
    /// used, but may be deleted or replaced.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is damaged, or has another version.
    pub fn load(&self, path: &Path) -> Result<Canister, LoadError> {
        saved::load(path, self.0.rules, |module| self.compile(module))
    }

    /// Loads a canister as [`Replica::load`] does, for a [`Subnet`](crate::subnet::Subnet): its
    /// module may have heartbeats and timers.
    ///
    /// # Errors
    ///
    /// The errors of [`Replica::load`].
    pub fn load_for_subnet(&self, path: &Path) -> Result<Canister, LoadError> {
        saved::load(path, self.0.rules, |module| self.compile_for_subnet(&first_canister(), module))
    }

    /// Loads a canister with the given module from a file that [`Canister::save_with_note`] wrote,
    /// and the note in it. The file is mapped and must not change while the canister is used, but
    /// may be deleted or replaced.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, is damaged, has another version, or belongs to a canister with
    /// another module.
    pub fn load_with_note(
        &self,
        path: &Path,
        module: &Module,
    ) -> Result<(Canister, String), LoadError> {
        saved::load_with_note(path, module)
    }

    /// Creates a canister without a module, with the settings of the first canister of a PocketIC
    /// instance: controlled by the anonymous principal, with 1 000 T cycles.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn create_canister(&self) -> Result<Canister, HostError> {
        Canister::new(Settings {
            id: first_canister(),
            controllers: vec![Principal::anonymous()],
            balance: Cycles(1_000_000_000_000_000),
            heap_limit: self.0.rules.set().memory.default_heap_limit,
        })
    }
}
