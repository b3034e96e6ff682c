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
//! mod.rs       tables, data offsets, globals, functions, initial size of a 64-bit heap
//!              forbidden operators, complexity of a function
//! interface.rs custom sections named `icp:`
//! mod.rs       data segments inside of the heap; checks of the real engine when it compiles,
//!              links and instantiates
//!              features that only the embedded replica lacks
//!              locals that would take the embedded replica too long to compile
//! ```
//!
//! Source: `rs/embedders/src/wasm_utils.rs` of the replica, next to it
//! `wasm_utils/validation.rs`, `wasm_utils/decoding.rs`, `wasm_utils/instrumentation.rs` and
//! `wasmtime_embedder.rs` (October 2025, with wasmtime 37; changes of later rule sets: June 2026).
//! The messages are from `rs/types/wasm_types/src/errors.rs`.
//!
//! # Limits
//!
//! The complexity of a function is the sum of its operators' weights, an estimate of the time to
//! compile it. Since no weight is less than 1, it also limits the number of operators: the
//! replica's limit of 1 000 000 operators per function is never reached.
//!
//! The engine compiles the module that the replica made of the canister's, links its imports, and
//! creates its tables, in this order. Its limits are in `rs/embedders/src/wasmtime_embedder.rs`; the
//! error texts are those of wasmtime 37.
//!
//! The limit of locals exists in this replica only. For each local, the compiler keeps a table of its
//! values by block, so the time and memory to compile a function grow with the product of both:
//!
//! ```text
//! cost of a function = (parameters + locals) × (1 + operators that begin blocks)
//! cost of a module   = sum over its functions
//! ```
//!
//! WebAssembly allows 50 000 locals in a function, so a function of a few kilobytes could take
//! gigabytes to compile, and 50 000 of them many minutes. The network limits locals too, with a
//! number that is not known here.

mod interface;
mod refusal;
mod wasm;

use std::collections::{BTreeMap, BTreeSet};

use wasmparser::{
    BinaryReaderError, ExternalKind, FunctionBody, Operator, RefType, TypeRef, ValType,
};

use crate::rules::{MAX_TABLE_ELEMENTS, ModuleLimits, Rules};
use crate::system_api::functions::{AddressWidth, SystemCall};
use crate::units::{Bytes, WasmPages};

pub use interface::{CustomSection, EntryPoint, Method, MethodKind, Visibility};
pub use refusal::Refusal;
pub use wasm::decode;

use refusal::{Engine, Instrumentation, Invalid};
use wasm::{Constant, Sections};

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
    check_table_types(&sections, limits)?;
    check_data_offsets(&sections, width)?;
    check_globals(&sections, limits)?;
    check_functions(&sections, limits)?;
    check_initial_size(&sections, rules.set().memory.heap64)?;
    let operators = check_operators(&sections, limits)?;
    let custom_sections = interface::check_custom_sections(&sections)?;
    check_data_bounds(&sections)?;
    check_engine(&sections)?;
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
    check_locals(&sections)?;
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

/// Characters of a name that is too long that the error message shows.
const SHOWN: usize = 100;

/// Some rule sets require tables to hold functions.
fn check_table_types(sections: &Sections<'_>, limits: &ModuleLimits) -> Result<(), Invalid> {
    let other = |ty: &RefType| limits.only_function_tables && *ty != RefType::FUNCREF;
    match sections.tables.iter().map(|table| table.element_type).find(other) {
        Some(ty) => Err(Invalid::Table(format!("Table element type must be funcref, got {ty}"))),
        None => Ok(()),
    }
}

/// Checks that the offset of each active data segment is one constant as wide as heap addresses.
///
/// The validator refuses everything else except one case: the offset and the memory are 64 bits
/// wide, but the memory is imported.
fn check_data_offsets(sections: &Sections<'_>, width: AddressWidth) -> Result<(), Invalid> {
    for segment in &sections.data {
        let bits = match (width, segment.offset) {
            (AddressWidth::Bits32, Some(Constant::I32(_)))
            | (AddressWidth::Bits64, Some(Constant::I64(_))) => continue,
            (AddressWidth::Bits32, _) => 32,
            (AddressWidth::Bits64, _) => 64,
        };
        let offset = match segment.offset {
            Some(constant) => format!("[Value({constant:?})]"),
            None => "[]".into(),
        };
        return Err(Invalid::Data(format!(
            "Invalid offset expression in data segment for {bits}bit memory: {offset}"
        )));
    }
    Ok(())
}

