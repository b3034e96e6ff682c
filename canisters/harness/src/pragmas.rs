//! The pragmas that SQLite's connection is opened with, in the order they are issued.
//!
//! ```text
//! temp_store     first, since a VACUUM to change the page size needs temporary space
//! locking_mode   before the database is read, so that a write-ahead log needs no
//!                shared memory, which canisters do not have
//! page_size      before the first table and before journal_mode=WAL, which fixes it
//! journal_mode
//! synchronous
//! cache_size
//! ```

use stablebench_protocol::{
    Error, JournalMode, LockingMode, Result, SqliteConfig, SqliteSettings, Synchronous, TempStore,
};

/// A setting that SQLite reads as a word and may report as a number.
pub trait Keyword: Copy + PartialEq + 'static {
    /// The pragma.
    const PRAGMA: &'static str;

    /// Values, the words that set them, and what SQLite reports.
    const TABLE: &'static [(Self, &'static str, &'static str)];

    /// The word that sets the value.
    fn word(self) -> &'static str {
        // Every value is in its table, as a test checks.
        Self::TABLE.iter().find(|(value, ..)| *value == self).map_or("", |(_, word, _)| word)
    }

    /// The value that SQLite reports.
    ///
    /// # Errors
    ///
    /// Where the report is not in the table.
    fn from_report(report: &str) -> Result<Self> {
        Self::TABLE
            .iter()
            .find(|(_, _, reported)| *reported == report)
            .map(|(value, ..)| *value)
            .ok_or_else(|| Error::UnknownSetting {
                setting: Self::PRAGMA.to_owned(),
                got: report.to_owned(),
            })
    }
}

impl Keyword for JournalMode {
    const PRAGMA: &'static str = "journal_mode";
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Delete, "delete", "delete"),
        (Self::Truncate, "truncate", "truncate"),
        (Self::Persist, "persist", "persist"),
        (Self::Memory, "memory", "memory"),
        (Self::Wal, "wal", "wal"),
        (Self::Off, "off", "off"),
    ];
}

impl Keyword for Synchronous {
    const PRAGMA: &'static str = "synchronous";
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Off, "off", "0"),
        (Self::Normal, "normal", "1"),
        (Self::Full, "full", "2"),
        (Self::Extra, "extra", "3"),
    ];
}

impl Keyword for LockingMode {
    const PRAGMA: &'static str = "locking_mode";
    const TABLE: &'static [(Self, &'static str, &'static str)] =
        &[(Self::Normal, "normal", "normal"), (Self::Exclusive, "exclusive", "exclusive")];
}

impl Keyword for TempStore {
    const PRAGMA: &'static str = "temp_store";
    const TABLE: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Default, "default", "0"),
        (Self::File, "file", "1"),
        (Self::Memory, "memory", "2"),
    ];
}

/// A value for every setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pragmas {
    /// What happens to the rollback journal.
    pub journal_mode: JournalMode,
    /// When files are synced.
    pub synchronous: Synchronous,
    /// How long locks are kept.
    pub locking_mode: LockingMode,
    /// Where temporary tables go.
    pub temp_store: TempStore,
    /// Bytes a page.
    pub page_size: u32,
    /// Pages cached; where negative, KiB cached.
    pub cache_size: i32,
}

impl Pragmas {
    /// The settings chosen, with defaults for the rest.
    pub fn new(config: SqliteConfig, default: Self) -> Self {
        Self {
            journal_mode: config.journal_mode.unwrap_or(default.journal_mode),
            synchronous: config.synchronous.unwrap_or(default.synchronous),
            locking_mode: config.locking_mode.unwrap_or(default.locking_mode),
            temp_store: config.temp_store.unwrap_or(default.temp_store),
            page_size: config.page_size.unwrap_or(default.page_size),
            cache_size: config.cache_size.unwrap_or(default.cache_size),
        }
    }

    /// The settings as chosen one by one.
    pub fn config(&self) -> SqliteConfig {
        SqliteConfig {
            journal_mode: Some(self.journal_mode),
            synchronous: Some(self.synchronous),
            locking_mode: Some(self.locking_mode),
            temp_store: Some(self.temp_store),
            page_size: Some(self.page_size),
            cache_size: Some(self.cache_size),
        }
    }

    /// The statements that set everything, in the order above.
    pub fn statements(&self) -> String {
        format!(
            "PRAGMA temp_store={};PRAGMA locking_mode={};PRAGMA page_size={};\
             PRAGMA journal_mode={};PRAGMA synchronous={};PRAGMA cache_size={};",
            self.temp_store.word(),
            self.locking_mode.word(),
            self.page_size,
            self.journal_mode.word(),
            self.synchronous.word(),
            self.cache_size,
        )
    }

    /// The statements that change the page size of a database without rows.
    pub fn resize_statements(&self) -> String {
        format!(
            "PRAGMA journal_mode=delete;PRAGMA page_size={};VACUUM;PRAGMA journal_mode={};",
            self.page_size,
            self.journal_mode.word(),
        )
    }

