//! The interface of a module: imports, exports and custom sections.
//!
//! A canister may only import functions of the System API.
//!
//! Exports are classified by name:
//!
//! ```text
//! canister_update NAME, canister_query NAME, canister_composite_query NAME   methods
//! canister_init, canister_heartbeat, …                                       entry points
//! canister_* otherwise, and names that the replica exports itself            refused
//! all other names                                                            ignored
//! ```
//!
//! The prefix `canister_` is reserved for functions only, the replica's own names for exports of
//! any kind.
//!
//! Custom sections `icp:public NAME` and `icp:private NAME` are exposed to everyone or to the
//! canister's controllers. NAME may be empty and is unique over both scopes. Other names that start
//! with `icp:` are refused, all others ignored.

use std::collections::{BTreeMap, BTreeSet};

use wasmparser::{ExternalKind, FuncType, TypeRef, ValType};

use super::refusal::Invalid;
use super::wasm::Sections;
use crate::rules::ModuleLimits;
use crate::system_api::functions::{AddressWidth, MODULE, SystemCall, Type};

/// Returns the imported functions in order. An imported table or memory passes here; the engine
/// refuses it later with another text.
pub(super) fn check_imports(
    sections: &Sections<'_>,
    width: AddressWidth,
    limits: &ModuleLimits,
) -> Result<Vec<SystemCall>, Invalid> {
    let mut calls = Vec::new();
    for import in &sections.imports {
        let (module, name) = (import.module, import.name);
        match import.ty {
            TypeRef::Func(ty) | TypeRef::FuncExact(ty) => {
                let Some(ty) = sections.type_of(ty) else {
                    return Err(invalid_import("Function import doesn't have a function type."));
                };
                let call = find(module, name, width, limits)?;
                let params = val_types(call.signature().params, width);
                let results = val_types(call.signature().results, width);
                let expected = Shape { params: &params, results: &results };
                check_signature(name, expected, ty.into())?;
                calls.push(call);
            }
            TypeRef::Table(_) if name == "table" && module != "env" => {
                return Err(invalid_import("Only tables imported from env.table are allowed."));
            }
            TypeRef::Memory(_) if name == "memory" && module != "env" => {
                return Err(invalid_import("Only memory imported from env.memory is allowed."));
            }
            TypeRef::Table(_) | TypeRef::Memory(_) => {}
            TypeRef::Global(_) => return Err(invalid_import("Importing globals is not allowed.")),
            TypeRef::Tag(_) => return Err(invalid_import("Importing tags is not allowed.")),
        }
    }
    Ok(calls)
}

fn invalid_import(words: impl Into<String>) -> Invalid {
    Invalid::Import(words.into())
}

fn find(
    module: &str,
    name: &str,
    width: AddressWidth,
    limits: &ModuleLimits,
) -> Result<SystemCall, Invalid> {
    let call = SystemCall::from_name(name)
        .filter(|call| width == AddressWidth::Bits32 || !call.signature().only_32_bit)
        .filter(|call| !limits.lacks.contains(call));
    match call {
        Some(call) if module == MODULE => Ok(call),
        Some(_) => Err(invalid_import(format!(
            "Module imports function {name:?} from {module:?}, expected to be imported from \
             one of [{MODULE:?}] instead."
        ))),
        None => Err(invalid_import(format!(
            "Module imports function '{name}' from '{module}' that is not exported by the \
             runtime."
        ))),
    }
}

fn val_types(types: &[Type], width: AddressWidth) -> Vec<ValType> {
    types.iter().map(|ty| ty.val_type(width)).collect()
}

/// Parameters and results of a function.
#[derive(Clone, Copy)]
struct Shape<'a> {
    params: &'a [ValType],
    results: &'a [ValType],
}

impl<'a> From<&'a FuncType> for Shape<'a> {
    fn from(ty: &'a FuncType) -> Self {
        Self { params: ty.params(), results: ty.results() }
    }
}

