//! Replaces a module's calls of WASI by functions that the module contains.
//!
//! ```text
//!   (import "wasi_snapshot_preview1" "fd_write" …)   is removed, and each use of it becomes one of
//!   (func $__ic_custom_fd_write …)                   the function with this name in the section
//!                                                    `name`, or else with this export
//!   (func (export "_initialize") …)                  becomes the start function, if there is none;
//!                                                    the export is removed
//! ```
//!
//! Functions keep their order and their bodies; only indices of functions change, because those of
//! imports come first. Sections that would describe other code than there is are dropped.

use std::collections::HashMap;

use thiserror::Error;
use wasm_encoder::reencode::{self, Reencode, utils};
use wasm_encoder::{
    ExportSection, ImportSection, IndirectNameMap, Module, NameMap, NameSection, SectionId,
    StartSection,
};
use wasmparser::{
    ExternalKind, FuncType, Import, KnownCustom, Name, NameSectionReader, Parser, Payload, TypeRef,
    Validator,
};

/// The modules of imports whose functions are replaced.
const WASI: [&str; 2] = ["wasi_unstable", "wasi_snapshot_preview1"];
/// The module of the System API.
const SYSTEM_API: &str = "ic0";
/// The beginning of a replacement's name; that of the function of WASI follows.
const REPLACEMENT: &str = "__ic_custom_";
/// The function that programs for WASI expect to be called first.
const INITIALIZE: &str = "_initialize";
/// The beginnings of names of custom sections with offsets of code or indices of functions.
const POSITIONS: [&str; 4] = [".debug_", "linking", "metadata.code.", "reloc."];

/// The reason why a module cannot be converted.
#[derive(Debug, Error)]
pub enum Error {
    /// It is not a valid module.
    #[error(transparent)]
    Invalid(#[from] wasmparser::Error),
    /// It imports something that the IC does not have.
    #[error("the module still imports {module}::{name}{}", hint(module))]
    Import {
        /// The module of the import.
        module: String,
        /// The name of the import.
        name: String,
    },
    /// A function and its replacement have different types.
    #[error("{REPLACEMENT}{name} has another type than {module}::{name}")]
    Type {
        /// The module of the import.
        module: String,
        /// The name of the import.
        name: String,
    },
    /// The function that is to be called first has parameters or results.
    #[error("{INITIALIZE} has parameters or results, so it cannot be the start function")]
    Initialize,
    /// It cannot be encoded again.
    #[error("the module cannot be encoded again")]
    Encoding(#[source] reencode::Error<NoFunction>),
}

/// A reference to a function that the module does not have.
#[derive(Debug, Error)]
#[error("there is no function {0}")]
pub struct NoFunction(u32);

impl From<reencode::Error<NoFunction>> for Error {
    fn from(error: reencode::Error<NoFunction>) -> Self {
        match error {
            reencode::Error::ParseError(error) => Self::Invalid(error),
            error => Self::Encoding(error),
        }
    }
}

fn hint(module: &str) -> &'static str {
    match is_wasi(module) {
        true => ", which nothing in it replaces; the crate ic-wasi-polyfill has replacements",
        false => "",
    }
}

/// Returns `true` if functions of this module are replaced.
pub fn is_wasi(module: &str) -> bool {
    WASI.contains(&module)
}

/// Returns the module without imports of WASI, or nothing if all of its imports are of the System
/// API already.
///
/// # Errors
///
/// If the module is not valid, or if other imports than those of the System API would be left.
pub fn convert(wasm: &[u8]) -> Result<Option<Vec<u8>>, Error> {
    if imports_of(wasm)?.iter().all(|import| import.module == SYSTEM_API) {
        return Ok(None);
    }
    // A valid module has no index out of range.
    Validator::new().validate_all(wasm)?;
    let mut conversion = Conversion::new(&Functions::of(wasm)?)?;
    let mut module = Module::new();
    conversion.parse_core_module(&mut module, Parser::new(0), wasm)?;
    Ok(Some(module.finish()))
}

/// Returns the imports of a module.
fn imports_of(wasm: &[u8]) -> Result<Vec<Import<'_>>, Error> {
    for payload in Parser::new(0).parse_all(wasm) {
        match payload? {
            Payload::ImportSection(section) => {
                return Ok(section.into_imports().collect::<Result<_, _>>()?);
            }
            Payload::FunctionSection(_) | Payload::CodeSectionStart { .. } => break,
            _ => {}
        }
    }
    Ok(Vec::new())
}

