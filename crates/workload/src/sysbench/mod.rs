//! The work of the suite sysbench: SQL statements in the manner of that program, on
//! tables whose primary key has one of four shapes.
//!
//! ```text
//!   sbtest1       key, k INTEGER with an index, c TEXT of 60, pad TEXT of 30      rows
//!   sbtest2       the same                                             at most 1 000 rows
//!   sbtest_types  key, ival INTEGER, rval REAL, tval TEXT of 50        at most 1 000 rows
//!   sbtest_bulk   as sbtest1 without the index                                    empty
//! ```
//!
//! Rows are numbered from 1; a key is a number in a shape. `k` is a random number of a
//! row of sbtest1, texts are random lower-case letters. Operation i of a workload follows
//! from the seed, the workload's name, the number of rows, and i: not from the process, and
//! not from the key's shape, so that every shape does the same work.
//!
//! * [`workload`]: the 23 workloads, their names and sizes;
//! * [`action`]: what single statements are to do, without any SQL;
//! * [`reads`], [`writes`]: the actions of each workload's operation i;
//! * [`record`]: what rows hold;
//! * [`shape`]: the shapes of keys;
//! * [`schema`]: the tables in SQL;
//! * [`mod@script`]: actions in SQL;
//! * [`model`]: the same actions on maps, without SQL.

pub mod action;
pub mod model;
pub mod reads;
pub mod record;
pub mod schema;
pub mod script;
pub mod shape;
#[cfg(test)]
mod tests;
pub mod workload;
pub mod writes;

pub use model::Model;
pub use schema::{CONTENT, create};
pub use script::script;
pub use workload::{PUBLISHED_ROWS, WORKLOADS, operations, populated};

use crate::Rng;

/// Most rows of the second and third table.
pub const FEW: u64 = 1_000;

/// Rows of the second and third table.
pub fn few(rows: u64) -> u64 {
    rows.min(FEW)
}

/// What the random choices of one operation follow from.
fn rng(seed: u64, stream: &str, index: u64) -> Rng {
    // FNV-1a, so that the name alone decides.
    let name = stream.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    let mixed = Rng::new(Rng::new(seed).next_u64() ^ name).next_u64();
    Rng::new(Rng::new(mixed ^ index).next_u64())
}
