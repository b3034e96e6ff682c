//! The suite vfs: the cost of the file layer below SQLite, through `ic-sqlite-vfs` and through
//! `ic-rusqlite`.
//!
//! ```text
//!   for each configuration and size:   install → configure → create → populate → check
//!     for each case:   fork → close, or open and warm → work, measured → check
//!                      fork → the same                → work, its phases
//! ```
//!
//! The table is that of the published benchmark, in which one side had a single transaction and the
//! other a transaction for each row, other pages and another journal: section `as published`. All
//! other sections have the same transactions on both sides, and configurations with the same pages,
//! cache and journal.

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

pub use job::{Vfs, VfsTask, VfsTransaction, VfsWork};
#[cfg(feature = "tool")]
pub use plan::VfsSuite;
