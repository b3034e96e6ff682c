//! The logic of the endpoints.
//!
//! ```text
//!   stage       decodes, checks and expands a part of a job: keys, texts, parameters
//!   run         does it, measured; nothing staged: measures the harness alone
//!   stage …     drops the part that was run before
//! ```
//!
//! So a measured message costs what the work costs, and next to nothing more. The existence of ids
//! is not checked: that would load pages which the work would then find loaded. The caller knows
//! which rows exist, and reads the content back.

use crate::{Canister, Staged, SuiteEntry, measure};
use stablebench_protocol::{
    Description, Digest, DigestPart, Error, Executed, Inspected, Job, JobPart, KeptPart, PartCost,
    PhaseCost, Result, Setting,
};
use stablebench_workload::Amount;

/// A canister with its endpoints' logic.
pub struct Host<C> {
    canister: C,
    /// The largest id of a measured call since the heap was created.
    last_call: u64,
    /// The work of the next measured message.
    staged: Option<Staged<C>>,
    /// The work of the last measured message.
    ran: Option<Staged<C>>,
}

impl<C: Canister + Default> Default for Host<C> {
    fn default() -> Self {
        Self::new(C::default())
    }
}

impl<C: Canister> Host<C> {
    /// A host to which nothing was sent yet.
    pub fn new(canister: C) -> Self {
        Self { canister, last_call: 0, staged: None, ran: None }
    }

    /// Returns the canister, for methods of a suite.
    pub fn canister(&mut self) -> &mut C {
        &mut self.canister
    }

    /// Returns the canister.
    pub fn into_canister(self) -> C {
        self.canister
    }

    /// Admits a measured call. Ids of calls increase, so that a call that arrives twice is executed
    /// once.
    ///
    /// # Errors
    ///
    /// If this call, or a later one, was already admitted.
    pub fn admit(&mut self, call_id: Option<u64>) -> Result<()> {
        if let Some(id) = call_id {
            if id <= self.last_call {
                return Err(Error::Repeated { last: self.last_call });
            }
            self.last_call = id;
        }
        Ok(())
    }

    /// Prepares a part of a job for [`run`](Self::run). The engine is not touched.
    ///
    /// # Errors
    ///
    /// If the arguments are invalid.
    pub fn stage(&mut self, part: &JobPart) -> Result<()> {
        let staged = SuiteEntry::find(C::SUITES, &part.job)?.stage(part)?;
        self.ran = None;
        self.staged = Some(staged);
        Ok(())
    }

    /// Does the staged work once. If nothing is staged, measures no work: the message is the harness
    /// alone.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn run(&mut self) -> Result<PartCost> {
        let Some(staged) = self.staged.take() else {
            return measure(|| Ok(Amount::default())).map(PartCost::from);
        };
        let cost = (staged.run)(&mut self.canister);
        // Dropping its rows is not part of the message either.
        self.ran = Some(staged);
        cost
    }

    /// Does staged work that changes no rows.
    ///
    /// # Errors
    ///
    /// Those of [`run`](Self::run); if the work may change rows.
    pub fn run_query(&mut self) -> Result<PartCost> {
        if self.staged.as_ref().is_some_and(|staged| staged.writes) {
            return Err(Error::WritesInQuery);
        }
        self.run()
    }

    /// Does a part of a job, measured, and returns what it reads.
    ///
    /// # Errors
    ///
    /// If the canister cannot do it, or the engine fails before anything has changed.
    pub fn execute(&mut self, part: &JobPart) -> Result<Executed> {
        let staged = SuiteEntry::find(C::SUITES, &part.job)?.stage(part)?;
        let PartCost { measurement, each } = (staged.run)(&mut self.canister)?;
        Ok(Executed { measurement, each, results: self.results(part)? })
    }

    /// Returns the digest of what a part of a job reads; nothing if it writes.
    ///
    /// # Errors
    ///
    /// If the canister cannot do it.
    pub fn results(&mut self, part: &JobPart) -> Result<Option<Digest>> {
        SuiteEntry::find(C::SUITES, &part.job)?.results(&mut self.canister, part)
    }

    /// Does a part of a job and returns where its instructions go.
    ///
    /// # Errors
    ///
    /// If the suite does not support it, or those of [`execute`](Self::execute).
    pub fn phases(&mut self, part: &JobPart) -> Result<Vec<PhaseCost>> {
        SuiteEntry::find(C::SUITES, &part.job)?.phases(&mut self.canister, part)
    }

    /// Starts the digest of all rows of a job's tables, or continues one, by at most `limit` rows.
    ///
    /// # Errors
    ///
    /// If the digest is done, or the tables do not exist.
    pub fn content(
        &mut self,
        job: &Job,
        part: Option<DigestPart>,
        limit: u64,
    ) -> Result<DigestPart> {
        let suite = SuiteEntry::find(C::SUITES, job)?;
        suite.content(&mut self.canister, job, part.unwrap_or_default(), limit)
    }

    /// Returns the storage that a job's tables take.
    ///
    /// # Errors
    ///
    /// If they do not exist.
    pub fn inspect(&mut self, job: &Job) -> Result<Inspected> {
        SuiteEntry::find(C::SUITES, job)?.inspect(&mut self.canister, job)
    }

    /// Returns a part of what a job's suite keeps for the caller, from a position on.
    ///
    /// # Errors
    ///
    /// If the suite keeps nothing, or the canister cannot do it.
    pub fn kept(&mut self, job: &Job, position: u64) -> Result<KeptPart> {
        SuiteEntry::find(C::SUITES, job)?.kept(&mut self.canister, job, position)
    }

    /// Opens the engine again with these settings, and returns all settings in effect.
    ///
    /// # Errors
    ///
    /// If a setting was not taken.
    pub fn configure(&mut self, settings: &[Setting]) -> Result<Vec<Setting>> {
        self.canister.configure(settings)
    }

    /// Describes the canister and its content.
    ///
    /// # Errors
    ///
    /// The engines'.
    pub fn describe(&mut self) -> Result<Description> {
        self.canister.describe()
    }

    /// Writes the state to stable memory.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn pre_upgrade(&mut self) -> Result<()> {
        self.canister.save()
    }

    /// Restores the state.
    pub fn post_upgrade(&mut self) {
        self.canister.load();
    }
}
