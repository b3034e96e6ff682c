//! The rows of the suite users: [`ById`] on a database that, like a connection, is opened when it is
//! needed.
//!
//! LevelDB does not store its number of rows. Inserted rows do not exist before and deleted rows do, so
//! that the number is kept on the heap. After an upgrade, or after rows were written whether or not
//! they existed, it is unknown and counted when it is needed. Work that counts always counts.

use crate::engine::Leveldb;
use stablebench_protocol::Result;
use stablebench_suite_users::canister::{ById, Done, KeyValue, VisitRow, Writes};
use stablebench_suite_users::work::{IdSet, Selected};
use stablebench_workload::Amount;

/// The rows.
pub struct Users {
    rows: ById<Leveldb>,
    /// True if the database was closed before the message.
    was_closed: bool,
    /// The number of rows, if it is known.
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
        // Opening creates it, like a table.
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
            // Nothing was written, so that closing has nothing to lose.
            let _ = self.rows.0.close();
        }
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.rows.visit(position, visit)
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

    fn reset(&mut self) -> Result<()> {
        self.rows.reset()?;
        self.number = Some(0);
        Ok(())
    }
}

/// Writes that update the number of rows.
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
