use candid::CandidType;
use serde::{Deserialize, Serialize};

/// `PRAGMA journal_mode`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum JournalMode {
    /// The rollback journal is deleted after each transaction.
    #[serde(rename = "delete")]
    Delete,
    /// The rollback journal is cut to zero bytes after each transaction.
    #[serde(rename = "truncate")]
    Truncate,
    /// The rollback journal's header is overwritten after each transaction.
    #[serde(rename = "persist")]
    Persist,
    /// The rollback journal is kept on the heap.
    #[serde(rename = "memory")]
    Memory,
    /// A write-ahead log.
    #[serde(rename = "wal")]
    Wal,
    /// No journal: a transaction cannot be rolled back.
    #[serde(rename = "off")]
    Off,
}

/// Where a database is.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Storage {
    /// In stable memory.
    #[serde(rename = "stable")]
    Stable,
    /// On the heap, as `:memory:`; an upgrade ends it.
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
    /// As `full`, and syncs the folder of the journal.
    #[serde(rename = "extra")]
    Extra,
}

/// `PRAGMA locking_mode`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LockingMode {
    /// Locks are given up after each transaction.
    #[serde(rename = "normal")]
    Normal,
    /// Locks are kept as long as the connection is open.
    #[serde(rename = "exclusive")]
    Exclusive,
}

/// `PRAGMA temp_store`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TempStore {
    /// As SQLite was compiled.
    #[serde(rename = "default")]
    Default,
    /// Temporary tables in files.
    #[serde(rename = "file")]
    File,
    /// Temporary tables on the heap.
    #[serde(rename = "memory")]
    Memory,
}

/// The settings a connection is opened with.
///
/// What is left out takes the default of the SQLite library in use, never what was
/// chosen before: the settings in effect follow from this record alone.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SqliteConfig {
    /// What happens to the rollback journal.
    pub journal_mode: Option<JournalMode>,
    /// When files are synced.
    pub synchronous: Option<Synchronous>,
    /// How long locks are kept.
    pub locking_mode: Option<LockingMode>,
    /// Where temporary tables go.
    pub temp_store: Option<TempStore>,
    /// Bytes a page; a power of two, 512 to 65536. Changes only while there are no rows.
    pub page_size: Option<u32>,
    /// Pages cached; where negative, KiB cached.
    pub cache_size: Option<i32>,
}

/// The settings as SQLite reports them on the open connection.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SqliteSettings {
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
    /// `PRAGMA auto_vacuum`: 0 none, 1 full, 2 incremental.
    pub auto_vacuum: u8,
    /// Pages of the database.
    pub page_count: u64,
    /// Pages of the database that hold nothing.
    pub freelist_count: u64,
}
