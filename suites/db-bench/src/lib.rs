//! The suite db-bench: LevelDB's benchmarks of SQLite, on stable memory.
//!
//! ```text
//!   for each configuration:   install → configure → an empty table
//!     for each benchmark, in the order of --benchmarks:
//!       prepare (empty the table, set synchronous)   → work, measured → check
//! ```
//!
//! A benchmark works on the rows that the one before it left.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "the help describes the options")]

mod benchmarks;
mod plan;
mod published;
mod tables;
#[cfg(test)]
mod tests;

pub use plan::DbBenchSuite;
