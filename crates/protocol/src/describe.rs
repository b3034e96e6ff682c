use crate::{Digest, Engine};
use candid::CandidType;
use serde::{Deserialize, Serialize};

/// Who owns the canister's stable memory.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// Nobody: the next engine used decides.
    #[serde(rename = "nobody")]
    Nobody,
    /// A `MemoryManager`, shared by the engines above the floor.
    #[serde(rename = "manager")]
    Manager,
    /// The floor engine that is named.
    #[serde(rename = "floor")]
    Floor(Engine),
}

/// What one engine holds.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct EngineDescription {
    /// The engine.
    pub engine: Engine,
    /// Its rows.
    pub rows: u64,
    /// Bytes of its pages or nodes, free space inside them included.
    pub stored_bytes: u64,
    /// Bytes of the virtual memories that those are in, or of stable memory for a floor.
    pub virtual_bytes: u64,
    /// Bytes of heap that its page cache holds.
    pub cache_bytes: u64,
    /// The digest of its rows, unless there is too much to read in one message: the
    /// method `digest` then reads it in several.
    pub digest: Option<Digest>,
}

/// The SQLite library inside the canister.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct SqliteDescription {
    /// For example `3.51.1`.
    pub version: String,
    /// As `PRAGMA compile_options` lists them.
    pub compile_options: Vec<String>,
}

/// A crate inside the canister.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct CrateVersion {
    /// Its name.
    pub name: String,
    /// Its version, from the lock file the canister was built with.
    pub version: String,
}

/// What a canister is and holds.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Description {
    /// Who owns the stable memory.
    pub occupant: Occupant,
    /// The engines that can be used as things stand.
    pub engines: Vec<EngineDescription>,
    /// The length of the payloads written from now on, in bytes.
    pub payload_bytes: u32,
    /// The most rows one message may write, read or remove at that length.
    pub max_rows: u64,
    /// Wasm pages (64 KiB) of heap.
    pub heap_pages: u64,
    /// Wasm pages (64 KiB) of stable memory.
    pub stable_pages: u64,
    /// SQLite, where the canister has it.
    pub sqlite: Option<SqliteDescription>,
    /// The crates that decide what the engines cost.
    pub crates: Vec<CrateVersion>,
}
