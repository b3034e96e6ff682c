//! Suites: how a canister does the jobs of each, within the limits of a message.

use crate::instructions;
use stablebench_protocol::{
    Digest, DigestPart, Engine, Error, Inspected, Job, JobPart, KeptPart, PartCost, PhaseCost,
    Result, SuiteJob,
};
use stablebench_workload::ContentDigest;

/// The maximum number of operations whose costs fit into a reply: at 16 bytes each, they leave room
/// in its 2 MiB.
pub const MAX_EACH: u64 = 100_000;

/// The maximum number of rows of a message, however short.
pub const MAX_MESSAGE_ROWS: u64 = 10_000_000;

/// The maximum number of bytes of rows of a message: half of what a message may write.
pub const MAX_MESSAGE_BYTES: u64 = 1 << 30;

/// An id and a length, as an engine without any overhead would store them.
const ROW_OVERHEAD_BYTES: u64 = 12;

/// Does prepared work, measured.
pub type Run<C> = Box<dyn Fn(&mut C) -> Result<PartCost>>;

/// Work that is prepared: everything that follows from the job and the seed is on the heap.
pub struct Staged<C> {
    /// Does the work.
    pub run: Run<C>,
    /// True if the work may change rows.
    pub writes: bool,
}

impl<C> Staged<C> {
    /// Work that may change rows.
    pub fn writing(run: impl Fn(&mut C) -> Result<PartCost> + 'static) -> Self {
        Self { run: Box::new(run), writes: true }
    }

    /// Work that may change rows or does not.
    pub fn new(writes: bool, run: impl Fn(&mut C) -> Result<PartCost> + 'static) -> Self {
        Self { run: Box::new(run), writes }
    }
}

/// A suite, implemented for the type of its jobs.
pub trait Suite<C>: SuiteJob {
    /// Prepares a part of the job. The engine is not touched.
    ///
    /// # Errors
    ///
    /// If no canister could do it.
    fn stage(self, part: &JobPart) -> Result<Staged<C>>;

    /// Returns the digest of what a part of the job reads; nothing if it writes.
    ///
    /// # Errors
    ///
    /// If the canister cannot do it.
    fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>>;

    /// Does a part of the job and returns where its instructions go.
    ///
    /// # Errors
    ///
    /// If the suite does not support it, or the canister cannot do it.
    fn phases(&self, _: &mut C, _: &JobPart) -> Result<Vec<PhaseCost>> {
        let operation = format!("report phases for the suite {}", Self::SUITE);
        Err(Error::Unsupported { engine: Engine::SQLITE, operation })
    }

    /// Adds at most `limit` rows of the job's tables to a digest, starting at a position. Returns the
    /// position of the next row, if there is one.
    ///
    /// # Errors
    ///
    /// If the tables do not exist.
    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>>;

    /// Returns the storage that the job's tables take.
    ///
    /// # Errors
    ///
    /// If they do not exist.
    fn inspect(&self, canister: &mut C) -> Result<Inspected>;

    /// Returns a part of what the suite keeps for the caller, from a position on. It is asked in a
    /// query, whose changes are dropped.
    ///
    /// # Errors
    ///
    /// If the suite keeps nothing, or the canister cannot do it.
    fn kept(&self, _: &mut C, _position: u64) -> Result<KeptPart> {
        let operation = format!("keep answers for the suite {}", Self::SUITE);
        Err(Error::Unsupported { engine: Engine::SQLITE, operation })
    }
}

type Content<C> = fn(&mut C, &Job, u64, u64, &mut ContentDigest) -> Result<Option<u64>>;

/// A suite of a canister: its name, and its functions for jobs that are not decoded yet.
pub struct SuiteEntry<C> {
    name: &'static str,
    stage: fn(&JobPart) -> Result<Staged<C>>,
    results: fn(&mut C, &JobPart) -> Result<Option<Digest>>,
    phases: fn(&mut C, &JobPart) -> Result<Vec<PhaseCost>>,
    content: Content<C>,
    inspect: fn(&mut C, &Job) -> Result<Inspected>,
    kept: fn(&mut C, &Job, u64) -> Result<KeptPart>,
}

