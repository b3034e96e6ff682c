use candid::CandidType;
use serde::{Deserialize, Serialize};

/// A setting of an engine, by the engine's own names: SQLite's pragmas, LevelDB's options.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Setting {
    /// For example `journal_mode`.
    pub name: String,
    /// For example `wal`.
    pub value: String,
}

impl Setting {
    /// A setting.
    pub fn new(name: impl Into<String>, value: impl ToString) -> Self {
        Self { name: name.into(), value: value.to_string() }
    }
}

/// A setting of SQLite whose values are words.
pub trait Keyword: Copy + PartialEq + 'static {
    /// The pragma.
    const PRAGMA: &'static str;

    /// The values and the words that set them, in the order of SQLite's numbers for them.
    const WORDS: &'static [(Self, &'static str)];

    /// Returns the word of a value.
    fn word(self) -> &'static str {
        Self::WORDS.iter().find(|(value, _)| *value == self).map_or("", |(_, word)| word)
    }

    /// Returns the value that has a word.
    fn from_word(word: &str) -> Option<Self> {
        Self::WORDS.iter().find(|(_, known)| *known == word).map(|(value, _)| *value)
    }
}

/// `PRAGMA journal_mode`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JournalMode {
    /// The rollback journal is deleted after each transaction.
    #[serde(rename = "delete")]
    Delete,
    /// The rollback journal is truncated to zero bytes after each transaction.
    #[serde(rename = "truncate")]
    Truncate,
    /// The header of the rollback journal is overwritten after each transaction.
    #[serde(rename = "persist")]
    Persist,
    /// The rollback journal is on the heap.
    #[serde(rename = "memory")]
    Memory,
    /// A write-ahead log.
    #[serde(rename = "wal")]
    Wal,
    /// No journal: a transaction cannot be rolled back.
    #[serde(rename = "off")]
    Off,
}

impl Keyword for JournalMode {
    const PRAGMA: &'static str = "journal_mode";
    const WORDS: &'static [(Self, &'static str)] = &[
        (Self::Delete, "delete"),
        (Self::Truncate, "truncate"),
        (Self::Persist, "persist"),
        (Self::Memory, "memory"),
        (Self::Wal, "wal"),
        (Self::Off, "off"),
    ];
}

/// The place of a database.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// In stable memory.
    #[serde(rename = "stable")]
    Stable,
    /// On the heap, as `:memory:`; an upgrade removes it.
    #[serde(rename = "heap")]
    Heap,
}

/// `PRAGMA synchronous`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Synchronous {
    /// Never syncs.
    #[serde(rename = "off")]
    Off,
    /// Syncs at the most critical moments.
    #[serde(rename = "normal")]
    Normal,
    /// Syncs before a transaction is complete.
    #[serde(rename = "full")]
    Full,
    /// Like `full`, and also syncs the directory of the journal.
    #[serde(rename = "extra")]
    Extra,
}

impl Keyword for Synchronous {
    const PRAGMA: &'static str = "synchronous";
    const WORDS: &'static [(Self, &'static str)] = &[
        (Self::Off, "off"),
        (Self::Normal, "normal"),
        (Self::Full, "full"),
        (Self::Extra, "extra"),
    ];
}

/// `PRAGMA locking_mode`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockingMode {
    /// Locks are released after each transaction.
    #[serde(rename = "normal")]
    Normal,
    /// Locks are held as long as the connection is open.
    #[serde(rename = "exclusive")]
    Exclusive,
}

impl Keyword for LockingMode {
    const PRAGMA: &'static str = "locking_mode";
    const WORDS: &'static [(Self, &'static str)] =
        &[(Self::Normal, "normal"), (Self::Exclusive, "exclusive")];
}

/// `PRAGMA temp_store`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TempStore {
    /// As SQLite was compiled.
    #[serde(rename = "default")]
    Default,
    /// Temporary tables are in files.
    #[serde(rename = "file")]
    File,
    /// Temporary tables are on the heap.
    #[serde(rename = "memory")]
    Memory,
}

impl Keyword for TempStore {
    const PRAGMA: &'static str = "temp_store";
    const WORDS: &'static [(Self, &'static str)] =
        &[(Self::Default, "default"), (Self::File, "file"), (Self::Memory, "memory")];
}

/// The settings that a connection is opened with.
///
/// A setting that is left out takes the default of the SQLite library in use, never the value
/// chosen before: the settings in effect follow from this record alone.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqliteConfig {
    /// The kind of journal.
    pub journal_mode: Option<JournalMode>,
    /// When files are synced.
    pub synchronous: Option<Synchronous>,
    /// The duration of locks.
    pub locking_mode: Option<LockingMode>,
    /// The place of temporary tables.
    pub temp_store: Option<TempStore>,
    /// Bytes per page; a power of two, 512 to 65536. Changes only while there are no rows.
    pub page_size: Option<u32>,
    /// The number of cached pages, or the negative number of cached KiB.
    pub cache_size: Option<i32>,
}

/// The settings as SQLite reports them on the open connection.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteSettings {
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
    /// `PRAGMA auto_vacuum`: 0 none, 1 full, 2 incremental.
    pub auto_vacuum: u8,
    /// The number of pages of the database.
    pub page_count: u64,
    /// The number of free pages of the database.
    pub freelist_count: u64,
}

impl SqliteSettings {
    /// The settings that can be chosen, by their names.
    pub fn list(&self) -> Vec<Setting> {
        vec![
            Setting::new(JournalMode::PRAGMA, self.journal_mode.word()),
            Setting::new(Synchronous::PRAGMA, self.synchronous.word()),
            Setting::new(LockingMode::PRAGMA, self.locking_mode.word()),
            Setting::new(TempStore::PRAGMA, self.temp_store.word()),
            Setting::new("page_size", self.page_size),
            Setting::new("cache_size", self.cache_size),
        ]
    }
}
