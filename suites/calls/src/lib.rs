//! The suite calls: messages between canisters, tasks, and upgrades.
//!
//! ```text
//!   a canister, and one that it has created and installed:
//!     size      a call by the bytes of its argument
//!     reply     a call by the bytes of its reply
//!     fan-out   several calls, in parallel or one after another
//!     kinds     messages of users, calls of updates and of queries
//!     tasks     rounds in which the other canister has a timer, a heartbeat, or no task
//!
//!   a canister with rows:
//!     upgrade   to its own module
//!     limit     the most rows with which that works
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "the help describes the options")]

mod job;
#[cfg(feature = "tool")]
mod plan;
#[cfg(feature = "tool")]
mod tables;
pub mod work;

pub use job::{CallOptions, CallSize, CallTo, Callee, Calls};
#[cfg(feature = "tool")]
pub use plan::CallsSuite;