impl<C> SuiteEntry<C> {
    /// The suite of a type of jobs.
    pub const fn of<J: Suite<C>>() -> Self {
        Self {
            name: J::SUITE,
            stage: |part| part.job.decode::<J>()?.stage(part),
            results: |canister, part| part.job.decode::<J>()?.results(canister, part),
            phases: |canister, part| part.job.decode::<J>()?.phases(canister, part),
            content: |canister, job, position, limit, digest| {
                job.decode::<J>()?.content(canister, position, limit, digest)
            },
            inspect: |canister, job| job.decode::<J>()?.inspect(canister),
            kept: |canister, job, position| job.decode::<J>()?.kept(canister, position),
        }
    }

    /// Finds the suite of a job.
    ///
    /// # Errors
    ///
    /// [`Error::SuiteUnavailable`].
    pub fn find<'a>(suites: &'a [Self], job: &Job) -> Result<&'a Self> {
        let suite = suites.iter().find(|suite| suite.name == job.suite);
        suite.ok_or_else(|| Error::SuiteUnavailable { suite: job.suite.clone() })
    }

    /// Prepares a part.
    ///
    /// # Errors
    ///
    /// If no canister could do it.
    pub fn stage(&self, part: &JobPart) -> Result<Staged<C>> {
        check(part)?;
        (self.stage)(part)
    }

    /// Returns the digest of what a part reads.
    ///
    /// # Errors
    ///
    /// If the canister cannot do it.
    pub fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        check(part)?;
        (self.results)(canister, part)
    }

    /// Does a part and returns where its instructions go.
    ///
    /// # Errors
    ///
    /// If the canister cannot do it.
    pub fn phases(&self, canister: &mut C, part: &JobPart) -> Result<Vec<PhaseCost>> {
        check(part)?;
        (self.phases)(canister, part)
    }

    /// Continues the digest of all rows of a job's tables by at most `limit` rows.
    ///
    /// # Errors
    ///
    /// If the digest is done, or the tables do not exist.
    pub fn content(
        &self,
        canister: &mut C,
        job: &Job,
        part: DigestPart,
        limit: u64,
    ) -> Result<DigestPart> {
        if limit == 0 {
            return Err(Error::NoRows);
        }
        if part.done {
            return Err(Error::DigestDone);
        }
        let mut digest = ContentDigest::from(part.digest);
        let next = (self.content)(canister, job, part.position, limit, &mut digest)?;
        Ok(DigestPart {
            digest: digest.value(),
            position: next.unwrap_or(0),
            done: next.is_none(),
            message_instructions: instructions(),
        })
    }

    /// Returns the storage that a job's tables take.
    ///
    /// # Errors
    ///
    /// If they do not exist.
    pub fn inspect(&self, canister: &mut C, job: &Job) -> Result<Inspected> {
        (self.inspect)(canister, job)
    }

    /// Returns a part of what the suite keeps for the caller.
    ///
    /// # Errors
    ///
    /// If the suite keeps nothing, or the canister cannot do it.
    pub fn kept(&self, canister: &mut C, job: &Job, position: u64) -> Result<KeptPart> {
        (self.kept)(canister, job, position)
    }
}

/// Refuses parts without operations, past the last number, or with too many measured one by one.
fn check(part: &JobPart) -> Result<()> {
    if part.count == 0 {
        return Err(Error::NoRows);
    }
    if part.from.checked_add(part.count).is_none() {
        return Err(Error::IdOverflow { largest: u64::MAX });
    }
    if part.each && part.count > MAX_EACH {
        return Err(Error::TooManyEach { limit: MAX_EACH });
    }
    Ok(())
}

/// Returns the maximum number of rows of a message at a payload.
pub fn max_rows(payload_bytes: u32) -> u64 {
    let row_bytes = u64::from(payload_bytes) + ROW_OVERHEAD_BYTES;
    MAX_MESSAGE_ROWS.min(MAX_MESSAGE_BYTES / row_bytes)
}
