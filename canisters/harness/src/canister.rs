use crate::{KeyValue, Points, Records, Sql};
use stablebench_protocol::{
    CrateVersion, Cuckoo, Digest, DigestPart, Engine, Error, Inspected, Job, Occupant, Part,
    Result, SqliteConfig, SqliteDescription, SqliteSettings, Storage, Worked,
};

/// A canister: which engines it has, and where its state goes at an upgrade.
pub trait Canister: 'static {
    /// The engines, in the order they are shown.
    fn engines(&self) -> &'static [Engine];

    /// The engine that is named.
    ///
    /// # Errors
    ///
    /// Where the canister has no such engine, or another owns the stable memory.
    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue>;

    /// The SQL database.
    ///
    /// # Errors
    ///
    /// Where the canister has none, or another engine owns the stable memory.
    fn database(&mut self) -> Result<&mut dyn Database> {
        Err(Error::EngineUnavailable { engine: Engine::Sqlite })
    }

    /// The SQL database in stable memory or on the heap, for suites with tables of their own.
    ///
    /// # Errors
    ///
    /// Where the canister has none, or another engine owns the stable memory.
    fn sql(&mut self, _: Storage) -> Result<&mut dyn Sql> {
        Err(Error::EngineUnavailable { engine: Engine::Sqlite })
    }

    /// The engine that is named, as a store of byte keys.
    ///
    /// # Errors
    ///
    /// Where the canister has none, or another engine owns the stable memory.
    fn records(&mut self, engine: Engine) -> Result<&mut dyn Records> {
        Err(Error::EngineUnavailable { engine })
    }

    /// The store of a job of the suite cuckoo; not SQLite.
    ///
    /// # Errors
    ///
    /// Where the canister has none, or another engine owns the stable memory.
    fn points(&mut self, _: &Cuckoo, _seed: u64) -> Result<&mut dyn Points> {
        Err(Error::EngineUnavailable { engine: Engine::Cuckoo })
    }

    /// Does a part of a job that no other canister has, measured.
    ///
    /// # Errors
    ///
    /// Where the canister has no such jobs, or the engine fails before anything has changed.
    fn perform(&mut self, _: &Part) -> Result<Worked> {
        Err(Error::EngineUnavailable { engine: Engine::Sqlite })
    }

    /// The digest of what such a part reads; nothing where it writes.
    ///
    /// # Errors
    ///
    /// Those of [`perform`](Self::perform).
    fn results(&mut self, _: &Part) -> Result<Option<Digest>> {
        Err(Error::EngineUnavailable { engine: Engine::Sqlite })
    }

    /// Begins the digest of the tables of such a job, or carries one on, by at most so many rows.
    ///
    /// # Errors
    ///
    /// Where the canister has no such jobs, or the tables are not there.
    fn content(&mut self, _: &Job, _: Option<DigestPart>, _limit: u64) -> Result<DigestPart> {
        Err(Error::EngineUnavailable { engine: Engine::Sqlite })
    }

    /// What the tables of such a job take.
    ///
    /// # Errors
    ///
    /// Where the canister has no such jobs, or the tables are not there.
    fn inspect(&mut self, _: &Job) -> Result<Inspected> {
        Err(Error::EngineUnavailable { engine: Engine::Sqlite })
    }

    /// Who owns the stable memory.
    fn occupant(&self) -> Occupant;

    /// The SQLite library, where there is one.
    fn sqlite_description(&self) -> Option<SqliteDescription> {
        None
    }

    /// The crates that decide what the engines cost.
    fn crates(&self) -> Vec<CrateVersion>;

    /// Writes the settings to stable memory, before an upgrade; `payload_bytes` is the
    /// host's, the others are the canister's own.
    ///
    /// # Errors
    ///
    /// Where there is no room.
    fn save(&mut self, payload_bytes: u32) -> Result<()>;

    /// Takes the settings up again, after an upgrade; answers the host's.
    fn load(&mut self) -> u32;

    /// LevelDB for a job of the suite db-bench, whose batches are synced, or of one key, where
    /// the job says so.
    ///
    /// # Errors
    ///
    /// Those of [`records`](Self::records).
    #[cfg(feature = "leveldb")]
    fn records_for(&mut self, job: &stablebench_protocol::DbBench) -> Result<&mut dyn Records> {
        self.records(job.engine)
    }
}

/// What an SQL database can do beside what [`KeyValue`] asks for.
pub trait Database {
    /// Closes the connection and opens it with other settings, what is left out being the
    /// library's defaults; answers those in effect.
    ///
    /// # Errors
    ///
    /// Where a setting was not taken; then the settings are as before.
    fn configure(&mut self, config: SqliteConfig) -> Result<SqliteSettings>;

    /// The settings in effect. Opens the connection where it is closed.
    ///
    /// # Errors
    ///
    /// SQLite's.
    fn settings(&mut self) -> Result<SqliteSettings>;

    /// Closes the connection. The next use opens it, with the same settings.
    fn close(&mut self);

    /// Opens the connection where it is closed.
    ///
    /// # Errors
    ///
    /// SQLite's.
    fn open(&mut self) -> Result<()>;

    /// Work: `VACUUM`.
    ///
    /// # Errors
    ///
    /// SQLite's.
    fn vacuum(&mut self) -> Result<()>;
}
