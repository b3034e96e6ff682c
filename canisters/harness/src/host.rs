use crate::{Canister, KeyValue, Pragmas, heap_pages, instructions, measure, stable_pages};
use stablebench_protocol::{
    DEFAULT_PAYLOAD_BYTES, Description, Digest, DigestPart, Engine, EngineDescription, Error,
    MAX_PAYLOAD_BYTES, Measurement, Occupant, Result, SqliteConfig, SqliteSettings,
};
use stablebench_workload::{ContentDigest, Ids, payload::Payload};

/// The most rows a message may be about, however short.
pub const MAX_MESSAGE_ROWS: u64 = 1_000_000;

/// The most bytes of rows a message may be about: half of what a message may write.
pub const MAX_MESSAGE_BYTES: u64 = 1 << 30;

/// An id and a length, as an engine that wastes nothing would store them.
const ROW_OVERHEAD_BYTES: u64 = 12;

/// The most rows, and the most bytes of them, of which `describe` tells the digest.
const DESCRIBED_ROWS: u64 = 10_000;
const DESCRIBED_BYTES: u64 = 16 << 20;

/// The endpoints' logic: checks first, then the work, measured.
pub struct Host<C> {
    canister: C,
    payload_bytes: u32,
}

impl<C: Canister + Default> Default for Host<C> {
    fn default() -> Self {
        Self::new(C::default())
    }
}

impl<C: Canister> Host<C> {
    /// A host with the default payload.
    pub fn new(canister: C) -> Self {
        Self { canister, payload_bytes: DEFAULT_PAYLOAD_BYTES }
    }

    /// Sets the length of the payloads written from now on.
    ///
    /// # Errors
    ///
    /// Where it is too long.
    pub fn set_payload(&mut self, bytes: u32) -> Result<()> {
        if bytes > MAX_PAYLOAD_BYTES {
            return Err(Error::PayloadTooLong { limit: MAX_PAYLOAD_BYTES });
        }
        self.payload_bytes = bytes;
        Ok(())
    }

    /// Adds `rows` rows from `first_id`, `step` apart.
    ///
    /// # Errors
    ///
    /// Where the ids are unsound or exist already.
    pub fn add(
        &mut self,
        engine: Engine,
        first_id: u64,
        step: u64,
        rows: u64,
    ) -> Result<Measurement> {
        let ids = self.ids(first_id, step, rows)?;
        self.insert(engine, |_| Ok(ids))
    }

    /// Adds rows between the rows around the half; see [`Ids::middle`].
    ///
    /// # Errors
    ///
    /// Where they do not fit there, or exist already.
    pub fn insert_middle(&mut self, engine: Engine, rows: u64) -> Result<Measurement> {
        self.check_rows(rows)?;
        self.insert(engine, |last| Ids::middle(last, rows))
    }

    /// Adds rows after the last; see [`Ids::end`].
    ///
    /// # Errors
    ///
    /// Where ids would overflow.
    pub fn insert_end(&mut self, engine: Engine, rows: u64) -> Result<Measurement> {
        self.check_rows(rows)?;
        self.insert(engine, |last| Ids::end(last, rows))
    }

    /// Looks rows up, one by one. Ids that are missing are looked up too; the
    /// measurement's `rows` are those found.
    ///
    /// # Errors
    ///
    /// Where the ids are unsound.
    pub fn read(
        &mut self,
        engine: Engine,
        first_id: u64,
        step: u64,
        rows: u64,
    ) -> Result<Measurement> {
        let ids = self.ids(first_id, step, rows)?;
        let engine = self.canister.engine(engine)?;
        engine.prepare()?;
        engine.admit(ids, 0)?;
        measure(|| engine.read(ids))
    }

    /// Reads the first `limit` rows.
    ///
    /// # Errors
    ///
    /// Where the limit is 0 or too high.
    pub fn scan(&mut self, engine: Engine, limit: u64) -> Result<Measurement> {
        self.check_rows(limit)?;
        let engine = self.canister.engine(engine)?;
        engine.prepare()?;
        measure(|| engine.scan(limit))
    }

    /// Replaces the payloads of rows by [`Payload::Updated`].
    ///
    /// # Errors
    ///
    /// Where the ids are unsound or one is missing.
    pub fn update(
        &mut self,
        engine: Engine,
        first_id: u64,
        step: u64,
        rows: u64,
    ) -> Result<Measurement> {
        let ids = self.ids(first_id, step, rows)?;
        let payload_bytes = self.payload_bytes;
        let engine = self.canister.engine(engine)?;
        require(engine, ids, payload_bytes)?;
        let payload = Payload::Updated.text(payload_bytes);
        measure(|| engine.update(ids, &payload).map(|()| rows))
    }

    /// Removes rows.
    ///
    /// # Errors
    ///
    /// Where the ids are unsound or one is missing.
    pub fn delete(
        &mut self,
        engine: Engine,
        first_id: u64,
        step: u64,
        rows: u64,
    ) -> Result<Measurement> {
        let ids = self.ids(first_id, step, rows)?;
        let engine = self.canister.engine(engine)?;
        require(engine, ids, 0)?;
        measure(|| engine.delete(ids).map(|()| rows))
    }

