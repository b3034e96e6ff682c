//! The traits of a canister: its engines, its suites, and its state over an upgrade.

use crate::{KeyValue, Points, Records, Sql, SuiteEntry, sql};
use stablebench_protocol::{
    CrateVersion, Cuckoo, DbBench, Engine, Error, Occupant, Result, Setting, SqliteConfig,
    SqliteDescription, SqliteSettings, Storage,
};

/// A canister.
pub trait Canister: Sized + 'static {
    /// The suites that it has.
    const SUITES: &'static [SuiteEntry<Self>];

    /// The engines of the suite users, in the order in which `describe` lists them.
    const ENGINES: &'static [Engine];

    /// Returns an engine of the suite users.
    ///
    /// # Errors
    ///
    /// If the canister does not have it, or another engine owns the stable memory.
    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue>;

    /// Returns the SQL database with the table of the suite users.
    ///
    /// # Errors
    ///
    /// If the canister has none, or another engine owns the stable memory.
    fn database(&mut self) -> Result<&mut dyn Database> {
        Err(Error::EngineUnavailable { engine: Engine::SQLITE })
    }

    /// Returns the SQL database in stable memory or on the heap, for suites with their own tables.
    ///
    /// # Errors
    ///
    /// If the canister has none, or another engine owns the stable memory.
    fn sql(&mut self, _: Storage) -> Result<&mut dyn Sql> {
        Err(Error::EngineUnavailable { engine: Engine::SQLITE })
    }

    /// Returns the engine of a job of the suite db-bench; not SQLite.
    ///
    /// # Errors
    ///
    /// If the canister does not have it, or another engine owns the stable memory.
    fn records(&mut self, job: &DbBench) -> Result<&mut dyn Records> {
        Err(Error::EngineUnavailable { engine: job.engine })
    }

    /// Returns the engine of a job of the suite cuckoo; not SQLite.
    ///
    /// # Errors
    ///
    /// If the canister does not have it, or another engine owns the stable memory.
    fn points(&mut self, job: &Cuckoo, _seed: u64) -> Result<&mut dyn Points> {
        Err(Error::EngineUnavailable { engine: job.engine })
    }

    /// Opens the engine again with these settings; a setting that is left out takes the library's
    /// default. Returns all settings in effect.
    ///
    /// # Errors
    ///
    /// If a setting was not taken; then the settings are unchanged.
    fn configure(&mut self, settings: &[Setting]) -> Result<Vec<Setting>> {
        let database = self.database()?;
        let settings = database.configure(sql::parse_settings(settings)?)?;
        Ok(settings.list())
    }

    /// Returns the owner of the stable memory.
    fn occupant(&self) -> Occupant;

    /// Returns the SQLite library, if there is one.
    fn sqlite_description(&self) -> Option<SqliteDescription> {
        None
    }

    /// Returns the crates that decide what the engines cost.
    fn crates(&self) -> Vec<CrateVersion>;

    /// Writes the state to stable memory before an upgrade. `payload_bytes` is the host's part of
    /// it.
    ///
    /// # Errors
    ///
    /// If there is no room.
    fn save(&mut self, payload_bytes: u32) -> Result<()>;

    /// Restores the state after an upgrade, and returns the host's part of it.
    fn load(&mut self) -> u32;
}

/// An SQL database, in addition to what [`KeyValue`] requires.
pub trait Database {
    /// Closes the connection and opens it with other settings; a setting that is left out takes the
    /// library's default. Returns the settings in effect.
    ///
    /// # Errors
    ///
    /// If a setting was not taken; then the settings are unchanged.
    fn configure(&mut self, config: SqliteConfig) -> Result<SqliteSettings>;

    /// Returns the settings in effect. Opens the connection if it is closed.
    ///
    /// # Errors
    ///
    /// SQLite's.
    fn settings(&mut self) -> Result<SqliteSettings>;

    /// Closes the connection. The next use opens it with the same settings.
    fn close(&mut self);

    /// Opens the connection if it is closed.
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

/// Parses the versions of crates that a canister's build script has exported as `CRATE_VERSIONS`.
pub fn crate_versions(exported: &str) -> Vec<CrateVersion> {
    let versions = exported.split(',').filter_map(|version| version.split_once(' '));
    versions
        .map(|(name, version)| CrateVersion { name: name.to_owned(), version: version.to_owned() })
        .collect()
}
