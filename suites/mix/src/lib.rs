//! The suite mix: a message with insertions, reads, updates, deletions and scans.
//!
//! ```text
//!   create → fill → messages, measured in a fork, each a transaction
//! ```
//!
//! The table has integer columns, of which each may have an index, and a payload. In SQLite it is a table
//! with `CREATE INDEX`; in stable structures it is a map of rows and a map for each index.

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "the help describes the options")]

#[cfg(feature = "canister")]
pub mod canister;
mod job;
#[cfg(feature = "tool")]
mod plan;
#[cfg(feature = "tool")]
mod tables;
pub mod work;

pub use job::{Mix, MixTask, Operations, Place};
#[cfg(feature = "tool")]
pub use plan::MixSuite;
