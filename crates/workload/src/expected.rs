//! What a suite's work must find and leave, computed apart from any engine.

use stablebench_protocol::{Digest, Part};

/// What a part of a job must find.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Expected {
    /// Rows written, found or removed.
    pub rows: u64,
    /// Bytes of them that were written or read.
    pub bytes: u64,
    /// What is read; nothing where the part writes.
    pub results: Option<Digest>,
}

/// The tables of a lane, in memory.
pub trait Tables: Send {
    /// Does a part of a job.
    fn perform(&mut self, part: &Part) -> Expected;

    /// All rows.
    fn content(&self) -> Digest;

    /// The same once more.
    fn fork(&self) -> Box<dyn Tables>;
}
