//! Jobs of a plan: a suite says what a canister does, and the runner splits it into messages.
//!
//! ```text
//!   Job ── choose(operations, seed) ──→ Chosen ── part(from, count) ──→ a message
//! ```

use std::fmt;
use std::sync::Arc;

use anyhow::Result;
use stablebench_protocol::{self as protocol, Part, SuiteJob};

use crate::observer::Observer;

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
    fn part(&self, from: u64, count: u64, each: bool) -> Part;

    /// Returns the part with all operations.
    fn whole(&self) -> Part;

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
    fn pieces(&self, _from: u64) -> Vec<(String, Part)> {
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
    fn part(&self, from: u64, count: u64, each: bool) -> Part {
        Part { job: self.job.clone(), seed: self.seed, from, count, each }
    }

    fn whole(&self) -> Part {
        self.part(0, self.operations, false)
    }

    fn tables(&self) -> protocol::Job {
        self.job.clone()
    }
}
