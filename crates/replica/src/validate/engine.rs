//! What no rule forbids and the replica's engine refuses all the same.
//!
//! In the engine's order: it compiles the module that the replica made of the
//! canister's, links its imports, then makes its tables. The limits of the engine are
//! in `rs/embedders/src/wasmtime_embedder.rs`, its words are those of wasmtime 37.

use std::collections::BTreeSet;

use wasmparser::{ExternalKind, TypeRef};

use super::refusal::Engine;
use super::sections::{Constant, Sections};
use crate::limits::MAX_TABLE_ELEMENTS;

/// Most tables of a module.
const MAX_TABLES: usize = 1;

pub(super) fn check(sections: &Sections<'_>) -> Result<(), Engine> {
    check_export_names(sections)?;
    check_links(sections)?;
    check_tables(sections)
}

/// The replica renames exported tables and memories to `table` and `memory`, and exports
/// the first of each, and every mutable global, where the module did not. Two exports
/// of one name do not compile.
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

/// The replica provides functions only.
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
