//! Everything that a suite is written with, apart from its question.
//!
//! ```text
//!   suite ──→ plan ──→ job            what is measured, and in which order
//!     └─────→ report ──→ compare      what is printed
//!                └─────→ results ──→ cost
//!   engines                           what it is measured with
//!   observer, input                   work that no model knows, and the files that it is in
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "fields of results are described in docs/running.md")]
#![cfg_attr(
    test,
    allow(clippy::disallowed_methods, reason = "tests read and decode what they have written")
)]

pub mod compare;
pub mod cost;
pub mod engines;
pub mod input;
pub mod job;
pub mod observer;
pub mod plan;
pub mod report;
pub mod results;
pub mod saving;
pub mod shard;
mod suite;
pub mod terminal;

/// The repository of these tests.
#[cfg(test)]
fn root() -> std::path::PathBuf {
    std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

pub use suite::{Suite, plan_of, smallest, unique, words};
