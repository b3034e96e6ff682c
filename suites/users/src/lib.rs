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
#[cfg(feature = "tool")]
mod plan;
#[cfg(feature = "tool")]
mod rows;
#[cfg(feature = "tool")]
mod sections;
#[cfg(feature = "tool")]
mod tables;
mod types;
pub mod work;

#[cfg(feature = "tool")]
pub use plan::UsersSuite;
#[cfg(feature = "tool")]
pub use rows::{Access, EngineRows, Table, Verb, Work};
pub use types::{Operation, Selection, Users, UsersTask};
