use candid::CandidType;
use serde::{Deserialize, Serialize};

/// What a LevelDB database is opened with; what is left out is LevelDB's default. The names
/// are those of its `Options`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct LeveldbConfig {
    /// How blocks of tables are compressed.
    pub compression: Option<Compression>,
    /// Bytes of rows that are held on the heap, and in the log, before they become a table.
    pub write_buffer_size: Option<u32>,
}

/// How LevelDB compresses blocks.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Compression {
    /// Not at all.
    #[serde(rename = "none")]
    None,
    /// With Snappy.
    #[serde(rename = "snappy")]
    Snappy,
}
