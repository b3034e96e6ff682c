//! The rows that `stablebench` writes, and the models that check them.
//!
//! * [`rows`]: the rows of an operation, and their texts;
//! * [`random`]: a seeded generator, and random choices of rows;
//! * [`digest`]: a fingerprint of rows, the same for every engine and for the models;
//! * [`model`]: the interface of a suite's model;
//! * [`sql`]: work in SQL;
//! * [`users`], [`db_bench`], [`keys`], [`sysbench`], [`cuckoo`], [`vfs`], [`history`]: the work of
//!   each suite, and its model.
//!
//! Everything here runs on the host and inside canisters.

pub mod cuckoo;
pub mod db_bench;
pub mod digest;
pub mod history;
pub mod keys;
pub mod model;
pub mod random;
pub mod rows;
pub mod sql;
pub mod sysbench;
pub mod users;
pub mod vfs;

pub use digest::ContentDigest;
pub use model::{Expected, Model, Neighbours};
pub use random::Rng;
pub use rows::{Amount, IdSet, Ids, Payload, STEP, Selected};
