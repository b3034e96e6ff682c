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
//! * [`rng`]: the seeded generator behind them.
//!
//! Everything here runs on the host and inside canisters.

pub mod access;
mod amount;
pub mod digest;
pub mod id_set;
pub mod ids;
pub mod model;
pub mod operations;
pub mod payload;
pub mod rng;
pub mod selected;

pub use amount::Amount;
pub use digest::ContentDigest;
pub use id_set::IdSet;
pub use ids::Ids;
pub use model::Model;
pub use rng::Rng;
pub use selected::Selected;
