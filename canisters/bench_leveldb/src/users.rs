//! The rows of the suite users: [`ById`] on a database that, like a connection, is opened by
//! the first work that needs it.

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
}

impl Users {
    pub fn new(leveldb: Leveldb) -> Self {
        Self { rows: ById(leveldb), was_closed: false }
    }

    pub fn leveldb(&mut self) -> &mut Leveldb {
        &mut self.rows.0
    }
}

impl KeyValue for Users {
    fn prepare(&mut self) -> Result<()> {
        // Opening creates it, as a table is created.
        self.rows.0.create()?;
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
        self.rows.rows()
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        self.rows.stored_bytes()
    }

    fn virtual_bytes(&self) -> u64 {
        self.rows.virtual_bytes()
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        self.rows.transaction(work)
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
        self.rows.reset()
    }
}