/// Compares parameters and results of a function that is imported or exported by `name`.
/// Parameters are checked first.
fn check_signature(name: &str, expected: Shape<'_>, got: Shape<'_>) -> Result<(), Invalid> {
    let params = ("input params", expected.params, got.params);
    let results = ("return type", expected.results, got.results);
    for (part, expected, got) in [params, results] {
        if expected != got {
            let (expected, got) = (type_names(expected), type_names(got));
            return Err(Invalid::Signature(format!(
                "Expected {part} [{expected}] for '{name}', got [{got}]."
            )));
        }
    }
    Ok(())
}

/// Names of types as the replica prints them. All references are nullable, because typed function
/// references are disabled.
fn type_names(types: &[ValType]) -> String {
    let names: Vec<&str> = types
        .iter()
        .map(|ty| match ty {
            ValType::I32 => "I32",
            ValType::I64 => "I64",
            ValType::F32 => "F32",
            ValType::F64 => "F64",
            ValType::V128 => "V128",
            ValType::Ref(reference) if reference.is_extern_ref() => "ExternRefNull",
            ValType::Ref(_) => "FuncRefNull",
        })
        .collect();
    names.join(", ")
}

/// Names that the replica exports from the module that it makes of a canister's.
pub(super) const RESERVED: &[&str] = &[
    "canister counter_instructions",
    "canister_start",
    "canister counter_dirty_pages",
    "canister counter_accessed_pages",
    "stable_memory",
    "stable_bytemap_memory",
];

/// Kind of a method.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum MethodKind {
    /// `canister_update NAME`: its changes are committed.
    Update,
    /// `canister_query NAME`: its changes are dropped.
    Query,
    /// `canister_composite_query NAME`: a query that may call other queries.
    CompositeQuery,
}

const PREFIXES: &[(&str, MethodKind)] = &[
    ("canister_update ", MethodKind::Update),
    ("canister_query ", MethodKind::Query),
    ("canister_composite_query ", MethodKind::CompositeQuery),
];

/// A method of a canister.
#[derive(
    Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub struct Method {
    /// Kind of the method.
    pub kind: MethodKind,
    /// The name without the prefix of the kind. It may be empty.
    pub name: String,
    /// Index of the function.
    pub function: u32,
}

