//! SQLite's settings: asked for, in effect, and read back.

use super::canister::Bench;
use super::sqlite::{MODES, config, configure, take, taken, works};
use stablebench_protocol::{
    Engine, JournalMode, LockingMode, SqliteConfig, Synchronous, TempStore,
};

#[test]
fn what_is_left_out_takes_the_default() {
    let mut bench = Bench::configured(config(JournalMode::Wal, LockingMode::Exclusive));
    let settings = configure(&mut bench, SqliteConfig::default()).unwrap();
    // As `ic-rusqlite` 0.5 opens its connection.
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
    let filled = Bench::filled(&[Engine::Sqlite], 100);
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
    let mut bench = Bench::filled(&[Engine::Sqlite], 100);
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
            bench.do_it("reset", (Engine::Sqlite,));
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
    let mut bench = Bench::filled(&[Engine::Sqlite], 1_000);
    bench.do_it("reset", (Engine::Sqlite,));
    take(&mut bench, config);
    works(&mut bench, 0);
}
