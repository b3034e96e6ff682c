//! The benchmarks in a module.

use anyhow::{Context, Result};
use wasm_encoder::{ExportKind, ExportSection, Module, RawSection};
use wasmparser::{Export, ExternalKind, Parser, Payload};

/// The prefix of the query methods that are benchmarks.
pub const PREFIX: &str = "__canbench__";
/// Queries by which canbench traces benchmarks, in a module that it instruments. Without that
/// they do nothing, and nobody calls them.
const TRACING: &str = "canister_query __tracing__";

/// The names of the benchmarks, in the order of the export section.
pub fn benches(wasm: &[u8]) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        if let Payload::ExportSection(exports) = payload.context("the module cannot be read")? {
            for export in exports {
                let name = export?.name;
                let name = name.strip_prefix("canister_query ");
                names.extend(name.and_then(|name| name.strip_prefix(PREFIX)).map(str::to_owned));
            }
        }
    }
    Ok(names)
}

/// The module without the queries for tracing. Their names count towards the limit on the names
/// of all methods together, which they alone can make a module exceed. All functions stay, in
/// their places.
pub fn without_tracing(wasm: &[u8]) -> Result<Vec<u8>> {
    let mut module = Module::new();
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload.context("the module cannot be read")?;
        if let Payload::ExportSection(exports) = &payload {
            let mut kept = ExportSection::new();
            for export in exports.clone() {
                let Export { name, kind, index } = export?;
                if !name.starts_with(TRACING) {
                    kept.export(name, self::kind(kind), index);
                }
            }
            module.section(&kept);
        } else if let Some((id, range)) = payload.as_section() {
            module.section(&RawSection { id, data: &wasm[range] });
        }
    }
    Ok(module.finish())
}

fn kind(kind: ExternalKind) -> ExportKind {
    match kind {
        ExternalKind::Func | ExternalKind::FuncExact => ExportKind::Func,
        ExternalKind::Table => ExportKind::Table,
        ExternalKind::Memory => ExportKind::Memory,
        ExternalKind::Global => ExportKind::Global,
        ExternalKind::Tag => ExportKind::Tag,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_queries_for_tracing_go() {
        let wasm = |tracing: &str| {
            wat::parse_str(format!(
                r#"(module
                    (memory (export "memory") 1)
                    (func $a (export "canister_query __canbench__b"))
                    {tracing}
                    (func (export "canister_query __canbench__a") call $a)
                    (func (export "canister_query other"))
                    (func (export "__prepare_tracing"))
                    (data (i32.const 0) "text"))"#
            ))
            .unwrap()
        };
        let traced = wasm(r#"(export "canister_query __tracing__b" (func $a))"#);
        assert_eq!(benches(&traced).unwrap(), ["b", "a"]);
        assert_eq!(without_tracing(&traced).unwrap(), wasm(""));
        assert_eq!(without_tracing(&wasm("")).unwrap(), wasm(""));
        assert!(benches(b"\0asm\x01\0\0\0\xff").is_err() && without_tracing(b"no").is_err());
    }
}
