//! Which modules the replica installs, and in which words it refuses the others.
//!
//! [`decode()`] makes a plain module of what was uploaded, [`validate`] applies the rules.
//! A module that breaks two rules is refused for the first in this order:
//!
//! ```text
//! decode.rs    gzip or plain, at most 100 MiB
//! wasm.rs      size of the code section, then valid WebAssembly
//! sections.rs  parsing into tables that the rules below read
//! imports.rs   only the System API, with its signatures
//! exports.rs   reserved names, methods and their signatures, their number
//! limits.rs    tables, data offsets, globals, functions, first size of a 64-bit heap
//! code.rs      operators that are not allowed, complexity of a function
//! custom.rs    sections named `icp:`
//! limits.rs    data segments lie inside the heap
//! engine.rs    what the real engine refuses when it compiles, links, instantiates
//! supported.rs what only the embedded replica lacks
//! locals.rs    what would take the embedded replica too long to compile
//! ```
//!
//! Source: `rs/embedders/src/wasm_utils.rs` and, beside it, `wasm_utils/validation.rs`,
//! `wasm_utils/decoding.rs`, `wasm_utils/instrumentation.rs` and
//! `wasmtime_embedder.rs` of the replica (October 2025, WebAssembly engine
//! wasmtime 37; what later rule sets changed, June 2026); words from `rs/types/wasm_types/src/errors.rs`.

mod code;
mod custom;
mod decode;
mod engine;
mod exports;
mod imports;
mod limits;
mod locals;
mod refusal;
mod sections;
mod supported;
#[cfg(test)]
mod tests;
mod wasm;

use std::collections::BTreeMap;

use crate::rules::Rules;
use crate::system_api::names::{AddressWidth, SystemCall};
use crate::units::WasmPages;

pub use custom::{CustomSection, Visibility};
pub use decode::decode;
pub use exports::{EntryPoint, Method, MethodKind};
pub use refusal::Refusal;
pub use supported::Purpose;

use sections::Sections;

/// What the rest of the replica needs to know of a valid module.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct ModuleInfo {
    /// The methods that can be called, in the order of the export section.
    pub methods: Vec<Method>,
    /// The functions that the replica calls by itself, in the order of the export section.
    pub entry_points: Vec<EntryPoint>,
    /// The function that the module's start section names, by its index.
    pub start: Option<u32>,
    /// The imported functions: the position here is the index of the function.
    pub imports: Vec<SystemCall>,
    /// How wide the heap's addresses are.
    pub address_width: AddressWidth,
    /// The heap's first size; 0 without a heap.
    pub initial_pages: WasmPages,
    /// Sections named `icp:public NAME` or `icp:private NAME`, by NAME.
    pub custom_sections: BTreeMap<String, CustomSection>,
    /// Operators in all functions, `end`s included, before instrumentation.
    ///
    /// What compiling costs follows from the operators *after* it, plus two for each
    /// global.
    pub operators: u64,
}

impl ModuleInfo {
    /// Whether the module exports that entry point.
    pub fn has(&self, entry_point: EntryPoint) -> bool {
        self.entry_points.contains(&entry_point)
    }
}

/// Checks a plain (not compressed) module against the rules for canisters, and whether the
/// embedded replica can do with it what it is for.
///
/// # Errors
///
/// The rule that the module breaks, worded as the replica words it behind
/// `Error from Canister ID: `.
pub fn validate(wasm: &[u8], rules: Rules, purpose: Purpose) -> Result<ModuleInfo, Refusal> {
    let limits = &rules.set().module;
    wasm::check(wasm, limits)?;
    let sections = Sections::parse(wasm)?;
    let width = sections.address_width();

    let imports = imports::check(&sections, width, limits)?;
    let exports = exports::check(&sections, limits)?;
    limits::check_table_types(&sections, limits)?;
    limits::check_data_offsets(&sections, width)?;
    limits::check_globals(&sections, limits)?;
    limits::check_functions(&sections, limits)?;
    limits::check_initial_size(&sections, rules.set().memory.heap64)?;
    let operators = code::check(&sections, limits)?;
    let custom_sections = custom::check(&sections)?;
    limits::check_data_bounds(&sections)?;
    engine::check(&sections)?;
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
    locals::check(&sections)?;
    Ok(info)
}
