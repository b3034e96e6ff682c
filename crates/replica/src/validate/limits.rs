//! Numbers and places: globals, functions, the heap's first size, data segments.

use wasmparser::{RefType, ValType};

use super::refusal::{Instrumentation, Invalid};
use super::sections::{Constant, Sections};
use crate::rules::ModuleLimits;
use crate::system_api::names::AddressWidth;
use crate::units::{Bytes, WasmPages};

/// Characters of a name that is too long, of which the refusal tells no more.
const SHOWN: usize = 100;

/// Tables hold functions, where a rule set asks for that.
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

/// The offset of an active data segment is one constant, as wide as the heap's addresses.
///
/// The validator has refused everything else but for one case: the offset is 64 bits
/// wide, and so is the memory, but the memory is imported.
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

/// Only of a 64-bit heap: WebAssembly itself ends the other at 4 GiB.
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

/// Every active data segment, empty ones too, ends inside the heap's first size.
pub(super) fn check_data_bounds(sections: &Sections<'_>) -> Result<(), Instrumentation> {
    let heap = Bytes::from(sections.initial_pages()).get();
    for segment in &sections.data {
        // The replica sign-extends 32-bit offsets, so that those of 2 GiB and more lie
        // outside of every heap.
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
