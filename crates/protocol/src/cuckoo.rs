use candid::CandidType;
use serde::{Deserialize, Serialize};

/// A job of the suite: items put into a store, or looked up in it.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cuckoo {
    /// What holds the items.
    pub store: PointStore,
    /// What the keys are.
    pub keys: CuckooKeys,
    /// The buckets of the table, a power of two. They decide which keys are scattered
    /// where, for every store.
    pub buckets: u64,
    /// The items that the store holds when it is complete. A cuckoo table is finished
    /// with the last of them.
    pub items: u64,
    /// What is done.
    pub task: CuckooTask,
}

/// What holds items and finds them by their keys.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum PointStore {
    /// A cuckoo hash table, with this hash first.
    #[serde(rename = "cuckoo")]
    Cuckoo(CuckooHash),
    /// `StableBTreeMap<u64, [u8; 4]>`.
    #[serde(rename = "btree")]
    Btree,
    /// SQLite, a table with an integer primary key.
    #[serde(rename = "sqlite")]
    Sqlite,
    /// The floor: an array of items, whose places follow from their keys.
    #[serde(rename = "array")]
    Array,
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

/// What the keys are.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuckooKeys {
    /// 0, 2, 4, …
    #[serde(rename = "sequential")]
    Sequential,
    /// Random even numbers below 2^62, ascending.
    #[serde(rename = "scattered")]
    Scattered,
}

/// What is done to the store.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum CuckooTask {
    /// Adds items in the order of their keys.
    #[serde(rename = "build")]
    Build,
    /// Looks up keys that are there, in random order.
    #[serde(rename = "hit")]
    Hit(Lookups),
    /// Looks up keys that are not there.
    #[serde(rename = "miss")]
    Miss(Lookups),
}

/// How keys are looked up.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookups {
    /// One by one.
    #[serde(rename = "single")]
    Single,
    /// So many in one call. Only a cuckoo table can.
    #[serde(rename = "batch")]
    Batch(u32),
}
