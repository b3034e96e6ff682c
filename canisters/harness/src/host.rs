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
//!
//! Methods that are called by hand check ids first, and then do the work, measured.

use crate::suites::users::{self, Manner, Work, Write};
use crate::{
    Canister, KeyValue, Staged, SuiteEntry, digest_rows, heap_pages, measure, measure_step,
    stable_pages,
};
use stablebench_protocol::{
    DEFAULT_PAYLOAD_BYTES, Description, Digest, DigestPart, Engine, EngineDescription, Error,
    Executed, Inspected, Job, Kept, Measurement, Occupant, Operation, Part, PartCost, PhaseCost,
    Result, Selection, Setting, SqliteConfig, SqliteSettings,
};
use stablebench_workload::{Amount, ContentDigest, Ids};

/// The maximum number of operations whose costs fit into a reply: at 16 bytes each, they leave room
/// in its 2 MiB.
pub const MAX_EACH: u64 = 100_000;

/// The maximum number of rows, and of their bytes, whose digest `describe` includes.
const DESCRIBED_ROWS: u64 = 10_000;
const DESCRIBED_BYTES: u64 = 16 << 20;

/// A canister with its endpoints' logic.
pub struct Host<C> {
    canister: C,
    payload_bytes: u32,
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
    /// A host with the default payload.
    pub fn new(canister: C) -> Self {
        Self {
            canister,
            payload_bytes: DEFAULT_PAYLOAD_BYTES,
            last_call: 0,
            staged: None,
            ran: None,
        }
    }

    /// Returns the canister, for methods of a suite's own.
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
    pub fn stage(&mut self, part: &Part) -> Result<()> {
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
    pub fn execute(&mut self, part: &Part) -> Result<Executed> {
        let staged = SuiteEntry::find(C::SUITES, &part.job)?.stage(part)?;
        let PartCost { measurement, each } = (staged.run)(&mut self.canister)?;
        Ok(Executed { measurement, each, results: self.results(part)? })
    }

    /// Returns the digest of what a part of a job reads; nothing if it writes.
    ///
    /// # Errors
    ///
    /// If the canister cannot do it.
    pub fn results(&mut self, part: &Part) -> Result<Option<Digest>> {
        SuiteEntry::find(C::SUITES, &part.job)?.results(&mut self.canister, part)
    }

    /// Does a part of a job and returns where its instructions go.
    ///
    /// # Errors
    ///
    /// If the suite does not support it, or those of [`execute`](Self::execute).
    pub fn phases(&mut self, part: &Part) -> Result<Vec<PhaseCost>> {
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
    pub fn kept(&mut self, job: &Job, position: u64) -> Result<Kept> {
        SuiteEntry::find(C::SUITES, job)?.kept(&mut self.canister, job, position)
    }

    /// Adds `rows` rows, `step` apart, starting at `first`.
    ///
    /// # Errors
    ///
    /// If the ids are invalid or exist.
    pub fn add(&mut self, engine: Engine, first: u64, step: u64, rows: u64) -> Result<Measurement> {
        self.measure(engine, Operation::Insert(Selection::Step { first, step, rows }))
    }

    /// Adds rows between the rows around the half; see [`Ids::middle`].
    ///
    /// # Errors
    ///
    /// If they do not fit there, or exist.
    pub fn insert_middle(&mut self, engine: Engine, rows: u64) -> Result<Measurement> {
        self.insert_at(engine, rows, Ids::middle)
    }

    /// Adds rows after the last; see [`Ids::end`].
    ///
    /// # Errors
    ///
    /// If ids would overflow.
    pub fn insert_end(&mut self, engine: Engine, rows: u64) -> Result<Measurement> {
        self.insert_at(engine, rows, Ids::end)
    }

    /// Looks rows up one by one. The measurement's `rows` are those that exist.
    ///
    /// # Errors
    ///
    /// If the ids are invalid.
    pub fn read(
        &mut self,
        engine: Engine,
        first: u64,
        step: u64,
        rows: u64,
    ) -> Result<Measurement> {
        self.measure(engine, Operation::Read(Selection::Step { first, step, rows }))
    }

    /// Reads the first `limit` rows.
    ///
    /// # Errors
    ///
    /// If the limit is 0 or too large.
    pub fn scan(&mut self, engine: Engine, limit: u64) -> Result<Measurement> {
        self.measure(engine, Operation::Scan(limit))
    }

    /// Replaces the payloads of rows by those of updated rows.
    ///
    /// # Errors
    ///
    /// If the ids are invalid or one does not exist.
    pub fn update(
        &mut self,
        engine: Engine,
        first: u64,
        step: u64,
        rows: u64,
    ) -> Result<Measurement> {
        self.measure(engine, Operation::Update(Selection::Step { first, step, rows }))
    }

    /// Removes rows.
    ///
    /// # Errors
    ///
    /// If the ids are invalid or one does not exist.
    pub fn delete(
        &mut self,
        engine: Engine,
        first: u64,
        step: u64,
        rows: u64,
    ) -> Result<Measurement> {
        self.measure(engine, Operation::Delete(Selection::Step { first, step, rows }))
    }

    fn measure(&mut self, engine: Engine, operation: Operation) -> Result<Measurement> {
        let work = Work::new(&operation, users::max_rows(self.payload_bytes))?;
        self.checked(engine, |_| Ok(work))
    }

    fn insert_at(
        &mut self,
        engine: Engine,
        rows: u64,
        choose: impl FnOnce(Option<u64>, u64) -> Result<Ids>,
    ) -> Result<Measurement> {
        users::check_rows(rows, users::max_rows(self.payload_bytes))?;
        self.checked(engine, |engine| {
            Ok(Work::Write(Write::Insert, choose(engine.last_id()?, rows)?.into()))
        })
    }

    /// Does the checks, which leave the engine as they found it, and then the work.
    fn checked<'a>(
        &mut self,
        engine: Engine,
        choose: impl FnOnce(&mut dyn KeyValue) -> Result<Work<'a>>,
    ) -> Result<Measurement> {
        let payload_bytes = self.payload_bytes;
        let engine = self.canister.engine(engine)?;
        engine.prepare()?;
        let checked = choose(engine).and_then(|work| {
            work.check(engine, payload_bytes)?;
            Ok(work)
        });
        engine.settle();
        let work = checked?;
        let cost = work.measure(engine, &work.text(payload_bytes), Manner::default())?;
        Ok(cost.measurement)
    }

    /// Sets the payload of rows that methods called by hand write.
    ///
    /// # Errors
    ///
    /// If it is too long.
    pub fn set_payload(&mut self, bytes: u32) -> Result<()> {
        users::check_payload(bytes)?;
        self.payload_bytes = bytes;
        Ok(())
    }

    /// Removes all rows of an engine.
    ///
    /// # Errors
    ///
    /// The engine's.
    pub fn reset(&mut self, engine: Engine) -> Result<()> {
        let engine = self.canister.engine(engine)?;
        engine.prepare()?;
        engine.reset()
    }

    /// Opens the engine again with these settings, and returns all settings in effect.
    ///
    /// # Errors
    ///
    /// If a setting was not taken.
    pub fn configure(&mut self, settings: &[Setting]) -> Result<Vec<Setting>> {
        self.canister.configure(settings)
    }

    /// Opens SQLite's connection again with these settings.
    ///
    /// # Errors
    ///
    /// If a setting was not taken.
    pub fn configure_sqlite(&mut self, config: SqliteConfig) -> Result<SqliteSettings> {
        self.canister.database()?.configure(config)
    }

    /// Returns the settings of SQLite's connection.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn sqlite_settings(&mut self) -> Result<SqliteSettings> {
        self.canister.database()?.settings()
    }

