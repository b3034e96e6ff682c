//! Engines of keys and values, which get every key-value workload.

use stablebench_protocol::{Error, Result};
use std::ops::ControlFlow;

/// A visitor of keys and values, which decides whether the next pair is visited.
pub type VisitRecord<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// An engine: values under keys, both bytes, in the order of the keys.
///
/// An engine that implements this trait gets every key-value workload: `ById` of the suite users makes
/// rows of an id and a text from it, and `ByKey` of the suite cuckoo makes items. The suite db-bench uses
/// it as it is. Writes are between `begin` and `commit`. Only methods
/// described as *work* are measured.
pub trait Records {
    /// Prepares what is not part of the work, such as opening a database.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// Removes all keys, as in a new engine.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn clear(&mut self) -> Result<()>;

    /// Work: begins a transaction, or a batch, if the engine has them.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    /// Work: commits the transaction.
    ///
    /// # Errors
    ///
    /// The engine's; then `rollback` is called.
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    /// Undoes everything since `begin` because of an error, and returns whether it did.
    fn rollback(&mut self, _because: &Error) -> bool {
        false
    }

    /// Work: writes a value under a key, replacing one that exists.
    ///
    /// # Errors
    ///
    /// The engine's; if it cannot store such a key or such a value.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Work: removes a key and its value.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Work: copies the value of a key and visits it. Returns whether there is one.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Work: copies keys and values and visits them in the order of keys, starting at `from`.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn scan(&mut self, from: &[u8], visit: &mut VisitRecord<'_>) -> Result<()>;

    /// Returns the largest key.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn last_key(&mut self) -> Result<Option<Vec<u8>>>;

    /// Returns the number of keys.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn rows(&mut self) -> Result<u64>;

    /// Returns the bytes of stable memory in use, including the free space in pages and nodes.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn stored_bytes(&mut self) -> Result<u64>;

    /// Returns the bytes of the virtual memories that contain the values, or of stable memory if
    /// there are none.
    fn virtual_bytes(&self) -> u64;

    /// Returns the bytes of heap of caches.
    fn cache_bytes(&self) -> u64 {
        0
    }

    /// Returns the number of units of storage in use. Called between operations, and not measured.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn allocated_units(&mut self) -> Result<u64>;
}
