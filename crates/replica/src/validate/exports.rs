//! Methods and entry points, and the names that are reserved.
//!
//! ```text
//! canister_update NAME, canister_query NAME, canister_composite_query NAME   methods
//! canister_init, canister_heartbeat, …                                       entry points
//! canister_ANYTHING else, and what the replica itself exports                refused
//! everything else                                                            ignored
//! ```
//!
//! The prefix `canister_` is reserved for functions only, the replica's own names for
//! exports of any kind.

use std::collections::BTreeSet;

use wasmparser::ExternalKind;

use super::imports::{Shape, check_signature};
use super::refusal::Invalid;
use super::sections::Sections;
use crate::rules::ModuleLimits;

/// What the replica exports from the module that it makes of a canister's.
pub(super) const RESERVED: &[&str] = &[
    "canister counter_instructions",
    "canister_start",
    "canister counter_dirty_pages",
    "canister counter_accessed_pages",
    "stable_memory",
    "stable_bytemap_memory",
];

/// How a method is called.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize, serde::Deserialize,
)]
pub enum MethodKind {
    /// `canister_update NAME`: what it changes stays.
    Update,
    /// `canister_query NAME`: what it changes does not stay.
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
    /// How it is called.
    pub kind: MethodKind,
    /// Its name, without the prefix that tells the kind. It may be empty.
    pub name: String,
    /// The function, by its index.
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

            /// The name by which a module exports it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }
        }
    };
}

entry_points! {
    /// Runs after the first installation and after a reinstallation.
    Init "canister_init";
    /// Runs on the old module, before an upgrade.
    PreUpgrade "canister_pre_upgrade";
    /// Runs on the new module, after an upgrade.
    PostUpgrade "canister_post_upgrade";
    /// Decides which updates of users are let in.
    InspectMessage "canister_inspect_message";
    /// Runs in every round.
    Heartbeat "canister_heartbeat";
    /// Runs when the timer set by `ic0.global_timer_set` is due.
    GlobalTimer "canister_global_timer";
    /// Runs when little of the heap is free.
    OnLowWasmMemory "canister_on_low_wasm_memory";
}

impl EntryPoint {
    fn from_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|entry_point| entry_point.name() == name)
    }
}

/// What a module exports for the replica.
#[derive(Default)]
pub(super) struct Exports {
    pub methods: Vec<Method>,
    pub entry_points: Vec<EntryPoint>,
}

pub(super) fn check(sections: &Sections<'_>, limits: &ModuleLimits) -> Result<Exports, Invalid> {
    let mut exports = Exports::default();
    let mut names = BTreeSet::new();
    let mut total = 0;
    for export in &sections.exports {
        let name = export.name;
        if RESERVED.contains(&name) {
            return Err(refused(format!("Exporting reserved symbol {name} not allowed.")));
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
            return Err(refused(format!(
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
        return Err(refused("Function export doesn't have a function type."));
    };
    check_signature(name, Shape { params: &[], results: &[] }, ty.into())
}

fn refused(words: impl Into<String>) -> Invalid {
    Invalid::Export(words.into())
}
