//! Engines of keys and values, which get every key-value workload.

use crate::{Done, Failed, KeyValue, StoredRow, VisitRow, Writes};
use stablebench_protocol::{Error, Result};
use stablebench_workload::{Amount, IdSet, Selected};
use std::hint::black_box;
use std::ops::ControlFlow;

/// A visitor of keys and values, which decides whether the next pair is visited.
pub type VisitRecord<'a> = dyn FnMut(&[u8], &[u8]) -> ControlFlow<()> + 'a;

/// An engine: values under keys, both bytes, in the order of the keys.
///
/// An engine that implements this trait gets every key-value workload: [`ById`] makes rows of an id
/// and a text from it, for the suite users, and [`ByKey`](crate::ByKey) items, for the suite cuckoo.
/// The suite db-bench uses it as it is. Writes are between `begin` and `commit`. Only methods
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

/// Rows of an id and a text in any engine of keys and values.
///
/// A key is the id in 8 bytes, big-endian: the order of keys is the order of ids.
#[derive(Clone, Debug, Default)]
pub struct ById<R>(
    /// The engine.
    pub R,
);

fn key(id: u64) -> [u8; 8] {
    id.to_be_bytes()
}

/// The id of a key; nothing if it has another length.
fn id(key: &[u8]) -> Option<u64> {
    key.try_into().ok().map(u64::from_be_bytes)
}

impl<R: Records> ById<R> {
    fn put(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        rows.try_each(|id| self.0.put(&key(id), payload.as_bytes()))
    }

    /// Copies at most `limit` rows, starting at an id.
    fn copy_rows(&mut self, from: u64, limit: u64) -> Result<Amount> {
        let mut read = Amount::default();
        if limit > 0 {
            self.0.scan(&key(from), &mut |key, payload| {
                black_box((key, payload));
                read += Amount { rows: 1, bytes: payload.len() as u64 };
                if read.rows < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
            })?;
        }
        Ok(read)
    }
}

impl<R: Records> KeyValue for ById<R> {
    fn prepare(&mut self) -> Result<()> {
        self.0.prepare()
    }

    fn admit(&self, _: &IdSet, _: u32) -> Result<()> {
        Ok(())
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.0.scan(&key(position), &mut |key, payload| match id(key) {
            Some(id) => visit(StoredRow { position: id, id, payload }),
            None => ControlFlow::Break(()),
        })
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok(self.0.last_key()?.as_deref().and_then(id))
    }

    fn rows(&mut self) -> Result<u64> {
        self.0.rows()
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        self.0.stored_bytes()
    }

    fn virtual_bytes(&self) -> u64 {
        self.0.virtual_bytes()
    }

    fn cache_bytes(&self) -> u64 {
        self.0.cache_bytes()
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        let outcome = self.0.begin().and_then(|()| work(self)).and_then(|()| self.0.commit());
        outcome.map_err(|because| Failed { undone: self.0.rollback(&because), because })
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        let mut found = Amount::default();
        rows.try_each(|id| {
            self.0.get(&key(id), &mut |payload| {
                black_box(payload);
                found += Amount { rows: 1, bytes: payload.len() as u64 };
            })?;
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        let mut found = Amount::default();
        from.try_each(|id| {
            found += self.copy_rows(id, rows)?;
            Ok::<_, Error>(())
        })?;
        Ok(found)
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        self.copy_rows(0, limit)
    }

    fn count(&mut self) -> Result<u64> {
        self.0.rows()
    }

    fn reset(&mut self) -> Result<()> {
        self.0.clear()
    }
}

impl<R: Records> Writes for ById<R> {
    fn allocated_units(&mut self) -> Result<u64> {
        self.0.allocated_units()
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.put(rows, payload)
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.put(rows, payload)
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.put(rows, payload)
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        rows.try_each(|id| self.0.delete(&key(id)))
    }
}