fn check_globals(sections: &Sections<'_>, limits: &ModuleLimits) -> Result<(), Invalid> {
    let defined = sections.globals.len();
    if defined > limits.globals {
        return Err(Invalid::TooManyGlobals { defined, allowed: limits.globals });
    }
    for global in &sections.globals {
        if let ValType::Ref(_) = global.content_type {
            let ty = global.content_type;
            return Err(Invalid::Global(format!("Unsupported global type: {ty:?}")));
        }
    }
    Ok(())
}

fn check_functions(sections: &Sections<'_>, limits: &ModuleLimits) -> Result<(), Invalid> {
    let defined = sections.bodies.len();
    if defined > limits.functions {
        return Err(Invalid::TooManyFunctions { defined, allowed: limits.functions });
    }
    let Some(allowed) = limits.function_name.map(Bytes::get) else {
        return Ok(());
    };
    let imported = sections.imported_functions() as u32;
    let own = sections.function_names.iter().filter(|(index, _)| *index >= imported);
    for &(index, name) in own {
        if name.len() as u64 > allowed {
            let (start, size) = (name.chars().take(SHOWN).collect(), name.len());
            return Err(Invalid::FunctionNameTooLong { index, start, size, allowed });
        }
    }
    Ok(())
}

/// Checks the initial size of a 64-bit heap. WebAssembly itself limits 32-bit heaps to 4 GiB.
fn check_initial_size(sections: &Sections<'_>, allowed: WasmPages) -> Result<(), Invalid> {
    let declared = sections.initial_pages();
    if sections.address_width() == AddressWidth::Bits64 && declared > allowed {
        let (declared, allowed) = (declared.get(), allowed.get());
        return Err(Invalid::InitialHeapTooLarge { declared, allowed });
    }
    Ok(())
}

/// Returns the number of operators of all functions.
fn check_operators(sections: &Sections<'_>, limits: &ModuleLimits) -> Result<u64, Invalid> {
    let mut operators = 0;
    for (index, body) in (sections.imported_functions()..).zip(&sections.bodies) {
        let weight = Weight::of(body)
            .map_err(|error| Invalid::Decoding(format!("Error from wasmparser: {error}")))?;
        if let Some(instruction) = weight.unsupported {
            return Err(Invalid::Operator { index, instruction });
        }
        let (complexity, allowed) = (weight.complexity, limits.complexity);
        if complexity > allowed {
            return Err(Invalid::TooComplex { index, complexity, allowed });
        }
        operators += weight.operators;
    }
    Ok(operators)
}

#[derive(Default)]
struct Weight {
    operators: u64,
    complexity: u64,
    /// The first forbidden operator.
    unsupported: Option<&'static str>,
}

impl Weight {
    fn of(body: &FunctionBody<'_>) -> Result<Self, BinaryReaderError> {
        let mut sum = Self::default();
        for operator in body.get_operators_reader()? {
            let operator = operator?;
            sum.operators += 1;
            sum.complexity += weight(&operator);
            sum.unsupported = sum.unsupported.or_else(|| unsupported(&operator));
        }
        Ok(sum)
    }
}