/// The functions of a valid module.
#[derive(Default)]
struct Functions<'a> {
    types: Vec<FuncType>,
    imports: Vec<Import<'a>>,
    /// The types of all functions, imported ones first.
    functions: Vec<u32>,
    /// The functions that the module names or exports. Names count more than exports: in a command, the
    /// linker exports a wrapper of each function, which runs constructors before every call.
    named: HashMap<&'a str, u32>,
    has_start: bool,
}

impl<'a> Functions<'a> {
    fn of(wasm: &'a [u8]) -> Result<Self, Error> {
        let mut found = Self::default();
        let mut exported = HashMap::new();
        for payload in Parser::new(0).parse_all(wasm) {
            match payload? {
                Payload::TypeSection(section) => {
                    found.types = section.into_iter_err_on_gc_types().collect::<Result<_, _>>()?;
                }
                Payload::ImportSection(section) => {
                    found.imports = section.into_imports().collect::<Result<_, _>>()?;
                    found.functions = found.imports.iter().filter_map(function_type).collect();
                }
                Payload::FunctionSection(section) => {
                    for ty in section {
                        found.functions.push(ty?);
                    }
                }
                Payload::ExportSection(section) => {
                    for export in section {
                        let export = export?;
                        if export.kind == ExternalKind::Func {
                            exported.insert(export.name, export.index);
                        }
                    }
                }
                Payload::StartSection { .. } => found.has_start = true,
                Payload::CustomSection(section) => {
                    if let KnownCustom::Name(names) = section.as_known() {
                        for (name, function) in names_of(names) {
                            found.named.entry(name).or_insert(function);
                        }
                    }
                }
                _ => {}
            }
        }
        for (name, function) in exported {
            found.named.entry(name).or_insert(function);
        }
        // Names are not validated.
        found.named.retain(|_, function| (*function as usize) < found.functions.len());
        Ok(found)
    }

    fn ty(&self, function: u32) -> Option<&FuncType> {
        self.types.get(*self.functions.get(function as usize)? as usize)
    }
}

fn function_type(import: &Import<'_>) -> Option<u32> {
    match import.ty {
        TypeRef::Func(ty) | TypeRef::FuncExact(ty) => Some(ty),
        _ => None,
    }
}

/// Returns the functions in the section `name`, as far as it can be read: a module with a malformed one
/// is valid.
fn names_of(section: NameSectionReader<'_>) -> Vec<(&str, u32)> {
    let functions = section.into_iter().map_while(Result::ok).filter_map(|name| match name {
        Name::Function(names) => Some(names),
        _ => None,
    });
    let names = functions.flat_map(|names| names.into_iter().map_while(Result::ok));
    names.map(|naming| (naming.name, naming.index)).collect()
}

/// A module that is encoded again.
struct Conversion {
    /// Indices of functions after the conversion; those of removed imports are their replacements'.
    functions: Vec<u32>,
    /// The function imports that are removed, in order.
    removed: Vec<u32>,
    /// The function that becomes the start function, before the conversion.
    start: Option<u32>,
}