macro_rules! entry_points {
    ($($(#[$doc:meta])* $variant:ident $name:literal;)*) => {
        /// A function that the replica calls by itself.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum EntryPoint { $($(#[$doc])* $variant),* }

        impl EntryPoint {
            /// Every entry point.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The name of the export.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

entry_points! {
    /// Runs after an installation or a reinstallation.
    Init "canister_init";
    /// Runs on the old module before an upgrade.
    PreUpgrade "canister_pre_upgrade";
    /// Runs on the new module after an upgrade.
    PostUpgrade "canister_post_upgrade";
    /// Decides whether an ingress message is accepted.
    InspectMessage "canister_inspect_message";
    /// Runs in every round.
    Heartbeat "canister_heartbeat";
    /// Runs when the timer set by `ic0.global_timer_set` is due.
    GlobalTimer "canister_global_timer";
    /// Runs when little heap is left.
    OnLowWasmMemory "canister_on_low_wasm_memory";
}

impl EntryPoint {
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|entry_point| entry_point.name() == name)
    }
}

/// Exports that the replica uses.
#[derive(Default)]
pub(super) struct Exports {
    pub methods: Vec<Method>,
    pub entry_points: Vec<EntryPoint>,
}

pub(super) fn check_exports(
    sections: &Sections<'_>,
    limits: &ModuleLimits,
) -> Result<Exports, Invalid> {
    let mut exports = Exports::default();
    let mut names = BTreeSet::new();
    let mut total = 0;
    for export in &sections.exports {
        let name = export.name;
        if RESERVED.contains(&name) {
            return Err(invalid_export(format!("Exporting reserved symbol {name} not allowed.")));
        }
        if !matches!(export.kind, ExternalKind::Func | ExternalKind::FuncExact) {
            continue;
        }
        if let Some((kind, method)) = method(name) {
            if !names.insert(method) {
                return Err(Invalid::DuplicateMethod(method.into()));
            }
            total += method.len();
            let function = export.index;
            exports.methods.push(Method { kind, name: method.into(), function });
        } else if let Some(entry_point) = EntryPoint::from_name(name) {
            exports.entry_points.push(entry_point);
        } else if name.starts_with("canister_") {
            return Err(invalid_export(format!(
                "Exporting reserved function '{name}' with \"canister_\" prefix"
            )));
        } else {
            continue;
        }
        check_no_arguments(sections, name, export.index)?;
    }

    let defined = exports.methods.len();
    if defined > limits.methods {
        return Err(Invalid::TooManyMethods { defined, allowed: limits.methods });
    }
    if total > limits.method_names {
        return Err(Invalid::MethodNamesTooLong { total, allowed: limits.method_names });
    }
    Ok(exports)
}

fn method(export: &str) -> Option<(MethodKind, &str)> {
    PREFIXES.iter().find_map(|&(prefix, kind)| Some((kind, export.strip_prefix(prefix)?)))
}

fn check_no_arguments(sections: &Sections<'_>, name: &str, function: u32) -> Result<(), Invalid> {
    let Some(ty) = sections.signature(function) else {
        return Err(invalid_export("Function export doesn't have a function type."));
    };
    check_signature(name, Shape { params: &[], results: &[] }, ty.into())
}

fn invalid_export(words: impl Into<String>) -> Invalid {
    Invalid::Export(words.into())
}

/// Largest number of `icp:` sections.
const MAX_SECTIONS: usize = 16;
/// Largest total size of their contents and NAMEs in bytes.
const MAX_SIZE: usize = 1 << 20;

/// Visibility of a custom section.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum Visibility {
    /// Everyone.
    Public,
    /// The canister's controllers.
    Private,
}

/// A custom section that the replica keeps.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct CustomSection {
    /// Visibility of the section.
    pub visibility: Visibility,
    /// The content of the section.
    pub content: Vec<u8>,
}

pub(super) fn check_custom_sections(
    sections: &Sections<'_>,
) -> Result<BTreeMap<String, CustomSection>, Invalid> {
    let mut kept = BTreeMap::new();
    let mut total = 0;
    for &(section, content) in &sections.custom {
        let Some((visibility, name)) = scope(section)? else {
            continue;
        };
        if kept.contains_key(name) {
            return Err(invalid_custom(format!(
                "Invalid custom section: name {name} already exists"
            )));
        }
        total += content.len() + name.len();
        if total > MAX_SIZE {
            return Err(invalid_custom(format!(
                "Invalid custom sections: total size of the custom sections exceeds the \
                 maximum allowed: size {total} bytes, allowed {MAX_SIZE} bytes"
            )));
        }
        kept.insert(name.to_owned(), CustomSection { visibility, content: content.to_vec() });
        let defined = kept.len();
        if defined > MAX_SECTIONS {
            return Err(Invalid::TooManyCustom { defined, allowed: MAX_SECTIONS });
        }
    }
    Ok(kept)
}

/// The visibility and the NAME; `None` for a section that the replica ignores.
fn scope(section: &str) -> Result<Option<(Visibility, &str)>, Invalid> {
    let Some(scoped) = section.strip_prefix("icp:") else {
        return Ok(None);
    };
    if let Some(name) = scoped.strip_prefix("public ") {
        return Ok(Some((Visibility::Public, name)));
    }
    if let Some(name) = scoped.strip_prefix("private ") {
        return Ok(Some((Visibility::Private, name)));
    }
    if matches!(scoped, "public" | "private") {
        return Err(invalid_custom(
            "'icp:' section names must have a space after the public/private scope",
        ));
    }
    Err(invalid_custom(format!(
        "Invalid custom section: Custom section '{section}' has no public/private scope defined."
    )))
}

fn invalid_custom(words: impl Into<String>) -> Invalid {
    Invalid::Custom(words.into())
}
