//! Limits of globals, functions, the initial heap size and data segments, and limits of the replica's
//! engine.
//!
//! The engine compiles the module that the replica made of the canister's, links its imports, and
//! creates its tables, in this order. Its limits are in `rs/embedders/src/wasmtime_embedder.rs`; the
//! error texts are those of wasmtime 37.

use std::collections::BTreeSet;

use wasmparser::{ExternalKind, RefType, TypeRef, ValType};

use super::refusal::{Engine, Instrumentation, Invalid};
use super::sections::{Constant, Sections};
use crate::limits::MAX_TABLE_ELEMENTS;
use crate::rules::ModuleLimits;
use crate::system_api::names::AddressWidth;
use crate::units::{Bytes, WasmPages};

/// Characters of a name that is too long that the error message shows.
const SHOWN: usize = 100;

/// Some rule sets require tables to hold functions.
pub(super) fn check_table_types(
    sections: &Sections<'_>,
    limits: &ModuleLimits,
) -> Result<(), Invalid> {
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
pub(super) fn check_data_offsets(
    sections: &Sections<'_>,
    width: AddressWidth,
) -> Result<(), Invalid> {
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

pub(super) fn check_globals(sections: &Sections<'_>, limits: &ModuleLimits) -> Result<(), Invalid> {
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

pub(super) fn check_functions(
    sections: &Sections<'_>,
    limits: &ModuleLimits,
) -> Result<(), Invalid> {
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
pub(super) fn check_initial_size(
    sections: &Sections<'_>,
    allowed: WasmPages,
) -> Result<(), Invalid> {
    let declared = sections.initial_pages();
    if sections.address_width() == AddressWidth::Bits64 && declared > allowed {
        let (declared, allowed) = (declared.get(), allowed.get());
        return Err(Invalid::InitialHeapTooLarge { declared, allowed });
    }
    Ok(())
}

/// Checks that every active data segment, even an empty one, ends inside of the initial heap.
pub(super) fn check_data_bounds(sections: &Sections<'_>) -> Result<(), Instrumentation> {
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

pub(super) fn check_engine(sections: &Sections<'_>) -> Result<(), Engine> {
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