    /// Begins a digest, or carries one on, by at most `limit` rows.
    ///
    /// # Errors
    ///
    /// Where the limit is 0 or too high, or the digest is done.
    pub fn digest(
        &mut self,
        engine: Engine,
        part: Option<DigestPart>,
        limit: u64,
    ) -> Result<DigestPart> {
        self.check_rows(limit)?;
        let part = part.unwrap_or_default();
        if part.done {
            return Err(Error::DigestDone);
        }
        let engine = self.canister.engine(engine)?;
        engine.prepare()?;
        let mut digest = ContentDigest::from(part.digest);
        let next = engine.digest(part.position, limit, &mut digest)?;
        Ok(DigestPart {
            digest: digest.value(),
            position: next.unwrap_or(0),
            done: next.is_none(),
            message_instructions: instructions(),
        })
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

    /// Opens SQLite's connection anew with the settings chosen.
    ///
    /// # Errors
    ///
    /// Where a setting was not taken.
    pub fn configure_sqlite(&mut self, config: SqliteConfig) -> Result<SqliteSettings> {
        self.canister.database()?.configure(Pragmas::new(config))
    }

    /// The settings of SQLite's connection.
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
    /// Where there is no SQLite.
    pub fn close_connection(&mut self) -> Result<()> {
        self.canister.database()?.close();
        Ok(())
    }

    /// `VACUUM`, on an open connection.
    ///
    /// # Errors
    ///
    /// SQLite's.
    pub fn vacuum(&mut self) -> Result<Measurement> {
        let database = self.canister.database()?;
        database.open()?;
        measure(|| database.vacuum().map(|()| 0))
    }

    /// What the canister is and holds.
    ///
    /// # Errors
    ///
    /// The engines'.
    pub fn describe(&mut self) -> Result<Description> {
        // Looking at the engines can open what was closed, and grow both.
        let (heap_pages, stable_pages) = (heap_pages(), stable_pages());
        let occupant = self.canister.occupant();
        let mut engines = Vec::new();
        for &engine in self.canister.engines() {
            if occupant == Occupant::Nobody {
                engines.push(EngineDescription {
                    engine,
                    rows: 0,
                    stored_bytes: 0,
                    digest: Some(Digest::default()),
                });
            } else if let Ok(store) = self.canister.engine(engine) {
                store.prepare()?;
                let (rows, stored_bytes) = (store.rows()?, store.stored_bytes()?);
                let mut digest = None;
                if rows <= DESCRIBED_ROWS && stored_bytes <= DESCRIBED_BYTES {
                    let mut content = ContentDigest::default();
                    store.digest(0, rows, &mut content)?;
                    digest = Some(content.value());
                }
                engines.push(EngineDescription { engine, rows, stored_bytes, digest });
            }
        }
        Ok(Description {
            occupant,
            engines,
            payload_bytes: self.payload_bytes,
            max_rows: self.max_rows(),
            heap_pages,
            stable_pages,
            sqlite: self.canister.sqlite_description(),
            crates: self.canister.crates(),
        })
    }

    /// Writes the settings to stable memory.
    ///
    /// # Errors
    ///
    /// Where there is no room.
    pub fn pre_upgrade(&mut self) -> Result<()> {
        self.canister.save(self.payload_bytes)
    }

    /// Takes the settings up again.
    pub fn post_upgrade(&mut self) {
        self.payload_bytes = self.canister.load();
    }

    /// The most rows a message may be about, at the payload's length.
    fn max_rows(&self) -> u64 {
        let row_bytes = u64::from(self.payload_bytes) + ROW_OVERHEAD_BYTES;
        MAX_MESSAGE_ROWS.min(MAX_MESSAGE_BYTES / row_bytes)
    }

    fn check_rows(&self, rows: u64) -> Result<()> {
        match rows {
            0 => Err(Error::NoRows),
            rows if rows > self.max_rows() => Err(Error::TooManyRows { limit: self.max_rows() }),
            _ => Ok(()),
        }
    }

    fn ids(&self, first_id: u64, step: u64, rows: u64) -> Result<Ids> {
        self.check_rows(rows)?;
        Ids::new(first_id, step, rows)
    }

    fn insert(
        &mut self,
        engine: Engine,
        choose: impl FnOnce(Option<u64>) -> Result<Ids>,
    ) -> Result<Measurement> {
        let payload_bytes = self.payload_bytes;
        let engine = self.canister.engine(engine)?;
        engine.prepare()?;
        let ids = checked(engine, |engine| {
            let ids = choose(engine.last_id()?)?;
            engine.admit(ids, payload_bytes)?;
            match engine.first_present(ids)? {
                Some(id) => Err(Error::IdExists { id }),
                None => Ok(ids),
            }
        })?;
        let payload = Payload::New.text(payload_bytes);
        measure(|| engine.insert(ids, &payload).map(|()| ids.rows()))
    }
}

/// Makes sure that all ids are there and can hold the payload.
fn require(engine: &mut dyn KeyValue, ids: Ids, payload_bytes: u32) -> Result<()> {
    engine.prepare()?;
    checked(engine, |engine| {
        engine.admit(ids, payload_bytes)?;
        match engine.first_missing(ids)? {
            Some(id) => Err(Error::IdMissing { id }),
            None => Ok(()),
        }
    })
}

/// Runs checks that leave the engine as they found it, passed or not.
fn checked<T>(
    engine: &mut dyn KeyValue,
    checks: impl FnOnce(&mut dyn KeyValue) -> Result<T>,
) -> Result<T> {
    let outcome = checks(engine);
    engine.settle();
    outcome
}
