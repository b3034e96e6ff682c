//! SQLite's settings: taken, read back, or refused.

use super::canister::{Bench, count, rows};
use candid::{CandidType, Deserialize};
use stablebench_protocol::{
    Engine, Error, JournalMode, LockingMode, Result, Setting, SqliteConfig, SqliteSettings,
    Synchronous, TempStore,
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

/// Configures and compares the settings that are read back.
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

/// Adds five rows after the existing ones, and finds them.
pub fn works(bench: &mut Bench, existing: u64) {
    let added = bench.measure("insert_end", count(Engine::SQLITE, 5));
    assert_eq!(added.rows, 5);
    let read = bench.measure("read_users", rows(Engine::SQLITE, existing * 10, 10, 6));
    assert_eq!(read.rows, 5);
    assert_eq!(bench.digest(Engine::SQLITE, 1_000).rows, existing + 5);
}

#[test]
fn a_setting_that_is_left_out_takes_the_default() {
    let mut bench = Bench::configured(config(JournalMode::Wal, LockingMode::Exclusive));
    let settings = configure(&mut bench, SqliteConfig::default()).unwrap();
    // The defaults of `ic-rusqlite` 0.5.
    let default = SqliteConfig {
        journal_mode: Some(JournalMode::Persist),
        synchronous: Some(Synchronous::Off),
        locking_mode: Some(LockingMode::Exclusive),
        temp_store: Some(TempStore::Memory),
        page_size: Some(4096),
        cache_size: Some(500_000),
    };
    assert_eq!(taken(&settings), default);
    assert_eq!(taken(&Bench::new().settings()), default, "of a fresh canister");
}

#[test]
fn every_journal_mode_works() {
    for mode in MODES {
        let mut bench = Bench::new();
        take(&mut bench, config(mode, LockingMode::Exclusive));
        works(&mut bench, 0);
        if mode != JournalMode::Wal {
            take(&mut bench, config(mode, LockingMode::Normal));
            works(&mut bench, 5);
        }
    }
}

#[test]
fn every_journal_mode_follows_every_other() {
    let locking = [LockingMode::Exclusive, LockingMode::Normal];
    let mut configs: Vec<SqliteConfig> =
        MODES.into_iter().flat_map(|mode| locking.map(|locking| config(mode, locking))).collect();
    configs.retain(|config| *config != self::config(JournalMode::Wal, LockingMode::Normal));
    let filled = Bench::filled(&[Engine::SQLITE], 100);
    for &first in &configs {
        let mut bench = filled.fork();
        take(&mut bench, first);
        for &second in &configs {
            let mut bench = bench.fork();
            take(&mut bench, second);
            works(&mut bench, 100);
        }
    }
}

#[test]
fn every_value_is_read_back() {
    let base = config(JournalMode::Persist, LockingMode::Exclusive);
    let mut bench = Bench::filled(&[Engine::SQLITE], 100);
    use Synchronous::*;
    for synchronous in [Off, Normal, Full, Extra].map(Some) {
        take(&mut bench, SqliteConfig { synchronous, ..base });
    }
    for temp_store in [TempStore::Default, TempStore::File, TempStore::Memory].map(Some) {
        take(&mut bench, SqliteConfig { temp_store, ..base });
    }
    for cache_size in [0, 1, -1, -2_000, i32::MAX, i32::MIN].map(Some) {
        take(&mut bench, SqliteConfig { cache_size, ..base });
    }
    works(&mut bench, 100);
}

#[test]
fn every_page_size_works_while_there_are_no_rows() {
    let sizes: Vec<u32> = (9..=16).map(|power| 1 << power).collect();
    for mode in MODES {
        let base = config(mode, LockingMode::Exclusive);
        // From the smallest to the largest, and back on the file that is there then.
        let mut bench = Bench::new();
        for &size in sizes.iter().chain(sizes.iter().rev()) {
            let page_size = Some(size);
            take(&mut bench, SqliteConfig { page_size, ..base });
            works(&mut bench, 0);
            bench.call("reset", (Engine::SQLITE,));
        }
    }
}

#[test]
fn temporary_files_do_for_a_new_page_size() {
    let config = SqliteConfig {
        temp_store: Some(TempStore::File),
        page_size: Some(1024),
        ..config(JournalMode::Delete, LockingMode::Normal)
    };
    let mut bench = Bench::filled(&[Engine::SQLITE], 1_000);
    bench.call("reset", (Engine::SQLITE,));
    take(&mut bench, config);
    works(&mut bench, 0);
}

fn refuse(bench: &Bench, config: SqliteConfig, name: &str, asked: &str, got: &str) {
    let before = bench.contents();
    let mut bench = bench.fork();
    match configure(&mut bench, config) {
        Err(Error::SettingNotTaken { setting, asked: asked_for, got: in_effect, reason }) => {
            let reported = (setting.as_str(), asked_for.as_str(), in_effect.as_str());
            assert_eq!(reported, (name, asked, got));
            assert!(reason.is_some(), "{name}={asked}");
        }
        other => panic!("{config:?}: {other:?}"),
    }
    assert_eq!(bench.contents(), before, "{config:?}");
    works(&mut bench, 100);
    // The settings are unchanged, and not only the connection.
    bench.call("close_connection", ());
    bench.upgrade();
    assert_eq!(taken(&bench.settings()), taken(&before.settings.unwrap()), "{config:?}");
}

#[test]
fn a_setting_that_is_not_taken_leaves_the_old_ones() {
    for mode in MODES {
        let old = config(mode, LockingMode::Exclusive);
        let mut bench = Bench::configured(old);
        bench.measure("add_users", rows(Engine::SQLITE, 0, 10, 100));
        for size in [0, 256, 1000, 131_072, u32::MAX, 8192] {
            let page_size = Some(size);
            let other = config(JournalMode::Memory, LockingMode::Exclusive);
            let refused = SqliteConfig { page_size, ..other };
            refuse(&bench, refused, "page_size", &size.to_string(), "4096");
            let locking_mode = Some(LockingMode::Normal);
            let refused = SqliteConfig { locking_mode, ..refused };
            refuse(&bench, refused, "page_size", &size.to_string(), "4096");
        }
        let wal = config(JournalMode::Wal, LockingMode::Normal);
        refuse(&bench, wal, "journal_mode", "wal", "delete");
    }
}

#[test]
fn an_invalid_page_size_is_refused_even_without_rows() {
    for size in [0, 1000] {
        let mut bench = Bench::new();
        take(&mut bench, config(JournalMode::Persist, LockingMode::Exclusive));
        let before = bench.contents();
        let refused = configure(
            &mut bench,
            SqliteConfig { page_size: Some(size), ..SqliteConfig::default() },
        );
        assert!(
            matches!(&refused, Err(Error::SettingNotTaken { setting, .. }) if setting == "page_size"),
            "{refused:?}"
        );
        assert_eq!(bench.contents(), before);
        works(&mut bench, 0);
    }
}

/// The argument of a caller with another interface.
#[derive(CandidType, Deserialize)]
struct OtherConfig {
    journal_mode: Option<OtherMode>,
}

#[derive(CandidType, Deserialize)]
enum OtherMode {
    #[serde(rename = "wal2")]
    Wal2,
}

#[test]
fn a_value_that_is_not_in_the_interface_is_ignored() {
    let mut bench = Bench::configured(config(JournalMode::Delete, LockingMode::Normal));
    let config = OtherConfig { journal_mode: Some(OtherMode::Wal2) };
    // In Candid, an option of another type is null. The reply contains the value in effect.
    let got: Result<SqliteSettings> = bench.update("configure_sqlite", (config,));
    assert_eq!(got.unwrap().journal_mode, JournalMode::Persist);
}

/// Settings by their names are the same settings.
#[test]
fn settings_are_configured_by_name() {
    let mut bench = Bench::filled(&[Engine::SQLITE], 100);
    let configure = |bench: &mut Bench, settings: &[(&str, &str)]| -> Result<Vec<Setting>> {
        let settings: Vec<Setting> =
            settings.iter().map(|(name, value)| Setting::new(*name, value)).collect();
        bench.update("configure", (settings,))
    };
    let wal = [("journal_mode", "wal"), ("cache_size", "-2000"), ("synchronous", "full")];
    let taken = configure(&mut bench, &wal).unwrap();
    assert_eq!(taken, bench.settings().list());
    let settings = bench.settings();
    assert_eq!((settings.journal_mode, settings.cache_size), (JournalMode::Wal, -2_000));
    assert_eq!((settings.synchronous, settings.page_size), (Synchronous::Full, 4096));
    assert_eq!(bench.update("configure", (taken.clone(),)), Ok(taken));
    works(&mut bench, 100);
    let before = bench.contents();
    for (settings, wrong) in [
        (vec![("journal_mode", "wal2")], "journal_mode"),
        (vec![("page_size", "4k")], "page_size"),
        (vec![("journal_mode", "wal"), ("mmap_size", "0")], "mmap_size"),
        (vec![("cache_size", "1"), ("cache_size", "1")], "cache_size"),
    ] {
        let refused = configure(&mut bench, &settings);
        assert!(
            matches!(&refused, Err(Error::InvalidSetting { setting, .. }) if setting == wrong),
            "{refused:?}"
        );
        assert_eq!(bench.contents(), before);
    }
    let refused = configure(&mut bench, &[("page_size", "8192")]);
    assert!(
        matches!(&refused, Err(Error::SettingNotTaken { setting, .. }) if setting == "page_size"),
        "{refused:?}"
    );
    assert_eq!(bench.contents(), before);
    // Nothing asked for: the defaults.
    let defaults = configure(&mut bench, &[]).unwrap();
    assert!(defaults.contains(&Setting::new("journal_mode", "persist")), "{defaults:?}");
}
