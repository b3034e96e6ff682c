//! Validation of uploaded modules, with the error messages of the replica.
//!
//! [`decode()`] makes a plain module of an upload, [`validate`] applies the rules. A module that
//! breaks several rules is refused for the first in this order:
//!
//! ```text
//! wasm.rs      gzip or plain, at most 100 MiB; size of the code section; valid WebAssembly;
//!              parsing into tables that the rules below read
//! interface.rs imports: only the System API, with its signatures
//!              exports: reserved names, methods and their signatures, their number
//! limits.rs    tables, data offsets, globals, functions, initial size of a 64-bit heap
//!              forbidden operators, complexity of a function
//! interface.rs custom sections named `icp:`
//! limits.rs    data segments inside of the heap; checks of the real engine when it compiles,
//!              links and instantiates
//! mod.rs       features that only the embedded replica lacks
//! limits.rs    locals that would take the embedded replica too long to compile
//! ```
//!
//! Source: `rs/embedders/src/wasm_utils.rs` of the replica, next to it
//! `wasm_utils/validation.rs`, `wasm_utils/decoding.rs`, `wasm_utils/instrumentation.rs` and
//! `wasmtime_embedder.rs` (October 2025, with wasmtime 37; changes of later rule sets: June 2026).
//! The messages are from `rs/types/wasm_types/src/errors.rs`.

mod interface;
mod limits;
mod refusal;
mod wasm;

use std::collections::BTreeMap;

use crate::rules::Rules;
use crate::system_api::names::{AddressWidth, SystemCall};
use crate::units::WasmPages;

pub use interface::{CustomSection, EntryPoint, Method, MethodKind, Visibility};
pub use refusal::Refusal;
pub use wasm::decode;

use refusal::Invalid;
use wasm::Sections;

/// Properties of a valid module.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[non_exhaustive]
pub struct ModuleInfo {
    /// The methods that can be called, in the order of the export section.
    pub methods: Vec<Method>,
    /// The functions that the replica calls by itself, in the order of the export section.
    pub entry_points: Vec<EntryPoint>,
    /// Index of the function in the start section.
    pub start: Option<u32>,
    /// The imported functions, by function index.
    pub imports: Vec<SystemCall>,
    /// Width of heap addresses.
    pub address_width: AddressWidth,
    /// Initial size of the heap; 0 without a heap.
    pub initial_pages: WasmPages,
    /// Sections named `icp:public NAME` or `icp:private NAME`, by NAME.
    pub custom_sections: BTreeMap<String, CustomSection>,
    /// Operators in all functions, `end`s included, before instrumentation.
    ///
    /// The cost of compiling depends on the operators *after* instrumentation, plus two for each
    /// global.
    pub operators: u64,
}

impl ModuleInfo {
    /// Returns true if the module exports the entry point.
    pub fn has(&self, entry_point: EntryPoint) -> bool {
        self.entry_points.contains(&entry_point)
    }
}

/// Checks a plain (uncompressed) module against the rules for canisters, and whether the embedded
/// replica supports it for this purpose.
///
/// # Errors
///
/// The rule that the module breaks, in the words of the replica, without `Error from Canister ID: `.
pub fn validate(wasm: &[u8], rules: Rules, purpose: Purpose) -> Result<ModuleInfo, Refusal> {
    let limits = &rules.set().module;
    wasm::check(wasm, limits)?;
    let sections = Sections::parse(wasm)?;
    let width = sections.address_width();

    let imports = interface::check_imports(&sections, width, limits)?;
    let exports = interface::check_exports(&sections, limits)?;
    limits::check_table_types(&sections, limits)?;
    limits::check_data_offsets(&sections, width)?;
    limits::check_globals(&sections, limits)?;
    limits::check_functions(&sections, limits)?;
    limits::check_initial_size(&sections, rules.set().memory.heap64)?;
    let operators = limits::check_operators(&sections, limits)?;
    let custom_sections = interface::check_custom_sections(&sections)?;
    limits::check_data_bounds(&sections)?;
    limits::check_engine(&sections)?;
    let info = ModuleInfo {
        methods: exports.methods,
        entry_points: exports.entry_points,
        start: sections.start,
        imports,
        address_width: width,
        initial_pages: sections.initial_pages(),
        custom_sections,
        operators,
    };
    purpose.check(&info)?;
    limits::check_locals(&sections)?;
    Ok(info)
}

/// The intended use of a module.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Any message to a canister that runs by itself.
    Everything,
    /// A canister on a subnet.
    Subnet,
    /// Queries only. Heartbeats and timers never run.
    Queries,
}

impl Purpose {
    /// Checks that the embedded replica supports this use of an otherwise valid module.
    ///
    /// # Errors
    ///
    /// If the module needs a heartbeat or a timer.
    pub fn check(self, info: &ModuleInfo) -> Result<(), Refusal> {
        match self {
            Self::Everything => check_supported(info).map_err(Refusal::from),
            Self::Subnet | Self::Queries => Ok(()),
        }
    }
}

/// Checks features that the real replica supports and the embedded one does not: heartbeats, and
/// timers with a handler. Calls to other canisters are checked when they are made.
fn check_supported(info: &ModuleInfo) -> Result<(), Invalid> {
    if info.has(EntryPoint::Heartbeat) {
        return Err(Invalid::NotEmbedded(EntryPoint::Heartbeat.name()));
    }
    // On the replica, too, a timer without a handler does nothing.
    if info.has(EntryPoint::GlobalTimer) && info.imports.contains(&SystemCall::GlobalTimerSet) {
        return Err(Invalid::NotEmbedded(SystemCall::GlobalTimerSet.name()));
    }
    Ok(())
}

#[cfg(test)]
mod tests;
