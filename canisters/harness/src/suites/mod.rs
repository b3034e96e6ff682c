//! Suites that have tables of their own: what a part of a job is in the canister.

mod cuckoo;
mod db_bench;
mod keys;
mod sysbench;
mod vfs;

use crate::host::Run;
use crate::{Canister, Host, MAX_EACH};
use stablebench_protocol::{
    Digest, DigestPart, Engine, Error, Inspected, Job, Part, Performed, PhaseCost, Result, Worked,
};

/// A part of a job, made ready: all that follows from the job and the seed is on the heap.
///
/// # Errors
///
/// If no canister could do it.
pub fn staged<C: Canister>(part: &Part) -> Result<Run<C>> {
    check(part)?;
    match &part.job {
        Job::DbBench(job) => db_bench::staged(job, part),
        Job::Keys(job) => keys::staged(job, part),
        Job::Sysbench(job) => Ok(sysbench::staged(job, part)),
        Job::Cuckoo(job) => cuckoo::staged(job, part),
        Job::Vfs(job) => vfs::staged(job, part),
        #[allow(unreachable_patterns, reason = "there are more with features of the protocol")]
        _ => {
            let part = part.clone();
            Ok(Box::new(move |canister: &mut C| canister.perform(&part)))
        }
    }
}

impl<C: Canister> Host<C> {
    /// Does a part of a job, measured, and tells what it reads.
    ///
    /// # Errors
    ///
    /// Where the canister cannot do it, or the engine fails before anything has changed.
    pub fn perform(&mut self, part: &Part) -> Result<Performed> {
        let run = staged(part)?;
        let Worked { measurement, each } = run(&mut self.canister)?;
        Ok(Performed { measurement, each, results: self.results(part)? })
    }

    /// The digest of what a part of a job reads; nothing where it writes.
    ///
    /// # Errors
    ///
    /// If the canister cannot do it.
    pub fn results(&mut self, part: &Part) -> Result<Option<Digest>> {
        check(part)?;
        let canister = &mut self.canister;
        match &part.job {
            Job::DbBench(job) => db_bench::results(canister, job, part),
            Job::Keys(job) => keys::results(canister, job, part),
            Job::Sysbench(job) => sysbench::results(canister, job, part),
            Job::Cuckoo(job) => cuckoo::results(canister, job, part),
            Job::Vfs(job) => vfs::results(canister, job, part),
            #[allow(unreachable_patterns, reason = "there are more with features of the protocol")]
            _ => canister.results(part),
        }
    }

    /// Does a part of a job of the suite vfs, and tells where its instructions go.
    ///
    /// # Errors
    ///
    /// Those of [`perform`](Self::perform); where the job is another suite's.
    pub fn phases(&mut self, part: &Part) -> Result<Vec<PhaseCost>> {
        check(part)?;
        match &part.job {
            Job::Vfs(job) => vfs::phases(&mut self.canister, job, part),
            _ => Err(Error::Unsupported {
                engine: Engine::Sqlite,
                operation: "tell the phases of another suite's work".to_owned(),
            }),
        }
    }

    /// Begins the digest of all rows of a job's tables, or carries one on, by at most
    /// `limit` rows.
    ///
    /// # Errors
    ///
    /// Where the digest is done, or the tables are not there.
    pub fn content(
        &mut self,
        job: &Job,
        part: Option<DigestPart>,
        limit: u64,
    ) -> Result<DigestPart> {
        if limit == 0 {
            return Err(Error::NoRows);
        }
        if part.is_some_and(|part| part.done) {
            return Err(Error::DigestDone);
        }
        let canister = &mut self.canister;
        match job {
            Job::DbBench(job) => db_bench::content(canister, job, part, limit),
            Job::Keys(job) => keys::content(canister, job, part, limit),
            Job::Sysbench(job) => sysbench::content(canister, job, part, limit),
            Job::Cuckoo(job) => cuckoo::content(canister, job, part, limit),
            Job::Vfs(_) => vfs::content(canister, part, limit),
            #[allow(unreachable_patterns, reason = "there are more with features of the protocol")]
            _ => canister.content(job, part, limit),
        }
    }

    /// What the tables of a job take.
    ///
    /// # Errors
    ///
    /// Where they are not there.
    pub fn inspect(&mut self, job: &Job) -> Result<Inspected> {
        let canister = &mut self.canister;
        match job {
            Job::DbBench(job) => db_bench::inspect(canister, job),
            Job::Keys(job) => keys::inspect(canister, job),
            Job::Sysbench(job) => sysbench::inspect(canister, job),
            Job::Cuckoo(job) => cuckoo::inspect(canister, job),
            Job::Vfs(_) => vfs::inspect(canister),
            #[allow(unreachable_patterns, reason = "there are more with features of the protocol")]
            _ => canister.inspect(job),
        }
    }
}

/// Refuses parts of no operations, past the last, or with too many measured one by one.
fn check(part: &Part) -> Result<()> {
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