impl Conversion {
    fn new(module: &Functions<'_>) -> Result<Self, Error> {
        let functions = module.imports.iter().filter(|import| function_type(import).is_some());
        let imported = functions.clone().count() as u32;
        let mut replaced = HashMap::new();
        for (index, import) in (0..).zip(functions) {
            if !is_wasi(import.module) {
                continue;
            }
            let name = format!("{REPLACEMENT}{}", import.name);
            // What is imported is no replacement.
            let found = module.named.get(&*name).copied().filter(|found| *found >= imported);
            let Some(replacement) = found else { continue };
            if module.ty(replacement) != module.ty(index) {
                let (module, name) = (import.module.to_owned(), import.name.to_owned());
                return Err(Error::Type { module, name });
            }
            replaced.insert(index, replacement);
        }
        let mut function = 0..;
        for import in &module.imports {
            let index = function_type(import).and_then(|_| function.next());
            let is_removed = index.is_some_and(|index| replaced.contains_key(&index));
            if import.module != SYSTEM_API && !is_removed {
                let (module, name) = (import.module.to_owned(), import.name.to_owned());
                return Err(Error::Import { module, name });
            }
        }
        let mut removed: Vec<u32> = replaced.keys().copied().collect();
        removed.sort_unstable();
        // Removed imports before an index make it smaller.
        let moved = |index| index - removed.partition_point(|before| *before < index) as u32;
        let functions = 0..module.functions.len() as u32;
        let functions =
            functions.map(|index| moved(replaced.get(&index).copied().unwrap_or(index))).collect();
        let start = module.named.get(INITIALIZE).copied().filter(|_| !module.has_start);
        if let Some(ty) = start.and_then(|start| module.ty(start))
            && !(ty.params().is_empty() && ty.results().is_empty())
        {
            return Err(Error::Initialize);
        }
        Ok(Self { functions, removed, start })
    }

    /// The index of a function that has names, or nothing if it is removed or does not exist.
    fn kept(&self, function: u32) -> Option<u32> {
        match self.removed.binary_search(&function) {
            Ok(_) => None,
            Err(_) => self.functions.get(function as usize).copied(),
        }
    }

    /// Names inside of functions: of locals and labels.
    fn inside(
        &self,
        names: wasmparser::IndirectNameMap<'_>,
    ) -> Result<IndirectNameMap, wasmparser::Error> {
        let mut kept = IndirectNameMap::new();
        for of in names {
            let of = of?;
            if let Some(function) = self.kept(of.index) {
                let mut inner = NameMap::new();
                for naming in of.names {
                    let naming = naming?;
                    inner.append(naming.index, naming.name);
                }
                kept.append(function, &inner);
            }
        }
        Ok(kept)
    }
}

impl Reencode for Conversion {
    type Error = NoFunction;

    fn function_index(&mut self, function: u32) -> Result<u32, reencode::Error<NoFunction>> {
        let index = self.functions.get(function as usize).copied();
        index.ok_or(reencode::Error::UserError(NoFunction(function)))
    }

    fn parse_import_section(
        &mut self,
        kept: &mut ImportSection,
        section: wasmparser::ImportSectionReader<'_>,
    ) -> Result<(), reencode::Error<NoFunction>> {
        for import in section.into_imports() {
            let import = import?;
            // All imports of WASI are functions that are replaced.
            if !is_wasi(import.module) {
                self.parse_import(kept, import)?;
            }
        }
        Ok(())
    }

    fn parse_export_section(
        &mut self,
        kept: &mut ExportSection,
        section: wasmparser::ExportSectionReader<'_>,
    ) -> Result<(), reencode::Error<NoFunction>> {
        for export in section {
            let export = export?;
            if !(export.kind == ExternalKind::Func && export.name == INITIALIZE) {
                self.parse_export(kept, export)?;
            }
        }
        Ok(())
    }

    fn intersperse_section_hook(
        &mut self,
        module: &mut Module,
        _after: Option<SectionId>,
        before: Option<SectionId>,
    ) -> Result<(), reencode::Error<NoFunction>> {
        use SectionId::{Code, Data, DataCount, Element};
        if matches!(before, None | Some(Element | DataCount | Code | Data))
            && let Some(start) = self.start.take()
        {
            let function_index = self.function_index(start)?;
            module.section(&StartSection { function_index });
        }
        Ok(())
    }

    fn parse_custom_section(
        &mut self,
        module: &mut Module,
        section: wasmparser::CustomSectionReader<'_>,
    ) -> Result<(), reencode::Error<NoFunction>> {
        if let KnownCustom::Name(names) = section.as_known() {
            // A malformed one is dropped: no replica reads it.
            if let Ok(names) = self.custom_name_section(names) {
                module.section(&names);
            }
        } else if !POSITIONS.iter().any(|start| section.name().starts_with(start)) {
            module.section(&self.custom_section(section)?);
        }
        Ok(())
    }

