//! The stores of the suite cuckoo, each in a memory of its own.

mod array;
mod btree;
mod table;

use crate::manager;
use array::Array;
use btree::Btree;
use stablebench_harness::Points;
use stablebench_protocol::{Cuckoo, Engine, Error, Lookups, PointStore, Result};
use stablebench_workload::Amount;
use stablebench_workload::cuckoo::Items;
use std::hint::black_box;
use table::Table;

const TABLE: u8 = 30;
const BTREE: u8 = 31;
const ARRAY: u8 = 32;

/// Whichever of them are in use.
pub struct Stores {
    table: Table,
    btree: Btree,
    array: Array,
}

impl Default for Stores {
    fn default() -> Self {
        Self {
            table: Table::new(manager::memory(TABLE)),
            btree: Btree::new(manager::memory(BTREE)),
            array: Array::new(manager::memory(ARRAY)),
        }
    }
}

impl Stores {
    /// The store of a job.
    pub fn store(&mut self, job: &Cuckoo, seed: u64) -> Result<&mut dyn Points> {
        match job.store {
            PointStore::Cuckoo(first_hash) => {
                self.table.plan(job.buckets, first_hash);
                Ok(&mut self.table)
            }
            PointStore::Btree => Ok(&mut self.btree),
            PointStore::Array => {
                self.array.places(Items::new(job, seed));
                Ok(&mut self.array)
            }
            PointStore::Sqlite => Err(Error::EngineUnavailable { engine: Engine::Sqlite }),
        }
    }
}

/// Looks keys up one by one, as the stores do that know no batches.
#[inline]
fn one_by_one(
    engine: Engine,
    keys: &[u64],
    lookups: Lookups,
    mut get: impl FnMut(u64) -> Option<[u8; 4]>,
) -> Result<Amount> {
    if lookups != Lookups::Single {
        return Err(Error::Unsupported { engine, operation: "look up in batches".to_owned() });
    }
    let mut found = Amount::default();
    for key in keys {
        count(&mut found, get(*key));
    }
    Ok(found)
}

/// Counts a value in, if there is one.
#[inline]
fn count(found: &mut Amount, value: Option<[u8; 4]>) {
    if let Some(value) = value {
        *found += Amount { rows: 1, bytes: 4 };
        black_box(value);
    }
}

/// Something that went wrong with stable memory.
fn out_of_memory(pages: u64) -> Error {
    Error::OutOfStableMemory { pages }
}
