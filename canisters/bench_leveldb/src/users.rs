//! The rows of the suite users: [`ById`] on a database that, like a connection, is opened by
//! the first work that needs it.
//!
//! LevelDB has no number of rows. The checks before work say which rows are new and which are
//! there, so that one is kept, on the heap; where it is not known, after an upgrade or rows
//! that were written whether or not they were there, they are counted when it is asked for.
//! Work that counts always counts.

use crate::engine::Leveldb;
use stablebench_harness::{ById, Done, KeyValue, Writes};
use stablebench_protocol::Result;
use stablebench_workload::{Amount, ContentDigest, IdSet, Selected};
use std::ops::ControlFlow;

/// The engine.
pub struct Users {
    rows: ById<Leveldb>,
    /// Whether the message found the database closed.
    was_closed: bool,
    /// How many rows there are, where that is known.
    number: Option<u64>,
}

impl Users {
    pub fn new(leveldb: Leveldb) -> Self {
        Self { rows: ById(leveldb), was_closed: false, number: None }
    }

    pub fn leveldb(&mut self) -> &mut Leveldb {
        &mut self.rows.0
    }
}

impl KeyValue for Users {
    fn prepare(&mut self) -> Result<()> {
        // Opening creates it, as a table is created.
        if self.rows.0.create()? {
            self.number = Some(0);
        }
        self.was_closed = !self.rows.0.is_open();
        Ok(())
    }

    fn admit(&self, ids: &IdSet, payload_bytes: u32) -> Result<()> {
        self.rows.admit(ids, payload_bytes)
    }

    fn settle(&mut self) {
        if self.was_closed {
            // Nothing was written: there is nothing that closing could fail to keep.
            let _ = self.rows.0.close();
        }
    }

    fn walk(&mut self, from: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        self.rows.walk(from, visit)
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        self.rows.last_id()
    }

    fn rows(&mut self) -> Result<u64> {
        let number = match self.number {
            Some(number) => number,
            None => self.rows.rows()?,
        };
        self.number = Some(number);
        Ok(number)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        self.rows.stored_bytes()
    }

    fn virtual_bytes(&self) -> u64 {
        self.rows.virtual_bytes()
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        let mut number = self.number.take();
        let done =
            self.rows.transaction(&mut |rows| work(&mut Counted { rows, number: &mut number }));
        if done.is_ok() {
            self.number = number;
        }
        done
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        self.rows.read(rows)
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        self.rows.range(from, rows)
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        KeyValue::scan(&mut self.rows, limit)
    }

    fn count(&mut self) -> Result<u64> {
        self.rows.count()
    }

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        self.rows.digest(position, limit, digest)
    }

    fn reset(&mut self) -> Result<()> {
        self.rows.reset()?;
        self.number = Some(0);
        Ok(())
    }
}

/// Writes that are counted.
struct Counted<'a> {
    rows: &'a mut dyn Writes,
    number: &'a mut Option<u64>,
}

impl Writes for Counted<'_> {
    fn allocated_units(&mut self) -> Result<u64> {
        self.rows.allocated_units()
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        *self.number = self.number.map(|number| number + rows.rows());
        self.rows.insert(rows, payload)
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        *self.number = None;
        self.rows.overwrite(rows, payload)
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.rows.update(rows, payload)
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        *self.number = self.number.map(|number| number.saturating_sub(rows.rows()));
        self.rows.delete(rows)
    }
}
