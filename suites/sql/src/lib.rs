//! The suite sql: the cost of any SQL, statement by statement.

#[cfg(feature = "canister")]
pub mod canister;
mod job;
#[cfg(any(test, feature = "tool"))]
pub mod script;
pub mod split;

pub use job::{Answer, Answers, Call, Counters, Failure, FilePart, Sql, Statements, Value};
