//! The suite cuckoo: point reads of a hash table that is built once, as in RocksDB's reader test of
//! its CuckooTable, compared with those of a map, of SQLite, and of the floor.
//!
//! ```text
//!   for each configuration, utilisation and kind of key, a fixture:
//!     build    all items, in the order of their keys
//!     hit      lookups of existing keys in random order, one by one
//!     miss     lookups of missing keys
//!     batches  hits, several in a call                     (cuckoo tables only)
//!     upgrade  the first hit after an upgrade, and many    (the fullest tables)
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

pub use job::{Cuckoo, CuckooHash, CuckooKeys, CuckooTask, Lookups};
#[cfg(feature = "tool")]
pub use plan::CuckooSuite;
