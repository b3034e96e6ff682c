//! The suite users: a map or table with many rows, and the cost of working on them.
//!
//! ```text
//!   for each fixture (configuration, rows, payload):   install → configure → populate → check
//!     for each case:   fork → bring into the state → work, measured → check
//!   random deletes and inserts, VACUUM → check, and the cases of those states
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "the help describes the options")]

#[cfg(feature = "canister")]
pub mod canister;
mod job;
#[cfg(feature = "tool")]
mod plan;
#[cfg(feature = "tool")]
mod rows;
#[cfg(feature = "tool")]
mod sections;
#[cfg(feature = "tool")]
mod tables;
pub mod work;

pub use job::{Operation, Selection, Users, UsersTask};
#[cfg(feature = "tool")]
pub use plan::UsersSuite;
#[cfg(feature = "tool")]
pub use rows::{Access, EngineRows, RowWork, TableIds, Verb};
