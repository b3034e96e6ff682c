use crate::{Digest, Engine};
use candid::CandidType;
use serde::{Deserialize, Serialize};

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
