//! Rows of an id and a text in any engine of keys and values.

use super::{Done, Failed, KeyValue, StoredRow, VisitRow, Writes};
use crate::work::{IdSet, Selected};
use stablebench_harness::Records;
use stablebench_protocol::{Error, Result};
use stablebench_workload::Amount;
use std::hint::black_box;
use std::ops::ControlFlow;

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
