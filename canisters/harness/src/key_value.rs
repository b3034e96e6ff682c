use crate::presence;
use stablebench_protocol::Result;
use stablebench_workload::{ContentDigest, Ids};
use std::ops::ControlFlow;

/// An engine: rows of an id and a text.
///
/// [`Host`](crate::Host) calls the methods of a message in this order:
/// `prepare`, `admit`, what looks at ids, `settle`, and then one method of work, measured.
/// The work can rely on the checks: ids to insert are not there, ids to update or
/// delete are there.
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
    fn admit(&self, ids: Ids, payload_bytes: u32) -> Result<()>;

    /// Undoes what the checks did to the state the message found, such as opening a
    /// connection that was closed: cold work stays cold.
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
    fn first_present(&mut self, ids: Ids) -> Result<Option<u64>> {
        presence::first_present(self, ids)
    }

    /// The smallest of the ids that is not there.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn first_missing(&mut self, ids: Ids) -> Result<Option<u64>> {
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

    /// Bytes of stable memory filled, free space inside it included.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn stored_bytes(&mut self) -> Result<u64>;

    /// Work: adds rows.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was added.
    fn insert(&mut self, ids: Ids, payload: &str) -> Result<()>;

    /// Work: looks rows up one by one and copies their texts; answers how many there are.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn read(&mut self, ids: Ids) -> Result<u64>;

    /// Work: copies the ids and texts of the first `limit` rows; answers how many there are.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn scan(&mut self, limit: u64) -> Result<u64>;

    /// Work: replaces the texts of rows.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was changed.
    fn update(&mut self, ids: Ids, payload: &str) -> Result<()>;

    /// Work: removes rows.
    ///
    /// # Errors
    ///
    /// The engine's; then no row was removed.
    fn delete(&mut self, ids: Ids) -> Result<()>;

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
