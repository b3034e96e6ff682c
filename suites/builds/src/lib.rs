//! The suite builds: the same canister, built with many options.
//!
//! ```text
//!   for each build, a canister for each of
//!     map, SQLite, heap    rows are inserted, and looked up        (the work of the suite users)
//!     compute              Candid, CBOR and SHA-256
//!                          and the installation of the module
//! ```

#![forbid(unsafe_code)]
#![allow(missing_docs, reason = "the help describes the options")]

#[cfg(feature = "canister")]
pub mod canister;
mod job;
#[cfg(feature = "tool")]
mod options;
#[cfg(feature = "tool")]
mod plan;
#[cfg(feature = "tool")]
mod tables;
pub mod work;

pub use job::{Builds, HEAP};
#[cfg(feature = "tool")]
pub use options::{COMPARED, DEFAULT, NotBuilt, Options};
#[cfg(feature = "tool")]
pub use plan::{BENCH_BUILDS, BuildsSuite, CALL, COMPILE, INSTALL, NAME, RUN, configuration};
#[cfg(feature = "tool")]
pub use tables::profile;
