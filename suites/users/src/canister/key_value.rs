//! The engines of the suite users: rows of an id and a text.

use crate::work::{IdSet, Selected};
use stablebench_protocol::{Error, Result};
use stablebench_workload::{Amount, ContentDigest};
use std::ops::ControlFlow;

/// Starting to visit rows costs about as much as visiting this number of rows.
const SKIPPED_BEFORE_RESTART: u32 = 64;

/// A row as it is visited.
#[derive(Clone, Copy, Debug)]
pub struct StoredRow<'a> {
    /// Its position: the id, except in a log, which has positions of its own.
    pub position: u64,
    /// Its id.
    pub id: u64,
    /// Its text.
    pub payload: &'a [u8],
}

/// A visitor of rows, which decides whether the next row is visited.
pub type VisitRow<'a> = dyn FnMut(StoredRow<'_>) -> ControlFlow<()> + 'a;

/// An engine of rows with ids and texts.
///
/// Methods that are called by hand use an engine in this order: `prepare`, `admit`, methods that
/// look at ids, `settle`, and then the methods of work, which are measured. There, the work can
/// rely on the checks: ids to insert do not exist, ids to update or delete exist, ids to insert or
/// delete are listed once. In jobs, the caller ensures that.
pub trait KeyValue {
    /// Prepares what is not part of the work, such as creating a table.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn prepare(&mut self) -> Result<()>;

    /// Refuses ids and payloads that the engine cannot store. Changes nothing.
    ///
    /// # Errors
    ///
    /// The first id, or the payload, that the engine cannot store.
    fn admit(&self, ids: &IdSet, payload_bytes: u32) -> Result<()>;

    /// Restores the state before the checks, such as closing what they opened: cold work stays
    /// cold.
    fn settle(&mut self) {}

    /// Visits rows in the engine's order, starting at a position.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()>;

    /// Returns the smallest of the ids that exists.
    ///
    /// Ids asked for and ids that exist are merged. If many existing ids are between two that are
    /// asked for, the visit starts again at the next one asked for. So the number of ids asked for
    /// bounds the cost, however dense the rows are.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn first_present(&mut self, ids: &IdSet) -> Result<Option<u64>> {
        let mut next = Some(ids.first());
        while let Some(from) = next.take() {
            let mut found = None;
            let mut skipped = 0;
            self.visit(from, &mut |row| match ids.at_or_after(row.id) {
                None => ControlFlow::Break(()),
                Some(member) if member == row.id => {
                    found = Some(row.id);
                    ControlFlow::Break(())
                }
                Some(_) if skipped < SKIPPED_BEFORE_RESTART => {
                    skipped += 1;
                    ControlFlow::Continue(())
                }
                Some(member) => {
                    next = Some(member);
                    ControlFlow::Break(())
                }
            })?;
            if found.is_some() {
                return Ok(found);
            }
        }
        Ok(None)
    }

    /// Returns the smallest of the ids that does not exist; see
    /// [`first_present`](Self::first_present).
    ///
    /// # Errors
    ///
    /// The engine's.
    fn first_missing(&mut self, ids: &IdSet) -> Result<Option<u64>> {
        let mut wanted = ids.iter().peekable();
        while let Some(from) = wanted.peek().copied() {
            let mut progress = false;
            let mut skipped = 0;
            self.visit(from, &mut |row| match wanted.peek() {
                Some(next) if *next == row.id => {
                    wanted.next();
                    progress = true;
                    skipped = 0;
                    ControlFlow::Continue(())
                }
                Some(next) if *next > row.id && skipped < SKIPPED_BEFORE_RESTART => {
                    skipped += 1;
                    ControlFlow::Continue(())
                }
                _ => ControlFlow::Break(()),
            })?;
            if !progress {
                return Ok(Some(from));
            }
        }
        Ok(None)
    }

    /// Returns the largest id.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn last_id(&mut self) -> Result<Option<u64>>;

    /// Returns the number of rows.
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

    /// Returns the bytes of the virtual memories that contain the rows, or of stable memory if
    /// there are none.
    fn virtual_bytes(&self) -> u64;

    /// Returns the bytes of heap of the page cache. Opens nothing: what is closed has no cache.
    fn cache_bytes(&self) -> u64 {
        0
    }

    /// Work: does `work` in one transaction, if the engine has transactions.
    ///
    /// # Errors
    ///
    /// The engine's, and those of the work.
    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done;

    /// Work: looks rows up one by one and copies their texts. Returns the size of those that exist.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn read(&mut self, rows: Selected<'_>) -> Result<Amount>;

    /// Work: starting at each id, copies the ids and texts of at most `rows` rows in the order of
    /// ids. Returns the size of those that exist.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount>;

    /// Work: copies the ids and texts of the first `limit` rows. Returns the size of those that
    /// exist.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn scan(&mut self, limit: u64) -> Result<Amount>;

    /// Work: counts the rows.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn count(&mut self) -> Result<u64>;

    /// Removes all rows.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn reset(&mut self) -> Result<()>;
}

/// Adds at most `limit` rows, starting at a position, to a digest. Returns the position of the next
/// row, if there is one.
///
/// # Errors
///
/// The engine's.
pub fn digest_rows(
    engine: &mut dyn KeyValue,
    position: u64,
    limit: u64,
    digest: &mut ContentDigest,
) -> Result<Option<u64>> {
    let (mut left, mut next) = (limit, None);
    engine.visit(position, &mut |row| {
        if left == 0 {
            next = Some(row.position);
            return ControlFlow::Break(());
        }
        left -= 1;
        digest.add(row.id, row.payload);
        ControlFlow::Continue(())
    })?;
    Ok(next)
}

/// The outcome of a transaction.
pub type Done = std::result::Result<(), Failed>;

/// A transaction that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// The reason.
    pub because: Error,
    /// True if the engine has undone all of it. An engine without transactions undoes the call that
    /// failed, and none before.
    pub undone: bool,
}

impl Failed {
    /// A failure of an engine without transactions.
    pub fn kept(because: Error) -> Self {
        Self { because, undone: false }
    }

    /// A transaction that was rolled back.
    pub fn undone(because: Error) -> Self {
        Self { because, undone: true }
    }
}

/// Changes of an engine's rows, in a transaction if the engine has them.
pub trait Writes {
    /// Returns the number of units of storage in use: pages of a database, nodes of a tree, or wasm
    /// pages of stable memory. Called between operations of work, and not measured.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn allocated_units(&mut self) -> Result<u64>;

    /// Work: adds rows.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was added, unless the transaction undoes that.
    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()>;

    /// Work: adds rows, or replaces their texts if they exist.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was changed, unless the transaction undoes that.
    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()>;

    /// Work: replaces the texts of rows.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was changed, unless the transaction undoes that.
    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()>;

    /// Work: removes rows.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was removed, unless the transaction undoes that.
    fn delete(&mut self, rows: Selected<'_>) -> Result<()>;
}
