//! The suite sql: the cost of any SQL, statement by statement.

#[cfg(feature = "canister")]
pub mod canister;
mod job;
pub mod split;

pub use job::{Answer, Answers, Call, Counters, Failure, FilePart, Sql, Statements, Value};
