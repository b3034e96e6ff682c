//! What LevelDB's `db_bench` does to a table of keys and values.
//!
//! ```text
//!   key     16 digits: its number, filled up with zeros
//!   value   pieces of 100 bytes, in each of which 50 random bytes stand twice: it
//!           compresses to half
//! ```
//!
//! Operation i of a benchmark follows from the seed, the benchmark's place in the run, and
//! i, so that it is the same however operations are cut into messages.
//!
//! * [`operation`]: what operation i writes or looks up;
//! * [`mod@script`]: the same in SQL;
//! * [`model`]: what must be there afterwards, and what must be read;
//! * [`keys`]: how many keys are there.

pub mod keys;
pub mod model;
pub mod operation;
pub mod script;
#[cfg(test)]
mod tests;

pub use keys::Keys;
pub use model::Model;
pub use operation::{KEY_BYTES, Key, Source, key, number, random_key, write};
pub use script::{DROP, create, script};
