//! Numbers and places: globals, functions, the heap's first size, data segments.

use wasmparser::ValType;

use super::refusal::{Instrumentation, Invalid};
use super::sections::{Constant, Sections};
use crate::limits::MAX_HEAP64;
use crate::system_api::names::AddressWidth;
use crate::units::Bytes;

/// Most globals that a module may define.
pub(super) const MAX_GLOBALS: usize = 1_000;
/// Most functions that a module may define.
pub(super) const MAX_FUNCTIONS: usize = 50_000;

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

pub(super) fn check_globals(sections: &Sections<'_>) -> Result<(), Invalid> {
    let defined = sections.globals.len();
    if defined > MAX_GLOBALS {
        return Err(Invalid::TooManyGlobals { defined, allowed: MAX_GLOBALS });
    }
    for global in &sections.globals {
        if let ValType::Ref(_) = global.content_type {
            let ty = global.content_type;
            return Err(Invalid::Global(format!("Unsupported global type: {ty:?}")));
        }
    }
    Ok(())
}

pub(super) fn check_functions(sections: &Sections<'_>) -> Result<(), Invalid> {
    let defined = sections.bodies.len();
    if defined > MAX_FUNCTIONS {
        return Err(Invalid::TooManyFunctions { defined, allowed: MAX_FUNCTIONS });
    }
    Ok(())
}

/// Only of a 64-bit heap: WebAssembly itself ends the other at 4 GiB.
pub(super) fn check_initial_size(sections: &Sections<'_>) -> Result<(), Invalid> {
    let (declared, allowed) = (sections.initial_pages(), MAX_HEAP64);
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
