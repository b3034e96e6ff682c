//! SQLite's settings that are not taken: the old ones stay.

use super::canister::{Bench, rows};
use super::sqlite::{MODES, config, configure, take, taken, works};
use candid::{CandidType, Deserialize};
use stablebench_protocol::{
    Engine, Error, JournalMode, LockingMode, Result, SqliteConfig, SqliteSettings,
};

fn refuse(bench: &Bench, config: SqliteConfig, name: &str, asked: &str, got: &str) {
    let before = bench.contents();
    let mut bench = bench.fork();
    match configure(&mut bench, config) {
        Err(Error::SettingNotTaken { setting, asked: asked_for, got: in_effect, reason }) => {
            let told = (setting.as_str(), asked_for.as_str(), in_effect.as_str());
            assert_eq!(told, (name, asked, got));
            assert!(reason.is_some(), "{name}={asked}");
        }
        other => panic!("{config:?}: {other:?}"),
    }
    assert_eq!(bench.contents(), before, "{config:?}");
    works(&mut bench, 100);
    // The settings are kept, not just the connection.
    bench.do_it("close_connection", ());
    bench.upgrade();
    assert_eq!(taken(&bench.settings()), taken(&before.settings.unwrap()), "{config:?}");
}

#[test]
fn a_setting_that_is_not_taken_leaves_the_old_ones() {
    for mode in MODES {
        let old = config(mode, LockingMode::Exclusive);
        let mut bench = Bench::configured(old);
        bench.measure("add_users", rows(Engine::Sqlite, 0, 10, 100));
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
fn a_page_size_that_is_none_is_refused_without_rows_too() {
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

/// A request of a caller that knows another interface.
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
fn a_value_that_is_not_in_the_interface_is_no_value() {
    let mut bench = Bench::configured(config(JournalMode::Delete, LockingMode::Normal));
    let config = OtherConfig { journal_mode: Some(OtherMode::Wal2) };
    // So Candid has it: an option of another type is null. What is in effect is told.
    let got: Result<SqliteSettings> = bench.update("configure_sqlite", (config,));
    assert_eq!(got.unwrap().journal_mode, JournalMode::Persist);
}