/// Tables are immutable: they are created for each message.
fn unsupported(operator: &Operator<'_>) -> Option<&'static str> {
    match operator {
        Operator::TableSet { .. } => Some("table.set"),
        Operator::TableGrow { .. } => Some("table.grow"),
        Operator::TableFill { .. } => Some("table.fill"),
        Operator::TableCopy { .. } => Some("table.copy"),
        Operator::TableInit { .. } => Some("table.init"),
        _ => None,
    }
}

#[rustfmt::skip]
fn weight(operator: &Operator<'_>) -> u64 {
    use Operator::*;
    match operator {
        Block { .. } | Loop { .. } | If { .. } | Br { .. } | BrIf { .. } | BrTable { .. }
        | Call { .. } | CallIndirect { .. } | MemoryGrow { .. } => 50,

        TableGet { .. } => 14,
        RefFunc { .. } => 8,
        RefIsNull => 6,

        I32TruncF32S | I32TruncF32U | I32TruncF64S | I32TruncF64U
        | I64TruncF32S | I64TruncF32U | I64TruncF64S | I64TruncF64U
        | F32ConvertI32S | F32ConvertI32U | F32ConvertI64S | F32ConvertI64U
        | F64ConvertI32S | F64ConvertI32U | F64ConvertI64S | F64ConvertI64U
        | I64ExtendI32S | I64ExtendI32U | F32DemoteF64 => 5,

        F32Abs | F32Neg | F64Abs | F64Neg | MemoryCopy { .. } => 4,

        I32DivS | I32DivU | I32RemS | I32RemU | I64DivS | I64DivU | I64RemS | I64RemU
        | F32Copysign | F64Copysign | F64Eq | MemoryFill { .. }
        | I32Load { .. } | I64Load { .. } | F32Load { .. } | F64Load { .. }
        | I32Load8S { .. } | I32Load8U { .. } | I32Load16S { .. } | I32Load16U { .. }
        | I64Load8S { .. } | I64Load8U { .. } | I64Load16S { .. } | I64Load16U { .. }
        | I64Load32S { .. } | I64Load32U { .. }
        | I32TruncSatF32S | I32TruncSatF32U | I32TruncSatF64S | I32TruncSatF64U
        | I64TruncSatF32S | I64TruncSatF32U | I64TruncSatF64S | I64TruncSatF64U => 3,

        GlobalGet { .. } | Select | MemorySize { .. }
        | I32Store { .. } | I64Store { .. } | F32Store { .. } | F64Store { .. }
        | I32Store8 { .. } | I32Store16 { .. }
        | I64Store8 { .. } | I64Store16 { .. } | I64Store32 { .. }
        | I32Eqz | I32Eq | I32Ne
        | I32LtS | I32LtU | I32GtS | I32GtU | I32LeS | I32LeU | I32GeS | I32GeU
        | I64Eqz | I64Eq | I64Ne
        | I64LtS | I64LtU | I64GtS | I64GtU | I64LeS | I64LeU | I64GeS | I64GeU
        | F32Eq | F32Ne | F32Lt | F32Gt | F32Le | F32Ge
        | F64Ne | F64Lt | F64Gt | F64Le | F64Ge
        | F32Ceil | F32Floor | F32Trunc | F32Sqrt | F64Ceil | F64Floor | F64Trunc | F64Sqrt
        | I32Popcnt | I64Popcnt
        | I32Extend8S | I32Extend16S | I64Extend8S | I64Extend16S | I64Extend32S
        | I32WrapI64 | F64PromoteF32
        | I32ReinterpretF32 | I64ReinterpretF64 | F32ReinterpretI32 | F64ReinterpretI64 => 2,

        _ => 1,
    }
}

/// Checks that every active data segment, even an empty one, ends inside of the initial heap.
fn check_data_bounds(sections: &Sections<'_>) -> Result<(), Instrumentation> {
    let heap = Bytes::from(sections.initial_pages()).get();
    for segment in &sections.data {
        // The replica sign-extends 32-bit offsets, so those of 2 GiB and more are outside of
        // every heap.
        let offset = match segment.offset {
            Some(Constant::I32(offset)) => i64::from(offset).cast_unsigned(),
            Some(Constant::I64(offset)) => offset.cast_unsigned(),
            None => continue,
        };
        let len = segment.len;
        match offset.checked_add(len as u64) {
            Some(end) if end <= heap => {}
            _ => return Err(Instrumentation::DataOutOfBounds { offset, len }),
        }
    }
    Ok(())
}

/// Largest number of tables of a module.
const MAX_TABLES: usize = 1;

fn check_engine(sections: &Sections<'_>) -> Result<(), Engine> {
    check_export_names(sections)?;
    check_links(sections)?;
    check_tables(sections)
}

/// The replica renames exported tables and memories to `table` and `memory`. If the module does
/// not export them, it exports the first of each and every mutable global. Two exports of one name
/// do not compile.
fn check_export_names(sections: &Sections<'_>) -> Result<(), Engine> {
    let exports = |kind| sections.exports.iter().any(|export| export.kind == kind);
    let mut names: Vec<String> = sections
        .exports
        .iter()
        .map(|export| match export.kind {
            ExternalKind::Table => "table".into(),
            ExternalKind::Memory => "memory".into(),
            _ => export.name.into(),
        })
        .collect();
    if !sections.tables.is_empty() && !exports(ExternalKind::Table) {
        names.push("table".into());
    }
    if !sections.memories.is_empty() && !exports(ExternalKind::Memory) {
        names.push("memory".into());
    }
    let exported_globals: BTreeSet<usize> = sections
        .exports
        .iter()
        .filter(|export| export.kind == ExternalKind::Global)
        .map(|export| export.index as usize)
        .collect();
    let mutable = sections.globals.iter().enumerate().filter(|(_, global)| global.mutable);
    names.extend(
        mutable
            .filter(|(index, _)| !exported_globals.contains(index))
            .map(|(index, _)| format!("__persistent_mutable_global_{index}")),
    );

    let mut seen = BTreeSet::new();
    if names.into_iter().all(|name| seen.insert(name)) { Ok(()) } else { Err(Engine::Parse) }
}

/// The replica only provides functions.
fn check_links(sections: &Sections<'_>) -> Result<(), Engine> {
    for import in &sections.imports {
        if !matches!(import.ty, TypeRef::Func(_) | TypeRef::FuncExact(_)) {
            let (module, name) = (import.module.into(), import.name.into());
            return Err(Engine::UnknownImport { module, name });
        }
    }
    Ok(())
}

fn check_tables(sections: &Sections<'_>) -> Result<(), Engine> {
    if sections.tables.len() > MAX_TABLES {
        return Err(Engine::TooManyTables(sections.tables.len()));
    }
    for table in &sections.tables {
        if table.initial > MAX_TABLE_ELEMENTS as u64 {
            return Err(Engine::TableTooLarge(table.initial));
        }
    }
    for elements in &sections.elements {
        let size = sections.tables.get(elements.table as usize).map_or(0, |table| table.initial);
        let offset = match elements.offset {
            Some(Constant::I32(offset)) => u64::from(offset.cast_unsigned()),
            Some(Constant::I64(offset)) => offset.cast_unsigned(),
            None => continue,
        };
        match offset.checked_add(u64::from(elements.len)) {
            Some(end) if end <= size => {}
            _ => return Err(Engine::ElementsOutOfBounds),
        }
    }
    Ok(())
}

/// Highest cost of a function, at about 16 bytes each. The most expensive function of the
/// canisters in this repository costs 0.3 million.
const MAX_FUNCTION_COST: u64 = 50_000_000;
/// Highest cost of a module, at up to 75 ns of CPU time each. The most expensive canister in this
/// repository costs 6 million.
const MAX_MODULE_COST: u64 = 500_000_000;

fn check_locals(sections: &Sections<'_>) -> Result<(), Invalid> {
    let unreadable = |error| Invalid::Decoding(format!("Error from wasmparser: {error}"));
    let mut sum = 0_u64;
    for (index, body) in (sections.imported_functions()..).zip(&sections.bodies) {
        let ty = u32::try_from(index).ok().and_then(|index| sections.signature(index));
        let parameters = ty.map_or(0, |ty| ty.params().len()) as u64;
        let locals = parameters + locals(body).map_err(unreadable)?;
        let blocks = 1 + blocks(body).map_err(unreadable)?;
        let cost = locals.saturating_mul(blocks);
        if cost > MAX_FUNCTION_COST {
            let allowed = MAX_FUNCTION_COST;
            return Err(Invalid::TooManyLocals { index, locals, blocks, allowed });
        }
        sum = sum.saturating_add(cost);
    }
    if sum > MAX_MODULE_COST {
        return Err(Invalid::TooManyLocalsTogether { cost: sum, allowed: MAX_MODULE_COST });
    }
    Ok(())
}

fn locals(body: &FunctionBody<'_>) -> Result<u64, BinaryReaderError> {
    let mut sum = 0;
    for group in body.get_locals_reader()? {
        sum += u64::from(group?.0);
    }
    Ok(sum)
}

/// Number of operators after which the compiler starts a block.
fn blocks(body: &FunctionBody<'_>) -> Result<u64, BinaryReaderError> {
    let mut sum = 0;
    for operator in body.get_operators_reader()? {
        sum += match operator? {
            Operator::Block { .. }
            | Operator::Loop { .. }
            | Operator::If { .. }
            | Operator::Else
            | Operator::Br { .. }
            | Operator::BrIf { .. }
            | Operator::Return => 1,
            Operator::BrTable { targets } => 1 + u64::from(targets.len()),
            _ => 0,
        };
    }
    Ok(sum)
}

#[cfg(test)]
mod tests;
