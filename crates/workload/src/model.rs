//! The models that check engines: the results of a suite's work and the content of its tables, computed
//! independently of any engine.

use stablebench_protocol::{Digest, Job, Part, Result};

/// The expected results of a part of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// The number of rows written, found or removed.
    pub rows: u64,
    /// Bytes of them that are written or read.
    pub bytes: u64,
    /// The digest of what is read; nothing if the part writes.
    pub results: Option<Digest>,
}

/// Neighbouring rows, in the order in which an engine reads them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Neighbours {
    /// Their beginning, as `DigestPart::position`.
    pub position: u64,
    /// Their number, and the digest of all of them.
    pub digest: Digest,
}

/// The tables of a suite, in memory.
pub trait Model: Send {
    /// Does a part of a job.
    ///
    /// # Errors
    ///
    /// If the job is invalid, such as one that inserts a row twice; then nothing changes.
    fn execute(&mut self, part: &Part) -> Result<Expected>;

    /// The digest of all rows.
    fn content(&self) -> Digest;

    /// The rows around those that the last part, `part`, has written. They show damage near those
    /// without reading all others. Nothing if the model cannot tell where an engine has them.
    fn neighbours(&self, _part: &Part) -> Option<Neighbours> {
        None
    }

    /// The digest of the rows from position `from` up to the one before `to`, or to the last. Nothing
    /// if the engine of the job keeps anything but a cache on the heap, or reads rows in an order
    /// that the model does not know.
    fn between(&self, _tables: &Job, _from: u64, _to: Option<u64>) -> Option<Digest> {
        None
    }

    /// A copy that changes independently.
    fn fork(&self) -> Box<dyn Model>;
}
