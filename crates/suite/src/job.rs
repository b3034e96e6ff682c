//! Jobs of a plan: a suite says what a canister does, and the runner splits it into messages. If no
//! model knows the results, the answers to the messages are observed instead.
//!
//! ```text
//!   Job ── choose(operations, seed) ──→ Chosen ── part(from, count) ──→ a message
//!
//!   message ── Kept, as the canister keeps it ──→ Observer ── Observed ──→ a case each
//! ```

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use stablebench_protocol::{self as protocol, Digest, JobPart, PhaseCost, SuiteJob};

use crate::cost::PageCosts;

pub use stablebench_replica::decoding::decode_one;

/// Work of a canister. The choices in it follow from the seed of a run.
#[derive(Clone)]
pub struct Job(Arc<dyn Work>);

/// A kind of job.
pub trait Work: fmt::Debug + Send + Sync {
    /// Makes the choices of the job with this number of operations.
    ///
    /// # Errors
    ///
    /// If there is no such choice.
    fn choose(&self, operations: u64, seed: u64) -> Result<Box<dyn Chosen>>;

    /// Returns `false` if the canister has the same content for every seed.
    fn is_random(&self) -> bool {
        true
    }

    /// Returns the payload size of each row in bytes, which the canister is set to after it is
    /// installed, if the job writes rows.
    fn payload(&self) -> Option<u32> {
        None
    }

    /// Returns the largest number of operations on a table of `rows` rows, if one message could have
    /// any number of them.
    fn most_operations(&self, _rows: u64) -> Option<u64> {
        None
    }
}

/// A job with its choices, as canisters take it.
pub trait Chosen {
    /// Returns the part that one message executes. If `each` is true, each operation is measured as
    /// well.
    fn part(&self, from: u64, count: u64, each: bool) -> JobPart;

    /// Returns the part with all operations.
    fn whole(&self) -> JobPart;

    /// Returns a short job on the same tables.
    fn tables(&self) -> protocol::Job;

    /// Returns the ids of the rows that it selects, if it selects rows by their ids.
    ///
    /// # Errors
    ///
    /// If the ids are not valid.
    fn ids(&self) -> Result<Option<Vec<u64>>> {
        Ok(None)
    }

    /// Returns `true` if it is one operation of a canister, whatever its number of operations.
    fn is_single(&self) -> bool {
        false
    }

    /// Returns what looks at the answers to its messages, if no model knows them.
    fn observer(&self) -> Option<Box<dyn Observer>> {
        None
    }

    /// Returns `true` if it configures the engine, which must not be done before.
    fn configures(&self) -> bool {
        false
    }

    /// Returns `true` if it prepares data, and the limits on instructions need not hold for it.
    fn is_unlimited(&self) -> bool {
        false
    }

    /// Returns what the message from this operation on does, piece by piece, each with its place in the
    /// user's files; none if it comes from none.
    fn pieces(&self, _from: u64) -> Vec<(String, JobPart)> {
        Vec::new()
    }
}

impl Job {
    /// A job that makes choices.
    pub fn new(work: impl Work + 'static) -> Self {
        Self(Arc::new(work))
    }

    /// A job that canisters take as it is.
    pub fn of<J: SuiteJob>(job: &J) -> Self {
        Self::new(Fixed(protocol::Job::new(job)))
    }
}

impl std::ops::Deref for Job {
    type Target = dyn Work;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A job whose choices a canister makes from the seed in its messages.
#[derive(Clone, Debug)]
struct Fixed(protocol::Job);

/// The same with the seed.
struct Seeded {
    job: protocol::Job,
    seed: u64,
    operations: u64,
}

impl Work for Fixed {
    fn choose(&self, operations: u64, seed: u64) -> Result<Box<dyn Chosen>> {
        Ok(Box::new(Seeded { job: self.0.clone(), seed, operations }))
    }
}

impl Chosen for Seeded {
    fn part(&self, from: u64, count: u64, each: bool) -> JobPart {
        JobPart { job: self.job.clone(), seed: self.seed, from, count, each }
    }

    fn whole(&self) -> JobPart {
        self.part(0, self.operations, false)
    }

    fn tables(&self) -> protocol::Job {
        self.job.clone()
    }
}

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
