//! The trait of a canister: its suites, its database, and its state over an upgrade.

use crate::{Sql, SuiteEntry, heap_pages, max_rows, stable_pages};
use stablebench_protocol::{
    CrateVersion, DEFAULT_PAYLOAD_BYTES, Description, Engine, Error, Occupant, Result, Setting,
    SqliteDescription, Storage,
};

/// A canister.
///
/// A suite whose work needs more than [`sql`](Self::sql) has a trait of its own for that, which the
/// canisters that offer the suite implement.
pub trait Canister: Sized + 'static {
    /// The suites that it offers.
    const SUITES: &'static [SuiteEntry<Self>];

    /// Returns the SQL database in stable memory or on the heap.
    ///
    /// # Errors
    ///
    /// If the canister has none, or another engine owns the stable memory.
    fn sql(&mut self, _: Storage) -> Result<&mut dyn Sql> {
        Err(Error::EngineUnavailable { engine: Engine::SQLITE })
    }

    /// Opens the engine again with these settings; a setting that is left out takes the library's
    /// default. Returns all settings in effect.
    ///
    /// # Errors
    ///
    /// If the canister has no settings, or one was not taken; then the settings are unchanged.
    fn configure(&mut self, _: &[Setting]) -> Result<Vec<Setting>> {
        Err(Error::EngineUnavailable { engine: Engine::SQLITE })
    }

    /// Describes the canister and its content.
    ///
    /// # Errors
    ///
    /// The engines'.
    fn describe(&mut self) -> Result<Description> {
        Ok(description(self))
    }

    /// Returns the owner of the stable memory.
    fn occupant(&self) -> Occupant;

    /// Returns the SQLite library, if there is one.
    fn sqlite_description(&self) -> Option<SqliteDescription> {
        None
    }

    /// Returns the crates that decide what the engines cost.
    fn crates(&self) -> Vec<CrateVersion>;

    /// Writes the state to stable memory before an upgrade.
    ///
    /// # Errors
    ///
    /// If there is no room.
    fn save(&mut self) -> Result<()>;

    /// Restores the state after an upgrade.
    fn load(&mut self);
}

/// Describes a canister without the content of its engines.
pub fn description(canister: &impl Canister) -> Description {
    Description {
        occupant: canister.occupant(),
        engines: Vec::new(),
        payload_bytes: DEFAULT_PAYLOAD_BYTES,
        max_rows: max_rows(DEFAULT_PAYLOAD_BYTES),
        heap_pages: heap_pages(),
        stable_pages: stable_pages(),
        sqlite: canister.sqlite_description(),
        crates: canister.crates(),
    }
}

/// Parses the versions of crates that a canister's build script has exported as `CRATE_VERSIONS`.
pub fn crate_versions(exported: &str) -> Vec<CrateVersion> {
    let versions = exported.split(',').filter_map(|version| version.split_once(' '));
    versions
        .map(|(name, version)| CrateVersion { name: name.to_owned(), version: version.to_owned() })
        .collect()
}
