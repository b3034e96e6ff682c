//! What the works of several suites share, and the interface of the models that check them.
//!
//! * [`random`]: a seeded generator, and random choices of rows;
//! * [`digest`]: a fingerprint of rows, the same for every engine and for the models;
//! * [`model`]: the interface of a suite's model;
//! * [`digits`]: keys of digits, for engines of keys and values;
//! * [`sql`]: work in SQL.
//!
//! Everything here runs on the host and inside canisters. The work of a suite, and its model, are in the
//! suite's own crate.

mod amount;
pub mod digest;
pub mod digits;
pub mod model;
pub mod random;
pub mod sql;

pub use amount::Amount;
pub use digest::ContentDigest;
pub use model::{Expected, Model, Neighbours};
pub use random::Rng;
