//! Benchmarks of canbench projects on the embedded replica.
//!
//! ```text
//!   config.rs   canbench.yml
//!   module.rs   the benchmarks that a module exports
//!   measure.rs  runs them, each on a fork of one canister, on all cores
//!     └──→ Measured
//!   results.rs  canbench_results.yml: read, compared with, written
//!     └──→ change.rs    what changed, and whether it is noise
//!            ├─ text.rs      a benchmark, as canbench prints it
//!            ├─ summary.rs   the summary of all
//!            ├─ table.rs     significant changes, costs
//!            ├─ csv.rs, json.rs, markdown.rs
//! ```
//!
//! Texts and files are those of canbench 0.7, down to the last character, because scripts
//! read them. Additional output is printed on request only.

pub mod change;
pub mod config;
pub mod csv;
pub mod json;
pub mod markdown;
pub mod measure;
pub mod module;
mod number;
pub mod results;
pub mod summary;
pub mod table;
#[cfg(test)]
mod tests;
pub mod text;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The version of canbench whose files are read and written.
pub const VERSION: &str = "0.7.0";

/// The result of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bench {
    /// From its beginning to its end.
    pub total: Measurement,
    /// Parts of it, by name.
    #[serde(default)]
    pub scopes: BTreeMap<String, Measurement>,
}

/// A measurement.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Measurement {
    /// The number of calls.
    #[serde(default)]
    pub calls: u64,
    /// Instructions by `performance_counter(0)`.
    #[serde(default)]
    pub instructions: u64,
    /// Wasm pages by which the heap grew.
    #[serde(default)]
    pub heap_increase: u64,
    /// Wasm pages by which stable memory grew.
    #[serde(default)]
    pub stable_memory_increase: u64,
}

/// Benchmarks by name.
pub type Benches = BTreeMap<String, Bench>;
