//! The rows that `stablebench` writes, and what must be there afterwards.
//!
//! * [`ids`]: which rows a batch is about: appended, put into the middle, at the end;
//! * [`selected`]: which rows an operation is about, a step apart or listed;
//! * [`id_set`]: the same in ascending order, for checks;
//! * [`payload`]: what the rows hold;
//! * [`access`]: which rows random operations are about;
//! * [`digest`]: a fingerprint of rows, the same for every engine and for the model;
//! * [`model`]: what an engine must hold after the same operations;
//! * [`operations`]: seeded streams of operations for checking engines;
//! * [`sql`]: work in SQL;
//! * [`db_bench`], [`keys`], [`sysbench`], [`cuckoo`], [`vfs`], and `history` with that feature: the
//!   work of those suites, and what it must find;
//! * [`rng`]: the seeded generator behind them.
//!
//! Everything here runs on the host and inside canisters.

pub mod access;
mod amount;
pub mod cuckoo;
pub mod db_bench;
pub mod digest;
pub mod expected;
#[cfg(feature = "history")]
pub mod history;
pub mod id_set;
pub mod ids;
pub mod keys;
pub mod model;
pub mod operations;
pub mod payload;
pub mod rng;
pub mod selected;
pub mod sql;
pub mod sysbench;
pub mod vfs;

pub use amount::Amount;
pub use digest::ContentDigest;
pub use expected::{Expected, Tables};
pub use id_set::IdSet;
pub use ids::Ids;
pub use model::Model;
pub use rng::Rng;
pub use selected::Selected;
