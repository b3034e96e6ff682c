//! What a store of items implements to have them looked up by the suite cuckoo.

use stablebench_protocol::{Lookups, Result};
use stablebench_workload::{Amount, ContentDigest};

/// A key, and its value.
pub type Item = (u64, [u8; 4]);

/// Items that are added in the order of their keys and looked up one at a time.
pub trait Points {
    /// Makes ready what the work must not pay for, before the first item.
    ///
    /// # Errors
    ///
    /// The store's.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// How many items there are.
    ///
    /// # Errors
    ///
    /// The store's.
    fn items(&mut self) -> Result<u64>;

    /// Work: adds items; where they are the last, completes the store.
    ///
    /// # Errors
    ///
    /// The store's; items may have been added.
    fn add(&mut self, items: &[Item], last: bool) -> Result<()>;

    /// Work: looks keys up and copies the values of those that are there.
    ///
    /// # Errors
    ///
    /// The store's; where it cannot look up as asked for.
    fn look_up(&mut self, keys: &[u64], lookups: Lookups) -> Result<Amount>;

    /// The value of a key.
    ///
    /// # Errors
    ///
    /// The store's.
    fn get(&mut self, key: u64) -> Result<Option<[u8; 4]>>;

    /// Adds at most `limit` items from `position` on to the digest; 0 is the beginning.
    /// Answers the next position, or nothing where no item is left.
    ///
    /// # Errors
    ///
    /// The store's.
    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>>;

    /// Bytes that the store takes, free space inside of it included.
    ///
    /// # Errors
    ///
    /// The store's.
    fn stored_bytes(&mut self) -> Result<u64>;

    /// Bytes of the virtual memory that it is in.
    fn virtual_bytes(&self) -> u64;
}