    /// Compares with what SQLite reports; `fixes` tells why the library never takes another
    /// value of a pragma, where it does not.
    ///
    /// # Errors
    ///
    /// The first setting that was not taken.
    pub fn check(
        &self,
        got: &SqliteSettings,
        fixes: impl Fn(&str) -> Option<&'static str>,
    ) -> Result<()> {
        let words = |pragma, (asked, got): (&str, &str), reason: Option<&str>| match asked == got {
            true => Ok(()),
            false => Err(not_taken(pragma, asked, got, fixes(pragma).or(reason))),
        };
        let needs_shared_memory =
            self.journal_mode == JournalMode::Wal && self.locking_mode == LockingMode::Normal;
        words(TempStore::PRAGMA, (self.temp_store.word(), got.temp_store.word()), None)?;
        words(LockingMode::PRAGMA, (self.locking_mode.word(), got.locking_mode.word()), None)?;
        if self.page_size != got.page_size {
            let reason = fixes("page_size").or(Some(PAGE_SIZE));
            return Err(not_taken("page_size", self.page_size, got.page_size, reason));
        }
        words(
            JournalMode::PRAGMA,
            (self.journal_mode.word(), got.journal_mode.word()),
            needs_shared_memory.then_some(WAL),
        )?;
        words(Synchronous::PRAGMA, (self.synchronous.word(), got.synchronous.word()), None)?;
        if self.cache_size != got.cache_size {
            return Err(not_taken("cache_size", self.cache_size, got.cache_size, None));
        }
        Ok(())
    }
}

const PAGE_SIZE: &str =
    "a page is a power of two from 512 to 65536 bytes, and is fixed while there are rows";

const WAL: &str = "a write-ahead log needs shared memory, which a canister does not have, \
                   unless locking_mode is exclusive";

fn not_taken(
    setting: &str,
    asked: impl ToString,
    got: impl ToString,
    reason: Option<&str>,
) -> Error {
    Error::SettingNotTaken {
        setting: setting.to_owned(),
        asked: asked.to_string(),
        got: got.to_string(),
        reason: reason.map(str::to_owned),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DEFAULT: Pragmas = Pragmas {
        journal_mode: JournalMode::Persist,
        synchronous: Synchronous::Off,
        locking_mode: LockingMode::Exclusive,
        temp_store: TempStore::Memory,
        page_size: 4096,
        cache_size: 500_000,
    };

    fn settings(pragmas: &Pragmas) -> SqliteSettings {
        SqliteSettings {
            journal_mode: pragmas.journal_mode,
            synchronous: pragmas.synchronous,
            locking_mode: pragmas.locking_mode,
            temp_store: pragmas.temp_store,
            page_size: pragmas.page_size,
            cache_size: pragmas.cache_size,
            auto_vacuum: 0,
            page_count: 0,
            freelist_count: 0,
        }
    }

    #[test]
    fn what_is_left_out_takes_the_default() {
        assert_eq!(Pragmas::new(SqliteConfig::default(), DEFAULT), DEFAULT);
        let config = SqliteConfig { page_size: Some(512), ..SqliteConfig::default() };
        assert_eq!(Pragmas::new(config, DEFAULT), Pragmas { page_size: 512, ..DEFAULT });
        let other = Pragmas { cache_size: 7, ..DEFAULT };
        assert_eq!(Pragmas::new(other.config(), DEFAULT), other);
    }

    #[test]
    fn the_statements_come_in_one_order() {
        assert_eq!(
            DEFAULT.statements(),
            "PRAGMA temp_store=memory;PRAGMA locking_mode=exclusive;PRAGMA page_size=4096;\
             PRAGMA journal_mode=persist;PRAGMA synchronous=off;PRAGMA cache_size=500000;",
        );
    }

    #[test]
    fn a_setting_that_was_not_taken_is_named() {
        let wal = Pragmas {
            journal_mode: JournalMode::Wal,
            locking_mode: LockingMode::Normal,
            ..DEFAULT
        };
        let check = |got: &SqliteSettings, reason| wal.check(got, |_| reason);
        assert_eq!(check(&settings(&wal), None), Ok(()));
        let got = SqliteSettings { journal_mode: JournalMode::Delete, ..settings(&wal) };
        for (fixed, reason) in
            [(None, WAL), (Some("the library has it so"), "the library has it so")]
        {
            let error = check(&got, fixed).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!(
                    "SQLite did not take journal_mode=wal: it runs with delete, because {reason}"
                ),
            );
        }
    }

    #[test]
    fn every_value_has_a_word_that_is_read_back() {
        fn check<K: Keyword + std::fmt::Debug>(values: &[K]) {
            assert_eq!(values.len(), K::TABLE.len());
            for value in values {
                let (_, word, report) = K::TABLE.iter().find(|(one, ..)| one == value).unwrap();
                assert_eq!(value.word(), *word);
                assert_eq!(K::from_report(report), Ok(*value));
            }
            assert!(K::from_report("else").is_err());
        }
        use JournalMode::*;
        check(&[Delete, Truncate, Persist, Memory, Wal, Off]);
        check(&[Synchronous::Off, Synchronous::Normal, Synchronous::Full, Synchronous::Extra]);
        check(&[LockingMode::Normal, LockingMode::Exclusive]);
        check(&[TempStore::Default, TempStore::File, TempStore::Memory]);
    }
}
