//! The engines of a canister, as it describes them: names, settings and content.

use crate::Digest;
use candid::CandidType;
use candid::types::{Serializer, Type, TypeInner};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use std::fmt;
use std::str::FromStr;

/// The name of an engine; text on the wire.
///
/// Names are short, so that they are copied and compared without a heap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Engine {
    /// The name in UTF-8, filled up with zeros.
    bytes: [u8; Self::MAX_BYTES],
}

impl Engine {
    /// `StableBTreeMap`.
    pub const BTREE: Self = Self::named("btree");
    /// A library with SQLite's interface.
    pub const SQLITE: Self = Self::named("sqlite");
    /// The floor: a log of rows on bare stable memory, in the order written.
    pub const APPEND: Self = Self::named("append");
    /// The floor: an array of slots on bare stable memory, indexed by id.
    pub const ARRAY: Self = Self::named("array");
    /// A cuckoo hash table, which is built once and then read.
    pub const CUCKOO: Self = Self::named("cuckoo");
    /// LevelDB.
    pub const LEVELDB: Self = Self::named("leveldb");

    /// The maximum length of a name, in bytes.
    pub const MAX_BYTES: usize = 24;

    /// Returns the engine with this name.
    ///
    /// # Panics
    ///
    /// If the name is too long. [`str::parse`] returns an error instead.
    pub const fn named(name: &str) -> Self {
        let mut bytes = [0; Self::MAX_BYTES];
        let name = name.as_bytes();
        let mut index = 0;
        while index < name.len() {
            bytes[index] = name[index];
            index += 1;
        }
        Self { bytes }
    }

    /// Returns the name.
    pub fn name(&self) -> &str {
        let length = self.bytes.iter().position(|byte| *byte == 0).unwrap_or(Self::MAX_BYTES);
        // The bytes are those of a string.
        std::str::from_utf8(&self.bytes[..length]).unwrap_or_default()
    }
}

/// A name that is too long for an engine.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{name:?} is not the name of an engine: it is longer than {} bytes", Engine::MAX_BYTES)]
pub struct NameTooLong {
    name: String,
}

impl FromStr for Engine {
    type Err = NameTooLong;

    fn from_str(name: &str) -> Result<Self, NameTooLong> {
        if name.len() > Self::MAX_BYTES {
            return Err(NameTooLong { name: name.to_owned() });
        }
        Ok(Self::named(name))
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl fmt::Debug for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.name(), f)
    }
}

impl CandidType for Engine {
    fn _ty() -> Type {
        TypeInner::Text.into()
    }

    fn idl_serialize<S: Serializer>(&self, serializer: S) -> Result<(), S::Error> {
        serializer.serialize_text(self.name())
    }
}

impl Serialize for Engine {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Engine {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(D::Error::custom)
    }
}

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

/// The owner of the canister's stable memory.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// No engine: the next one that is used takes it.
    #[serde(rename = "nobody")]
    Nobody,
    /// A `MemoryManager`, shared by the engines above the floor.
    #[serde(rename = "manager")]
    Manager,
    /// A floor engine.
    #[serde(rename = "floor")]
    Floor(Engine),
}

/// The content of one engine.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineDescription {
    /// The engine.
    pub engine: Engine,
    /// The number of its rows.
    pub rows: u64,
    /// Bytes of its pages or nodes, including the free space inside them.
    pub stored_bytes: u64,
    /// Bytes of the virtual memories that contain those, or of stable memory for a floor.
    pub virtual_bytes: u64,
    /// Bytes of heap that its page cache takes.
    pub cache_bytes: u64,
    /// The digest of its rows, unless there are too many to read in one message. The method
    /// `content` reads them in several.
    pub digest: Option<Digest>,
}

/// The SQLite library inside the canister.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct SqliteDescription {
    /// For example `3.51.1`.
    pub version: String,
    /// The list of `PRAGMA compile_options`.
    pub compile_options: Vec<String>,
}

/// A crate inside the canister.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct CrateVersion {
    /// Its name.
    pub name: String,
    /// Its version, from the lock file that the canister was built with.
    pub version: String,
}

/// A canister and its content.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// The owner of the stable memory.
    pub occupant: Occupant,
    /// The engines that can be used with the current owner of stable memory.
    pub engines: Vec<EngineDescription>,
    /// The payload of rows that methods called by hand write, in bytes.
    pub payload_bytes: u32,
    /// The maximum number of rows that one message may write, read or remove at that payload.
    pub max_rows: u64,
    /// Wasm pages (64 KiB) of heap.
    pub heap_pages: u64,
    /// Wasm pages (64 KiB) of stable memory.
    pub stable_pages: u64,
    /// The SQLite library, if the canister has it.
    pub sqlite: Option<SqliteDescription>,
    /// The crates that decide what the engines cost.
    pub crates: Vec<CrateVersion>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use candid::{decode_one, encode_one};

    #[test]
    fn an_engine_is_text_on_the_wire() {
        let longest = "x".repeat(Engine::MAX_BYTES);
        for name in ["", "btree", longest.as_str()] {
            let engine: Engine = name.parse().unwrap();
            assert_eq!((engine.name(), engine.to_string().as_str()), (name, name));
            assert_eq!(encode_one(engine).unwrap(), encode_one(name).unwrap());
            assert_eq!(decode_one::<Engine>(&encode_one(name).unwrap()).unwrap(), engine);
        }
        let too_long = longest + "x";
        assert!(too_long.parse::<Engine>().is_err());
        assert!(decode_one::<Engine>(&encode_one(too_long).unwrap()).is_err());
    }
}