    fn parse_custom_name_subsection(
        &mut self,
        names: &mut NameSection,
        subsection: Name<'_>,
    ) -> Result<(), reencode::Error<NoFunction>> {
        match subsection {
            Name::Function(functions) => {
                let mut kept = NameMap::new();
                for naming in functions {
                    let naming = naming?;
                    if let Some(function) = self.kept(naming.index) {
                        kept.append(function, naming.name);
                    }
                }
                names.functions(&kept);
            }
            Name::Local(locals) => names.locals(&self.inside(locals)?),
            Name::Label(labels) => names.labels(&self.inside(labels)?),
            other => utils::parse_custom_name_subsection(self, names, other)?,
        }
        Ok(())
    }
}

/// Conversions of small modules, and of every module that differs from one in a byte.
#[cfg(test)]
mod tests {
    use super::*;

    const IMPORT: &str = r#"(import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))"#;

    /// Uses of a replaced function in each place where there can be one, before and after a function of the
    /// System API.
    const MODULE: &str = r#"(module
    (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
    (import "ic0" "time" (func $time (result i64)))
    (import "wasi_unstable" "proc_exit" (func $exit (param i32)))
    (table 2 funcref)
    (memory 1)
    (global $held funcref (ref.func $yield))
    (global i32 (i32.const 7))
    (elem (i32.const 0) $yield $time)
    (func $own (export "__ic_custom_sched_yield") (result i32) (local $here i32) (i32.const 5))
    (func $__ic_custom_proc_exit (param i32) (unreachable))
    (func $first (export "_initialize") (call $exit (i32.const 1)))
    (func (export "canister_update go") (result i32)
        (drop (call $time)) (drop (ref.func $yield)) (drop (call $own))
        (return_call $yield))
    (export "again" (func $yield))
    (data (i32.const 0) "text"))"#;

    fn wasm(text: &str) -> Vec<u8> {
        wat::parse_str(text).unwrap()
    }

    /// Returns the converted module as text.
    fn converted(text: &str) -> String {
        let wasm = convert(&wasm(text)).unwrap().unwrap();
        Validator::new().validate_all(&wasm).unwrap();
        wasmprinter::print_bytes(&wasm).unwrap()
    }

    fn refused(text: &str) -> String {
        convert(&wasm(text)).unwrap_err().to_string()
    }

    /// Returns the number of the function with this name: the text numbers them in comments.
    #[track_caller]
    fn number(text: &str, name: &str) -> String {
        let (_, rest) = text.split_once(&format!("(func ${name} (;")).unwrap();
        rest.split_once(';').unwrap().0.to_owned()
    }

    #[test]
    fn every_use_becomes_one_of_the_replacement() {
        let text = converted(MODULE);
        assert!(!text.contains("wasi") && !text.contains("_initialize"), "{text}");
        assert_eq!(text.matches("(import ").count(), 1, "{text}");
        assert_eq!((number(&text, "time"), number(&text, "own")), ("0".to_owned(), "1".to_owned()));
        for part in [
            "(global $held (;0;) funcref ref.func $own)",
            "(global (;1;) i32 i32.const 7)",
            "func $own $time)",
            "(start $first)",
            "call $__ic_custom_proc_exit",
            "ref.func $own",
            "return_call $own",
            "(local $here i32)",
            r#"(export "again" (func $own))"#,
            r#"(export "__ic_custom_sched_yield" (func $own))"#,
            r#"(data (;0;) (i32.const 0) "text")"#,
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
    }

    /// The linker exports wrappers.
    #[test]
    fn the_name_counts_more_than_an_export() {
        let text = converted(&format!(
            r#"(module {IMPORT}
            (func $__ic_custom_fd_write (param i32 i32 i32 i32) (result i32) (i32.const 1))
            (func $wrapper (export "__ic_custom_fd_write") (param i32 i32 i32 i32) (result i32)
                (call $__ic_custom_fd_write (local.get 0) (local.get 1) (local.get 2) (local.get 3)))
            (elem declare func $write))"#
        ));
        assert!(text.contains("func $__ic_custom_fd_write)"), "{text}");
    }

