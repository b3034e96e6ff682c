//! The suite history: the costs of commits, branches and diffs in DoltLite, whose tables have
//! them.
//!
//! ```text
//!   install → configure → create → populate → commit
//!     for each case:   fork → rows changed, or a branch that differs → work, measured → check
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "the help describes the options")]

#[cfg(feature = "canister")]
pub mod canister;
mod job;
#[cfg(feature = "tool")]
mod plan;
pub mod work;

pub use job::{History, HistoryTask};
#[cfg(feature = "tool")]
pub use plan::HistorySuite;
