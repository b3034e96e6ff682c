//! The engines of a canister that offers the suite, and the description of their rows.

use super::{KeyValue, digest_rows};
use stablebench_harness::{Canister, description, max_rows, sql};
use stablebench_protocol::{
    DEFAULT_PAYLOAD_BYTES, Description, Digest, Engine, EngineDescription, Error, Occupant, Result,
    Setting, SqliteConfig, SqliteSettings,
};
use stablebench_workload::ContentDigest;

/// The maximum number of rows, and of their bytes, whose digest `describe` includes.
const DESCRIBED_ROWS: u64 = 10_000;
const DESCRIBED_BYTES: u64 = 16 << 20;

/// A canister with engines of rows.
pub trait RowEngines: Canister {
    /// Its engines, in the order in which `describe` lists them.
    const ENGINES: &'static [Engine];

    /// Returns an engine.
    ///
    /// # Errors
    ///
    /// If the canister does not have it, or another engine owns the stable memory.
    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue>;

    /// Returns the SQL database with the table of the rows.
    ///
    /// # Errors
    ///
    /// If the canister has none, or another engine owns the stable memory.
    fn database(&mut self) -> Result<&mut dyn Database> {
        Err(Error::EngineUnavailable { engine: Engine::SQLITE })
    }

    /// Returns the payload of rows that methods called by hand write. An upgrade keeps it.
    fn payload(&mut self) -> &mut PayloadBytes;
}

/// The payload of rows that methods called by hand write, in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PayloadBytes(pub u32);

impl Default for PayloadBytes {
    fn default() -> Self {
        Self(DEFAULT_PAYLOAD_BYTES)
    }
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

/// Opens the connection of a canister's database with these settings: [`Canister::configure`] where the
/// database is the only engine with settings.
///
/// # Errors
///
/// If a setting is unknown or was not taken; then the settings are unchanged.
pub fn configure(canister: &mut impl RowEngines, settings: &[Setting]) -> Result<Vec<Setting>> {
    let database = canister.database()?;
    let settings = database.configure(sql::parse_settings(settings)?)?;
    Ok(settings.list())
}

/// Describes a canister and the rows of its engines: [`Canister::describe`].
///
/// # Errors
///
/// The engines'.
pub fn describe<C: RowEngines>(canister: &mut C) -> Result<Description> {
    // Looking at the engines may open what was closed, and so grow both memories.
    let mut description = description(canister);
    let PayloadBytes(payload_bytes) = *canister.payload();
    description.payload_bytes = payload_bytes;
    description.max_rows = max_rows(payload_bytes);
    for &engine in C::ENGINES {
        if description.occupant == Occupant::Nobody {
            description.engines.push(EngineDescription {
                engine,
                rows: 0,
                stored_bytes: 0,
                virtual_bytes: 0,
                cache_bytes: 0,
                digest: Some(Digest::default()),
            });
        } else if let Ok(store) = canister.engine(engine) {
            description.engines.push(described(engine, store)?);
        }
    }
    Ok(description)
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