    #[test]
    fn a_module_with_a_start_function_keeps_it() {
        let text = converted(&format!(
            r#"(module {IMPORT} (start $own) (func $own) (func $other (export "_initialize"))
            (func (export "__ic_custom_fd_write") (param i32 i32 i32 i32) (result i32)
                (i32.const 2)))"#
        ));
        assert!(text.contains("(start $own)") && !text.contains("_initialize"), "{text}");
    }

    /// Without code there is no section after the one of the start function.
    #[test]
    fn modules_without_imports_of_others_are_not_changed() {
        for text in [
            "(module)",
            r#"(module (import "ic0" "time" (func (result i64))) (func (export "_initialize")))"#,
            // Not valid for the IC, which is not asked here.
            r#"(module (import "ic0" "memory" (memory 1)))"#,
        ] {
            assert!(convert(&wasm(text)).unwrap().is_none(), "{text}");
        }
    }

    #[test]
    fn modules_that_cannot_be_converted_are_refused() {
        let replaced =
            |ty: &str| format!(r#"(module {IMPORT} (func (export "__ic_custom_fd_write") {ty}))"#);
        for (text, part) in [
            (format!("(module {IMPORT})"), "the crate ic-wasi-polyfill has replacements"),
            (replaced(""), "__ic_custom_fd_write has another type"),
            (replaced("(param i32 i32 i32) (result i32) unreachable"), "has another type"),
            (replaced("(param i32 i32 i32 i64) (result i32) unreachable"), "has another type"),
            (
                // What is imported replaces nothing.
                format!(
                    r#"(module {IMPORT} (import "ic0" "f" (func $f (param i32 i32 i32 i32) (result i32)))
                (export "__ic_custom_fd_write" (func $f)))"#
                ),
                "still imports wasi_snapshot_preview1::fd_write",
            ),
            (r#"(module (import "env" "f" (func)))"#.to_owned(), "still imports env::f"),
            (
                r#"(module (import "wasi_snapshot_preview1" "m" (memory 1)))"#.to_owned(),
                "still imports wasi_snapshot_preview1::m",
            ),
            (
                format!(
                    r#"(module {IMPORT} (func (export "_initialize") (param i32))
                (func (export "__ic_custom_fd_write") (param i32 i32 i32 i32) (result i32) unreachable))"#
                ),
                "_initialize has parameters or results",
            ),
        ] {
            let error = refused(&text);
            assert!(error.contains(part), "{part}: {error}");
        }
    }

    #[test]
    fn what_describes_other_code_is_dropped() {
        let module = MODULE.replace(
            "(table 2",
            r#"(@custom ".debug_info" "x") (@custom "metadata.code.branch_hint" "\00")
            (@custom "icp:public note" "kept") (table 2"#,
        );
        let converted = convert(&wasm(&module)).unwrap().unwrap();
        let has = |part: &[u8]| converted.windows(part.len()).any(|bytes| bytes == part);
        assert!(has(b"icp:public note") && has(b"kept"));
        assert!(!has(b".debug_info") && !has(b"branch_hint"));
    }

    /// The nesting of blocks is not limited here: nothing goes through them by recursion.
    #[test]
    fn deeply_nested_blocks_are_converted() {
        let blocks = "block ".repeat(20_000) + &"end ".repeat(20_000);
        let text = format!(
            r#"(module {IMPORT} (func {blocks})
            (func (export "__ic_custom_fd_write") (param i32 i32 i32 i32) (result i32) unreachable))"#
        );
        assert!(convert(&wasm(&text)).unwrap().is_some());
    }

    /// A module that is cut or changed is refused or converted to a valid one.
    #[test]
    fn no_module_panics() {
        let original = wasm(MODULE);
        assert!(matches!(convert(b"no module"), Err(Error::Invalid(_))));
        let (mut refused, mut valid) = (0, 0);
        let mut check = |wasm: &[u8]| match convert(wasm) {
            Ok(Some(converted)) => match Validator::new().validate_all(&converted) {
                Ok(_) => valid += 1,
                // An export that is removed may have been the declaration of its function.
                Err(error) => assert_eq!(error.message(), "undeclared function reference"),
            },
            Ok(None) => {}
            Err(_) => refused += 1,
        };
        for length in 0..original.len() {
            check(&original[..length]);
        }
        for at in 0..original.len() {
            for byte in 0..=u8::MAX {
                let mut changed = original.clone();
                changed[at] = byte;
                check(&changed);
            }
        }
        assert!(refused > 10_000 && valid > 10_000, "{refused} {valid}");
    }
}
