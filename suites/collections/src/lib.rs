//! The suite collections: a map from numbers to numbers in Motoko and in Rust, on the heap and in
//! stable memory. The work is that of `canister-profiling`.
//!
//! ```text
//!   generate   N random keys, each its own value
//!   forks      50 look-ups of other keys, 50 of generated ones, 50 other keys, 50 removals
//!   upgrade    to the same module
//! ```

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

pub use job::{Collections, CollectionsTask};
#[cfg(feature = "tool")]
pub use plan::CollectionsSuite;
