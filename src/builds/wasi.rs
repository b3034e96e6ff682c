//! Modules whose calls of WASI are replaced, as `wasi2ic` does.

use anyhow::{Result, bail, ensure};
use walrus::{ExportItem, FunctionId, ImportKind};
use wasmparser::{Operator, Parser, Payload};

/// The modules whose functions are replaced.
const WASI: [&str; 2] = ["wasi_unstable", "wasi_snapshot_preview1"];
/// The maximum number of blocks inside of each other: they are traversed by recursion.
const MAX_NESTING: usize = 10_000;

/// Replaces a module's calls of WASI by ones that work on the IC, if it has any.
///
/// # Errors
///
/// If other imports than those of the IC are left.
pub fn convert(wasm: Vec<u8>) -> Result<Vec<u8>> {
    check_nesting(&wasm)?;
    let mut module = walrus::ModuleConfig::new().generate_name_section(true).parse(&wasm)?;
    if module.imports.iter().all(|import| import.module == "ic0") {
        return Ok(wasm);
    }
    check_replacements(&module)?;
    wasi2ic::process_module(&mut module);
    if let Some(import) = module.imports.iter().find(|import| import.module != "ic0") {
        let hint = match is_wasi(&import.module) {
            true => ", which nothing in it replaces; the crate ic-wasi-polyfill has replacements",
            false => "",
        };
        bail!("the module still imports {}::{}{hint}", import.module, import.name);
    }
    Ok(module.emit_wasm())
}

/// Returns `true` if functions of this module are replaced.
pub fn is_wasi(module: &str) -> bool {
    WASI.contains(&module)
}

fn check_nesting(wasm: &[u8]) -> Result<()> {
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::CodeSectionEntry(body) = payload? else { continue };
        let mut depth = 0_usize;
        for operator in body.get_operators_reader()? {
            match operator? {
                Operator::Block { .. }
                | Operator::Loop { .. }
                | Operator::If { .. }
                | Operator::TryTable { .. } => depth += 1,
                Operator::End => depth = depth.saturating_sub(1),
                _ => {}
            }
            ensure!(
                depth <= MAX_NESTING,
                "its blocks are nested more than {MAX_NESTING} levels deep"
            );
        }
    }
    Ok(())
}

/// Checks that functions and their replacements have the same types, which `wasi2ic` asserts.
fn check_replacements(module: &walrus::Module) -> Result<()> {
    for import in module.imports.iter().filter(|import| is_wasi(&import.module)) {
        let ImportKind::Function(function) = import.kind else { continue };
        let name = format!("__ic_custom_{}", import.name);
        let named = module.funcs.iter().filter(|it| it.name.as_deref() == Some(&*name));
        let exported = module.exports.iter().filter(|export| export.name == name);
        let exported = exported.filter_map(|export| match export.item {
            ExportItem::Function(id) => Some(id),
            _ => None,
        });
        let ty = |id: FunctionId| module.funcs.get(id).ty();
        ensure!(
            named.map(walrus::Function::id).chain(exported).all(|id| ty(id) == ty(function)),
            "{name} has another type than {}::{}",
            import.module,
            import.name
        );
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn converted(wat: &str) -> Result<Vec<u8>> {
        convert(wat::parse_str(wat).unwrap())
    }

    #[test]
    fn modules_that_cannot_be_converted_are_refused() {
        let import = r#"(module (import "wasi_snapshot_preview1" "fd_write"
            (func (param i32 i32 i32 i32) (result i32)))"#;
        let blocks = |count| "(block ".repeat(count) + &")".repeat(count);
        let nested = format!("(module (func {}))", blocks(20_000));
        for (wat, text) in [
            (format!("{import})"), "the crate ic-wasi-polyfill has replacements"),
            (
                format!(r#"{import} (func (export "__ic_custom_fd_write")))"#),
                "__ic_custom_fd_write has another type",
            ),
            (r#"(module (import "env" "f" (func)))"#.to_owned(), "still imports env::f"),
            (nested, "levels deep"),
        ] {
            let error = converted(&wat).unwrap_err().to_string();
            assert!(error.contains(text), "{error}");
        }
    }
}
