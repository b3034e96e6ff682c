//! The suite sysbench: statements in the manner of that program, on two engines or more.
//!
//! ```text
//!   for each shape of key, place and side:   install → configure → create → populate → check
//!     for each workload:   fork → work, measured → check
//! ```
//!
//! In stable memory each workload runs twice: with a transaction a message, and with a
//! transaction a statement.

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

pub use job::{KeyShape, Sysbench, SysbenchTask, SysbenchWorkload};
#[cfg(feature = "tool")]
pub use plan::SysbenchSuite;
