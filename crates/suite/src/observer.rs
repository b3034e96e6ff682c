//! Work whose results no model knows: the answers to its messages are observed instead.
//!
//! ```text
//!   message ── Kept, as the canister keeps it ──→ Observer ── Observed ──→ a case each
//! ```

use anyhow::Result;
use stablebench_protocol::{self as protocol, Digest, PhaseCost};
pub use stablebench_replica::decoding::decode_one;

use crate::cost::PageCosts;

/// A message that was executed.
#[derive(Clone, Copy)]
pub struct Message<'a> {
    /// The number of its first operation.
    pub from: u64,
    /// The number of its operations.
    pub count: u64,
    /// The parts that the canister keeps of it.
    pub kept: &'a [Vec<u8>],
    /// The canister's readings of its counter, each with the cost of pages up to it; none if the
    /// replica does not know them.
    pub readings: &'a [(u64, PageCosts)],
    /// Its cycles.
    pub cycles: u64,
}

/// An observer of a step's messages.
pub trait Observer {
    /// Returns the job whose kept bytes it needs for each message.
    fn kept(&self) -> protocol::Job;

    /// Takes in a message.
    ///
    /// # Errors
    ///
    /// If its answers are wrong, which ends the run.
    fn message(&mut self, message: Message<'_>) -> Result<()>;

    /// Returns `true` if it needs the content of all tables at the end.
    fn reads_content(&self) -> bool {
        false
    }

    /// Takes in the content at the end.
    ///
    /// # Errors
    ///
    /// If it is wrong, which ends the run.
    fn content(&mut self, _: Digest) -> Result<()> {
        Ok(())
    }

    /// Returns the rows of tables: the step's own first, then its further rows in their order. A step
    /// that prepares has none.
    ///
    /// # Errors
    ///
    /// If they cannot be described.
    fn rows(self: Box<Self>) -> Result<Vec<Observed>>;
}

/// A row of a table.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    /// The instructions of each of its operations. Without any, it was not executed.
    pub costs: Vec<u64>,
    /// The part of them that is for pages, if the replica reports it.
    pub pages: Option<PageCosts>,
    /// The rows that were found or changed.
    pub rows: u64,
    /// The digest of what was found, or of all tables at the end.
    pub digest: Option<Digest>,
    /// The cycles of the messages, in proportion to the instructions.
    pub cycles: u64,
    /// The instructions by phase.
    pub phases: Vec<PhaseCost>,
    /// The most expensive operation in words.
    pub worst: Option<String>,
}
