//! What the works of several suites share, and the interface of the models that check them.
//!
//! * [`random`]: a seeded generator, and random choices of rows;
//! * [`digest`]: a fingerprint of rows, the same for every engine and for the models;
//! * [`Model`]: the interface of a suite's model;
//! * [`digits`]: keys of digits, for engines of keys and values;
//! * [`sql`]: work in SQL.
//!
//! Everything here runs on the host and inside canisters. The work of a suite, and its model, are in the
//! suite's own crate.

pub mod digest;
pub mod digits;
pub mod random;
pub mod sql;

pub use digest::ContentDigest;
pub use random::Rng;

use stablebench_protocol::{Digest, Job, JobPart, Result};
use std::ops::AddAssign;

/// The size of the work of an operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// Rows written, found, removed or counted.
    pub rows: u64,
    /// Bytes of the rows' texts that were written or read.
    pub bytes: u64,
}

impl AddAssign for Amount {
    #[inline]
    fn add_assign(&mut self, other: Self) {
        self.rows += other.rows;
        self.bytes += other.bytes;
    }
}

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

/// The tables of a suite, in memory: a model that checks engines. The results of the work and the
/// content of the tables are computed independently of any engine.
pub trait Model: Send {
    /// Does a part of a job.
    ///
    /// # Errors
    ///
    /// If the job is invalid, such as one that inserts a row twice; then nothing changes.
    fn execute(&mut self, part: &JobPart) -> Result<Expected>;

    /// The digest of all rows.
    fn content(&self) -> Digest;

    /// The rows around those that the last part, `part`, has written. They show damage near those
    /// without reading all others. Nothing if the model cannot tell where an engine has them.
    fn neighbours(&self, _part: &JobPart) -> Option<Neighbours> {
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
