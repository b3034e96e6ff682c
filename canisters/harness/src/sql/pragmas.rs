//! The settings of SQLite's connection. Pragmas are issued in this order:
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

use super::{Prepare, Sql, first_number};
use stablebench_protocol::{
    Error, JournalMode, Keyword, LockingMode, Result, Setting, SqliteConfig, SqliteSettings,
    Synchronous, TempStore,
};
use stablebench_workload::sql::Value;
use std::ops::ControlFlow;

/// A value for every setting of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pragmas {
    /// The kind of journal.
    pub journal_mode: JournalMode,
    /// When files are synced.
    pub synchronous: Synchronous,
    /// The duration of locks.
    pub locking_mode: LockingMode,
    /// The place of temporary tables.
    pub temp_store: TempStore,
    /// Bytes per page.
    pub page_size: u32,
    /// The number of cached pages, or the negative number of cached KiB.
    pub cache_size: i32,
}

impl Pragmas {
    /// The settings that were chosen, and the defaults of all others.
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

    /// The settings, all of them chosen.
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

    /// The statements that issue all pragmas in their order.
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

    /// Compares them with the settings that SQLite reports. `fixed_because` returns the reason why the
    /// library never takes another value of a pragma, if it does not.
    ///
    /// # Errors
    ///
    /// The first setting that was not taken.
    pub fn check(
        &self,
        got: &SqliteSettings,
        fixed_because: impl Fn(&str) -> Option<&'static str>,
    ) -> Result<()> {
        let words = |pragma, (asked, got): (&str, &str), reason: Option<&str>| match asked == got {
            true => Ok(()),
            false => Err(not_taken(pragma, asked, got, fixed_because(pragma).or(reason))),
        };
        let needs_shared_memory =
            self.journal_mode == JournalMode::Wal && self.locking_mode == LockingMode::Normal;
        words(TempStore::PRAGMA, (self.temp_store.word(), got.temp_store.word()), None)?;
        words(LockingMode::PRAGMA, (self.locking_mode.word(), got.locking_mode.word()), None)?;
        if self.page_size != got.page_size {
            let reason = fixed_because("page_size").or(Some(PAGE_SIZE));
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

/// Closes the connection and opens it with other settings; a setting that is left out takes the
/// library's default. Returns the settings in effect.
///
/// # Errors
///
/// If a setting was not taken; then the settings are unchanged.
pub fn reopen(sql: &mut dyn Sql, config: SqliteConfig) -> Result<SqliteSettings> {
    let before = sql.pragmas();
    let pragmas = Pragmas::new(config, sql.defaults());
    if before.journal_mode == JournalMode::Wal && pragmas.locking_mode == LockingMode::Normal {
        // Without the exclusive lock, a file with a write-ahead log cannot be opened.
        sql.batch("PRAGMA journal_mode=delete")?;
    }
    let outcome = reopened(sql, pragmas);
    if outcome.is_err() {
        // A journal mode can be stored in the file: set the old one at once.
        sql.replace_pragmas(before);
        sql.open()?;
    }
    outcome
}

fn reopened(sql: &mut dyn Sql, pragmas: Pragmas) -> Result<SqliteSettings> {
    sql.replace_pragmas(pragmas);
    sql.open()?;
    let mut settings = sql.settings()?;
    if settings.page_size != pragmas.page_size
        && first_number(sql, "SELECT NOT EXISTS (SELECT 1 FROM sqlite_schema)", &[])? == Some(1)
    {
        sql.resize()?;
        settings = sql.settings()?;
    }
    pragmas.check(&settings, |pragma| sql.fixed_because(pragma))?;
    Ok(settings)
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

/// Parses settings by the names of SQLite's pragmas.
///
/// # Errors
///
/// If a name is unknown or listed twice, or a value is none of its pragma.
pub fn parse_settings(settings: &[Setting]) -> Result<SqliteConfig> {
    let mut config = SqliteConfig::default();
    for setting in settings {
        match setting.name.as_str() {
            JournalMode::PRAGMA => set_word(&mut config.journal_mode, setting),
            Synchronous::PRAGMA => set_word(&mut config.synchronous, setting),
            LockingMode::PRAGMA => set_word(&mut config.locking_mode, setting),
            TempStore::PRAGMA => set_word(&mut config.temp_store, setting),
            "page_size" => {
                set(&mut config.page_size, setting, setting.value.parse().ok(), number_of)
            }
            "cache_size" => {
                set(&mut config.cache_size, setting, setting.value.parse().ok(), number_of)
            }
            _ => Err(invalid(setting, "there is no such setting".to_owned())),
        }?;
    }
    Ok(config)
}

fn set_word<K: Keyword>(chosen: &mut Option<K>, setting: &Setting) -> Result<()> {
    set(chosen, setting, K::from_word(&setting.value), || {
        let words: Vec<&str> = K::WORDS.iter().map(|(_, word)| *word).collect();
        format!("it is one of {}", words.join(", "))
    })
}

fn set<T>(
    chosen: &mut Option<T>,
    setting: &Setting,
    value: Option<T>,
    expected: impl FnOnce() -> String,
) -> Result<()> {
    let value = value.ok_or_else(|| invalid(setting, expected()))?;
    match chosen.replace(value) {
        None => Ok(()),
        Some(_) => Err(invalid(setting, "it is set twice".to_owned())),
    }
}

fn number_of() -> String {
    "it is a number".to_owned()
}

fn invalid(setting: &Setting, reason: String) -> Error {
    let Setting { name, value } = setting.clone();
    Error::InvalidSetting { setting: name, value, reason }
}

/// Returns the settings of a connection as SQLite reports them.
///
/// # Errors
///
/// The engine's; if it reports an unknown value.
pub fn settings(sql: &mut (impl Prepare + ?Sized)) -> Result<SqliteSettings> {
    Ok(SqliteSettings {
        journal_mode: keyword(sql)?,
        synchronous: keyword(sql)?,
        locking_mode: keyword(sql)?,
        temp_store: keyword(sql)?,
        page_size: number(sql, "page_size")?,
        cache_size: number(sql, "cache_size")?,
        auto_vacuum: number(sql, "auto_vacuum")?,
        page_count: number(sql, "page_count")?,
        freelist_count: number(sql, "freelist_count")?,
    })
}

fn keyword<K: Keyword>(sql: &mut (impl Prepare + ?Sized)) -> Result<K> {
    let got = pragma(sql, K::PRAGMA)?;
    reported(&got).ok_or_else(|| Error::UnknownSetting { setting: K::PRAGMA.to_owned(), got })
}

/// The value that SQLite reports as a word or as a number.
fn reported<K: Keyword>(report: &str) -> Option<K> {
    let by_number = || K::WORDS.get(report.parse::<usize>().ok()?).map(|(value, _)| *value);
    K::from_word(report).or_else(by_number)
}

/// Returns the number that a pragma reports.
///
/// # Errors
///
/// The engine's; if it reports something else.
pub fn number<N: std::str::FromStr>(sql: &mut (impl Prepare + ?Sized), setting: &str) -> Result<N> {
    let got = pragma(sql, setting)?;
    let unknown = |got| Error::UnknownSetting { setting: setting.to_owned(), got };
    got.parse().map_err(|_| unknown(got))
}

/// Returns the text that a pragma reports; empty if the engine does not know it.
fn pragma(sql: &mut (impl Prepare + ?Sized), setting: &str) -> Result<String> {
    let mut report = String::new();
    sql.prepared(&[&format!("PRAGMA {setting}")], &mut |statements| {
        statements.run(0, &[], &mut |row| {
            report = match row.copy(0)? {
                Value::Integer(number) => number.to_string(),
                Value::Text(text) => text,
                other => format!("{other:?}"),
            };
            Ok(ControlFlow::Break(()))
        })?;
        Ok(())
    })?;
    Ok(report)
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

    fn settings_of(pragmas: &Pragmas) -> SqliteSettings {
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
    fn a_setting_that_is_left_out_takes_the_default() {
        assert_eq!(Pragmas::new(SqliteConfig::default(), DEFAULT), DEFAULT);
        let config = SqliteConfig { page_size: Some(512), ..SqliteConfig::default() };
        assert_eq!(Pragmas::new(config, DEFAULT), Pragmas { page_size: 512, ..DEFAULT });
        let other = Pragmas { cache_size: 7, ..DEFAULT };
        assert_eq!(Pragmas::new(other.config(), DEFAULT), other);
    }

    #[test]
    fn statements_have_one_order() {
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
        assert_eq!(check(&settings_of(&wal), None), Ok(()));
        let got = SqliteSettings { journal_mode: JournalMode::Delete, ..settings_of(&wal) };
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
    fn every_value_is_set_and_reported_by_its_word() {
        fn check<K: Keyword + std::fmt::Debug>(values: &[K]) {
            assert_eq!(values.len(), K::WORDS.len());
            for (number, value) in values.iter().enumerate() {
                assert_eq!(reported(value.word()), Some(*value));
                assert_eq!(reported(&number.to_string()), Some(*value));
            }
            assert_eq!(reported::<K>("else"), None);
            assert_eq!(reported::<K>("9"), None);
        }
        use JournalMode::*;
        check(&[Delete, Truncate, Persist, Memory, Wal, Off]);
        check(&[Synchronous::Off, Synchronous::Normal, Synchronous::Full, Synchronous::Extra]);
        check(&[LockingMode::Normal, LockingMode::Exclusive]);
        check(&[TempStore::Default, TempStore::File, TempStore::Memory]);
    }

    #[test]
    fn settings_are_parsed_by_their_names() {
        let list = settings_of(&DEFAULT).list();
        assert_eq!(parse_settings(&list), Ok(DEFAULT.config()));
        assert_eq!(parse_settings(&[]), Ok(SqliteConfig::default()));
        for (name, value, reason) in [
            ("mmap_size", "0", "there is no such setting"),
            ("temp_store", "disk", "it is one of default, file, memory"),
            ("page_size", "-1", "it is a number"),
        ] {
            let refused = parse_settings(&[Setting::new(name, value)]).unwrap_err();
            let text = format!("{name}={value} is no setting of this canister: {reason}");
            assert_eq!(refused.to_string(), text);
        }
        let twice = [Setting::new("cache_size", 1), Setting::new("cache_size", 1)];
        let refused = parse_settings(&twice).unwrap_err().to_string();
        assert!(refused.ends_with("it is set twice"), "{refused}");
    }
}
