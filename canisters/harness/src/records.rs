//! What an engine of keys and values implements to get every key-value workload.

use stablebench_protocol::{Error, Result};
use std::ops::ControlFlow;

/// Told a key and a value; says whether the next are wanted.
pub type VisitRecord<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// An engine: values under keys, both bytes, in the order of the keys.
///
/// This is all that an engine has to do for every key-value workload:
/// [`ById`](crate::ById) makes rows of an id and a text of it, for the suite `users`,
/// [`ByKey`](crate::ByKey) items to look up, for `cuckoo`; `db-bench` takes it as it is. Writes stand between `begin` and `commit`; only what is
/// called *work* is measured.
pub trait Records {
    /// Makes ready what the work must not pay for, such as opening a database.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    /// Removes everything, so that the store is as a new one.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn clear(&mut self) -> Result<()>;

    /// Work: begins a transaction, or a batch, where the engine has such.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn begin(&mut self) -> Result<()> {
        Ok(())
    }

    /// Work: ends it; what it holds is there from now on.
    ///
    /// # Errors
    ///
    /// The engine's; then `rollback` is called.
    fn commit(&mut self) -> Result<()> {
        Ok(())
    }

    /// Undoes everything since `begin` because of an error, and tells whether it did.
    fn rollback(&mut self, _because: &Error) -> bool {
        false
    }

    /// Work: puts a value under a key, in the place of the one that is there.
    ///
    /// # Errors
    ///
    /// The engine's; where it cannot hold such a key or such a value.
    fn put(&mut self, key: &[u8], value: &[u8]) -> Result<()>;

    /// Work: removes a key and its value.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn delete(&mut self, key: &[u8]) -> Result<()>;

    /// Work: shows the value under a key once it was copied out of the store; tells
    /// whether there is one.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn get(&mut self, key: &[u8], visit: &mut dyn FnMut(&[u8])) -> Result<bool>;

    /// Work: shows keys and values, copied out of the store, from a key on in their order
    /// until told to stop.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn scan(&mut self, from: &[u8], visit: &mut VisitRecord<'_>) -> Result<()>;

    /// The largest key.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn last_key(&mut self) -> Result<Option<Vec<u8>>>;

    /// How many keys there are.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn rows(&mut self) -> Result<u64>;

    /// Bytes of stable memory filled, free space inside of pages and nodes included.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn stored_bytes(&mut self) -> Result<u64>;

    /// Bytes of the virtual memories that the values are in, or of stable memory where
    /// there are none.
    fn virtual_bytes(&self) -> u64;

    /// Bytes of heap that caches hold.
    fn cache_bytes(&self) -> u64 {
        0
    }

    /// How many units of storage are in use; asked between operations, not measured.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn allocated_units(&mut self) -> Result<u64>;
}
