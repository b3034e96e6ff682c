use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::{Engine, SuiteJob};

/// A job of the suite cuckoo: items added to an engine, or looked up in it.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuckoo {
    /// The engine that stores the items.
    pub engine: Engine,
    /// The first of the table's two hashes; nothing for other engines.
    pub first_hash: Option<CuckooHash>,
    /// The kind of keys.
    pub keys: CuckooKeys,
    /// The number of the table's buckets, a power of two. Scattered keys depend on it, for
    /// every engine.
    pub buckets: u64,
    /// The number of items of the complete table. A cuckoo table is finished with the last of
    /// them.
    pub items: u64,
    /// The task.
    pub task: CuckooTask,
}

impl SuiteJob for Cuckoo {
    const SUITE: &'static str = "cuckoo";
}

/// The first of the table's two hashes.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuckooHash {
    /// MurmurHash64A of the key.
    #[serde(rename = "murmur")]
    Murmur,
    /// The key itself.
    #[serde(rename = "identity")]
    Identity,
}

/// The kind of keys.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuckooKeys {
    /// 0, 2, 4, …
    #[serde(rename = "sequential")]
    Sequential,
    /// Random even numbers below 2^62, ascending.
    #[serde(rename = "scattered")]
    Scattered,
}

/// A task on items.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuckooTask {
    /// Adds items in the order of their keys.
    #[serde(rename = "build")]
    Build,
    /// Looks up keys that exist, in random order.
    #[serde(rename = "hit")]
    Hit(Lookups),
    /// Looks up keys that do not exist.
    #[serde(rename = "miss")]
    Miss(Lookups),
}

/// The number of keys per lookup.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookups {
    /// One key.
    #[serde(rename = "single")]
    Single,
    /// Several keys in one call. Only a cuckoo table supports this.
    #[serde(rename = "batch")]
    Batch(u32),
}
