//! SQLite's settings, and that it works with them.

use super::canister::{Bench, count, rows};
use stablebench_protocol::{
    Engine, JournalMode, LockingMode, Result, SqliteConfig, SqliteSettings, Synchronous, TempStore,
};

pub const MODES: [JournalMode; 6] = [
    JournalMode::Delete,
    JournalMode::Truncate,
    JournalMode::Persist,
    JournalMode::Memory,
    JournalMode::Wal,
    JournalMode::Off,
];

/// A value for every setting.
pub fn config(journal_mode: JournalMode, locking_mode: LockingMode) -> SqliteConfig {
    SqliteConfig {
        journal_mode: Some(journal_mode),
        synchronous: Some(Synchronous::Normal),
        locking_mode: Some(locking_mode),
        temp_store: Some(TempStore::Memory),
        page_size: Some(4096),
        cache_size: Some(1_000),
    }
}

pub fn configure(bench: &mut Bench, config: SqliteConfig) -> Result<SqliteSettings> {
    bench.update("configure_sqlite", (config,))
}

/// Configures, which must work, and compares what is read back.
#[track_caller]
pub fn take(bench: &mut Bench, config: SqliteConfig) {
    let got = configure(bench, config).unwrap_or_else(|error| panic!("{config:?}: {error}"));
    assert_eq!(taken(&got), config);
    assert_eq!(bench.settings(), got);
}

/// The settings as if they had been asked for one by one.
pub fn taken(settings: &SqliteSettings) -> SqliteConfig {
    SqliteConfig {
        journal_mode: Some(settings.journal_mode),
        synchronous: Some(settings.synchronous),
        locking_mode: Some(settings.locking_mode),
        temp_store: Some(settings.temp_store),
        page_size: Some(settings.page_size),
        cache_size: Some(settings.cache_size),
    }
}

/// Adds five rows after those that are there, and finds them.
pub fn works(bench: &mut Bench, there: u64) {
    let added = bench.measure("insert_end", count(Engine::Sqlite, 5));
    assert_eq!(added.rows, 5);
    let read = bench.measure("read_users", rows(Engine::Sqlite, there * 10, 10, 6));
    assert_eq!(read.rows, 5);
    assert_eq!(bench.digest(Engine::Sqlite, 1_000).rows, there + 5);
}
