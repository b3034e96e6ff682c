//! An engine and how it is set: a column of the tables.

mod parse;

use stablebench_protocol::{
    Compression, Engine, JournalMode, LeveldbConfig, LockingMode, SqliteConfig, Synchronous,
};

use crate::canisters::{BENCH, BENCH_DOLTLITE, BENCH_LEVELDB, BENCH_VFS, Source};
use crate::results::Column;

pub use parse::write_buffer_size;

/// The library through which SQLite is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Library {
    /// `ic-rusqlite`, beside the engines that are not SQLite.
    IcRusqlite,
    /// `ic-sqlite-vfs`.
    IcSqliteVfs,
    /// DoltLite: SQLite's front end over another store.
    DoltLite,
}

impl Library {
    pub const ALL: [Self; 3] = [Self::IcRusqlite, Self::IcSqliteVfs, Self::DoltLite];

    /// What SQLite is called in it.
    pub fn engine_name(self) -> &'static str {
        match self {
            Self::IcRusqlite => "sqlite",
            Self::IcSqliteVfs => "sqlite-vfs",
            Self::DoltLite => "doltlite",
        }
    }

    /// The canister that has it.
    pub fn canister(self) -> Source {
        match self {
            Self::IcRusqlite => BENCH,
            Self::IcSqliteVfs => BENCH_VFS,
            Self::DoltLite => BENCH_DOLTLITE,
        }
    }
}

/// An engine and how it is set.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Setting {
    pub engine: Engine,
    pub library: Library,
    /// What SQLite is asked for; what is left out stays at the library's defaults.
    pub sqlite: SqliteConfig,
    /// What LevelDB is asked for, likewise.
    pub leveldb: LeveldbConfig,
}

impl Setting {
    /// An engine without settings.
    pub fn of(engine: Engine) -> Self {
        Self {
            engine,
            library: Library::IcRusqlite,
            sqlite: SqliteConfig::default(),
            leveldb: LeveldbConfig::default(),
        }
    }

    /// SQLite in a journal mode, all else at the library's defaults.
    pub fn sqlite(journal_mode: JournalMode) -> Self {
        let sqlite = SqliteConfig { journal_mode: Some(journal_mode), ..SqliteConfig::default() };
        Self { sqlite, ..Self::of(Engine::Sqlite) }
    }

    /// SQL through a library, with its defaults.
    pub fn through(library: Library) -> Self {
        Self { library, ..Self::of(Engine::Sqlite) }
    }

    /// LevelDB, its blocks compressed or not.
    pub fn leveldb(compression: Compression) -> Self {
        let leveldb = LeveldbConfig { compression: Some(compression), ..LeveldbConfig::default() };
        Self { leveldb, ..Self::of(Engine::Leveldb) }
    }

    /// The canister that has the engine.
    pub fn canister(&self) -> Source {
        match self.engine {
            Engine::Leveldb => BENCH_LEVELDB,
            _ => self.library.canister(),
        }
    }

    /// The name in results: `btree`, `sqlite/delete`, `sqlite/delete,page_size=512`,
    /// `sqlite-vfs`, `leveldb/snappy`, …
    pub fn key(&self) -> String {
        match self.engine {
            Engine::Sqlite => self.sql_key(),
            Engine::Leveldb => self.leveldb_key(),
            engine => engine.to_string(),
        }
    }

    fn leveldb_key(&self) -> String {
        let config = &self.leveldb;
        let mut key = Engine::Leveldb.to_string();
        if let Some(compression) = config.compression {
            key += &format!("/{}", self::compression(compression));
        }
        if let Some(bytes) = config.write_buffer_size {
            key += &format!(",write_buffer_size={bytes}");
        }
        key
    }

    fn sql_key(&self) -> String {
        let config = &self.sqlite;
        let mut key = self.library.engine_name().to_owned();
        match (self.library, config.journal_mode) {
            // They have one journal mode, which needs no name.
            (Library::IcSqliteVfs | Library::DoltLite, None) => {}
            (_, mode) => {
                key += "/";
                key += journal_mode(mode.unwrap_or(JournalMode::Persist));
            }
        }
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
            canister: self.canister().name.to_owned(),
            engine: self.engine,
            sqlite: (self.engine == Engine::Sqlite).then_some(self.sqlite),
            leveldb: (self.engine == Engine::Leveldb).then_some(self.leveldb),
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

/// The name that LevelDB gives a way to compress.
pub fn compression(compression: Compression) -> &'static str {
    match compression {
        Compression::None => "none",
        Compression::Snappy => "snappy",
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

    fn text(key: &str, canister: &str) -> (String, String) {
        (key.to_owned(), canister.to_owned())
    }

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
        let mut setting = Setting::through(Library::IcSqliteVfs);
        assert_eq!((setting.key(), setting.column().canister), text("sqlite-vfs", "bench_vfs"));
        setting.sqlite.page_size = Some(4096);
        assert_eq!(setting.key(), "sqlite-vfs,page_size=4096");
        setting.sqlite.journal_mode = Some(JournalMode::Wal);
        assert_eq!(setting.key(), "sqlite-vfs/wal,page_size=4096");
    }
}
