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

mod advice;
mod options;
mod plan;
mod tables;
mod tools;

pub use advice::profile;
pub use options::{COMPARED, DEFAULT, Options};
pub use plan::{BuildsSuite, CALL, COMPILE, INSTALL, NAME, RUN, configuration};
pub use tools::{NotBuilt, Tool};
