//! Engines of items, which the suite cuckoo looks up.

use crate::job::Lookups;
use crate::work::add_item;
use stablebench_harness::Records;
use stablebench_protocol::{Engine, Error, Result};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;
use std::ops::ControlFlow;

/// A key and its value.
pub type Item = (u64, [u8; 4]);

/// An engine to which items are added in the order of their keys, and which looks keys up.
pub trait Points {
    /// Prepares what is not part of the work, before the first item.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// Returns the number of items.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn items(&mut self) -> Result<u64>;

    /// Work: adds items. With the last items, completes the table.
    ///
    /// # Errors
    ///
    /// The engine's; items may have been added.
    fn add(&mut self, items: &[Item], last: bool) -> Result<()>;

    /// Work: looks keys up and copies the values of those that exist.
    ///
    /// # Errors
    ///
    /// The engine's; if it does not support this kind of lookups.
    fn look_up(&mut self, keys: &[u64], lookups: Lookups) -> Result<Amount>;

    /// Returns the value of a key.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn get(&mut self, key: u64) -> Result<Option<[u8; 4]>>;

    /// Adds at most `limit` items to the digest, starting at `position`; 0 is the beginning. Returns
    /// the next position, or nothing if no item is left.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>>;

    /// Returns the bytes in use, including the free space inside.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn stored_bytes(&mut self) -> Result<u64>;

    /// Returns the bytes of the virtual memory that contains the items.
    fn virtual_bytes(&self) -> u64;
}

/// Refuses lookups of several keys in one call.
///
/// # Errors
///
/// If several keys are looked up.
pub fn require_single(engine: Engine, lookups: Lookups) -> Result<()> {
    match lookups {
        Lookups::Single => Ok(()),
        Lookups::Batch(_) => {
            Err(Error::Unsupported { engine, operation: "look up in batches".to_owned() })
        }
    }
}

/// Items in any engine of keys and values, looked up one by one.
///
/// A key is 8 bytes, big-endian: the order of keys is the order of items.
#[derive(Clone, Debug)]
pub struct ByKey<R> {
    /// The name of the engine.
    pub engine: Engine,
    /// The engine.
    pub records: R,
}

impl<R: Records> Points for ByKey<R> {
    fn prepare(&mut self) -> Result<()> {
        self.records.prepare()
    }

    fn items(&mut self) -> Result<u64> {
        self.records.rows()
    }

    fn add(&mut self, items: &[Item], _: bool) -> Result<()> {
        self.records.begin()?;
        for (key, value) in items {
            self.records.put(&key.to_be_bytes(), value)?;
        }
        self.records.commit()
    }

    fn look_up(&mut self, keys: &[u64], lookups: Lookups) -> Result<Amount> {
        require_single(self.engine, lookups)?;
        let mut found = Amount::default();
        for key in keys {
            self.records.get(&key.to_be_bytes(), &mut |value| {
                black_box(value);
                found += Amount { rows: 1, bytes: value.len() as u64 };
            })?;
        }
        Ok(found)
    }

    fn get(&mut self, key: u64) -> Result<Option<[u8; 4]>> {
        let mut found = None;
        self.records.get(&key.to_be_bytes(), &mut |value| found = value.try_into().ok())?;
        Ok(found)
    }

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let (mut left, mut next) = (limit, None);
        self.records.scan(&position.to_be_bytes(), &mut |key, value| {
            let Ok(key) = key.try_into().map(u64::from_be_bytes) else {
                return ControlFlow::Break(());
            };
            if left == 0 {
                next = Some(key);
                return ControlFlow::Break(());
            }
            left -= 1;
            add_item(digest, key, value);
            ControlFlow::Continue(())
        })?;
        Ok(next)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        self.records.stored_bytes()
    }

    fn virtual_bytes(&self) -> u64 {
        self.records.virtual_bytes()
    }
}
