//! The suite users: a map or table with many rows, and the cost of working on them.
//!
//! ```text
//!   for each fixture (configuration, rows, payload):   install → configure → populate → check
//!     for each case:   fork → bring into the state → work, measured → check
//!   random deletes and inserts, VACUUM → check, and the cases of those states
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "the help describes the options")]

mod args;
mod job;
mod plan;
mod published;
mod rows;
mod sections;
pub mod tables;

pub use args::Section;
pub use job::Users;
pub use plan::UsersSuite;
pub use rows::{Access, Table, Verb, Work};
