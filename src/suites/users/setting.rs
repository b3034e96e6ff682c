//! An engine and how it is set: a column of the tables.

mod parse;

use stablebench_protocol::{Engine, JournalMode, LockingMode, SqliteConfig, Synchronous};

use crate::results::Column;

/// An engine and how it is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    pub engine: Engine,
    /// What SQLite is asked for; what is left out stays at the library's defaults.
    pub sqlite: SqliteConfig,
}

impl Setting {
    /// An engine without settings.
    pub fn of(engine: Engine) -> Self {
        Self { engine, sqlite: SqliteConfig::default() }
    }

    /// SQLite in a journal mode, all else at the library's defaults.
    pub fn sqlite(journal_mode: JournalMode) -> Self {
        let sqlite = SqliteConfig { journal_mode: Some(journal_mode), ..SqliteConfig::default() };
        Self { engine: Engine::Sqlite, sqlite }
    }

    /// The name in results: `btree`, `sqlite/delete`, `sqlite/delete,page_size=512`, …
    pub fn key(&self) -> String {
        if self.engine != Engine::Sqlite {
            return self.engine.to_string();
        }
        let config = &self.sqlite;
        let mut key = "sqlite/".to_owned();
        key += journal_mode(config.journal_mode.unwrap_or(JournalMode::Persist));
        let mut add = |name: &str, value: Option<String>| {
            if let Some(value) = value {
                key += &format!(",{name}={value}");
            }
        };
        add("page_size", config.page_size.map(|size| size.to_string()));
        add("cache_size", config.cache_size.map(|size| size.to_string()));
        add("synchronous", config.synchronous.map(|level| synchronous(level).to_owned()));
        add("locking_mode", config.locking_mode.map(|mode| locking_mode(mode).to_owned()));
        key
    }

    /// As results have it.
    pub fn column(&self) -> Column {
        Column {
            key: self.key(),
            engine: self.engine,
            sqlite: (self.engine == Engine::Sqlite).then_some(self.sqlite),
        }
    }
}

/// The name that SQLite gives a journal mode.
pub fn journal_mode(mode: JournalMode) -> &'static str {
    match mode {
        JournalMode::Delete => "delete",
        JournalMode::Truncate => "truncate",
        JournalMode::Persist => "persist",
        JournalMode::Memory => "memory",
        JournalMode::Wal => "wal",
        JournalMode::Off => "off",
    }
}

/// The name that SQLite gives a level of synchronising.
pub fn synchronous(level: Synchronous) -> &'static str {
    match level {
        Synchronous::Off => "off",
        Synchronous::Normal => "normal",
        Synchronous::Full => "full",
        Synchronous::Extra => "extra",
    }
}

/// The name that SQLite gives a locking mode.
pub fn locking_mode(mode: LockingMode) -> &'static str {
    match mode {
        LockingMode::Normal => "normal",
        LockingMode::Exclusive => "exclusive",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_names_what_was_chosen() {
        assert_eq!(Setting::of(Engine::Btree).key(), "btree");
        let mut setting = Setting::sqlite(JournalMode::Wal);
        assert_eq!(setting.key(), "sqlite/wal");
        setting.sqlite.cache_size = Some(0);
        setting.sqlite.page_size = Some(512);
        setting.sqlite.synchronous = Some(Synchronous::Full);
        setting.sqlite.locking_mode = Some(LockingMode::Normal);
        assert_eq!(
            setting.key(),
            "sqlite/wal,page_size=512,cache_size=0,synchronous=full,locking_mode=normal"
        );
    }
}
