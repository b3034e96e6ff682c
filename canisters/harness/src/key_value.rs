use crate::presence;
use stablebench_protocol::{Error, Result};
use stablebench_workload::{Amount, ContentDigest, IdSet, Selected};
use std::ops::ControlFlow;

/// An engine: rows of an id and a text.
///
/// [`Host`](crate::Host) calls the methods of a message in this order:
/// `prepare`, `admit`, what looks at ids, `settle`, and then the methods of work, measured.
/// The work can rely on the checks: ids to insert are not there, ids to update or delete
/// are there, ids to insert or delete are named once.
pub trait KeyValue {
    /// Makes ready what the work must not pay for, such as creating a table.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn prepare(&mut self) -> Result<()>;

    /// Refuses ids and payloads that the engine cannot hold. Changes nothing.
    ///
    /// # Errors
    ///
    /// Which of the ids, or that the payload, is beyond the engine.
    fn admit(&self, ids: &IdSet, payload_bytes: u32) -> Result<()>;

    /// Undoes what the checks did to the state the message found, such as opening what
    /// was closed: cold work stays cold.
    fn settle(&mut self) {}

    /// Shows the ids that are there, ascending, from `from` on until told to stop.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn walk(&mut self, from: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()>;

    /// The smallest of the ids that is there.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn first_present(&mut self, ids: &IdSet) -> Result<Option<u64>> {
        presence::first_present(self, ids)
    }

    /// The smallest of the ids that is not there.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn first_missing(&mut self, ids: &IdSet) -> Result<Option<u64>> {
        presence::first_missing(self, ids)
    }

    /// The largest id that is there.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn last_id(&mut self) -> Result<Option<u64>>;

    /// How many rows there are.
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

    /// Bytes of the virtual memories that the rows are in, or of stable memory where there
    /// are none.
    fn virtual_bytes(&self) -> u64;

    /// Bytes of heap that the page cache holds. Opens nothing: what is closed holds none.
    fn cache_bytes(&self) -> u64 {
        0
    }

    /// Work: what `work` does, in one transaction where the engine has such.
    ///
    /// # Errors
    ///
    /// The engine's, and those of the work.
    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done;

    /// Work: looks rows up one by one and copies their texts; answers those that are there.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn read(&mut self, rows: Selected<'_>) -> Result<Amount>;

    /// Work: from each id on, copies the ids and texts of at most `rows` rows, in the order
    /// of ids; answers those that are there.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount>;

    /// Work: copies the ids and texts of the first `limit` rows; answers those that are
    /// there.
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

    /// Adds at most `limit` rows from `position` on to the digest; 0 is the beginning.
    /// Answers the next position, or nothing where no row is left.
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

    /// Removes all rows.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn reset(&mut self) -> Result<()>;
}

/// How a transaction ended.
pub type Done = std::result::Result<(), Failed>;

/// A transaction that failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failed {
    /// Why.
    pub because: Error,
    /// Whether nothing of it is left. An engine without transactions undoes the call that
    /// failed by itself, and none before.
    pub undone: bool,
}

impl Failed {
    /// An engine without transactions failed.
    pub fn kept(because: Error) -> Self {
        Self { because, undone: false }
    }

    /// A transaction was rolled back.
    pub fn undone(because: Error) -> Self {
        Self { because, undone: true }
    }
}

/// What changes an engine's rows, inside of a transaction where the engine has such.
pub trait Writes {
    /// How many units of storage are in use: pages of a database, nodes of a tree, or what
    /// stable memory grows by. Asked between operations of work, but not measured.
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

    /// Work: adds rows, or replaces their texts where they are there.
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
