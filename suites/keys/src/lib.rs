//! The suite keys: a link table of users and movies, under four kinds of key and five
//! declarations of its primary key.
//!
//! ```text
//!   for each schema and kind of key:   create → movies → users → lists, measured
//!                                        ├─ fork: the movies that a user wants to watch
//!                                        └─ fork: the users who want to watch a movie
//! ```
//!
//! Each row of the tables is a schema, and each column a kind of key.

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

pub use job::{KeyKind, Keys, KeysTask, LinkSchema};
#[cfg(feature = "tool")]
pub use plan::KeysSuite;