    /// Closes SQLite's connection: the next work opens it, and pays for that.
    ///
    /// # Errors
    ///
    /// If there is no SQLite.
    pub fn close_connection(&mut self) -> Result<()> {
        self.canister.database()?.close();
        Ok(())
    }

    /// `VACUUM` on an open connection.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn vacuum(&mut self) -> Result<Measurement> {
        let database = self.canister.database()?;
        database.open()?;
        measure_step(|| database.vacuum())
    }

    /// Describes the canister and its content.
    ///
    /// # Errors
    ///
    /// The engines'.
    pub fn describe(&mut self) -> Result<Description> {
        // Looking at the engines may open what was closed, and so grow both memories.
        let (heap_pages, stable_pages) = (heap_pages(), stable_pages());
        let occupant = self.canister.occupant();
        let mut engines = Vec::new();
        for &engine in C::ENGINES {
            if occupant == Occupant::Nobody {
                engines.push(EngineDescription {
                    engine,
                    rows: 0,
                    stored_bytes: 0,
                    virtual_bytes: 0,
                    cache_bytes: 0,
                    digest: Some(Digest::default()),
                });
            } else if let Ok(store) = self.canister.engine(engine) {
                engines.push(described(engine, store)?);
            }
        }
        Ok(Description {
            occupant,
            engines,
            payload_bytes: self.payload_bytes,
            max_rows: users::max_rows(self.payload_bytes),
            heap_pages,
            stable_pages,
            sqlite: self.canister.sqlite_description(),
            crates: self.canister.crates(),
        })
    }

    /// Writes the state to stable memory.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn pre_upgrade(&mut self) -> Result<()> {
        self.canister.save(self.payload_bytes)
    }

    /// Restores the state.
    pub fn post_upgrade(&mut self) {
        self.payload_bytes = self.canister.load();
    }
}

fn described(engine: Engine, store: &mut dyn KeyValue) -> Result<EngineDescription> {
    let (virtual_bytes, cache_bytes) = (store.virtual_bytes(), store.cache_bytes());
    store.prepare()?;
    let (rows, stored_bytes) = (store.rows()?, store.stored_bytes()?);
    let mut digest = None;
    if rows <= DESCRIBED_ROWS && stored_bytes <= DESCRIBED_BYTES {
        let mut content = ContentDigest::default();
        digest_rows(store, 0, rows, &mut content)?;
        digest = Some(content.value());
    }
    Ok(EngineDescription { engine, rows, stored_bytes, virtual_bytes, cache_bytes, digest })
}
