use candid::CandidType;
use serde::{Deserialize, Serialize};
use std::fmt;

/// What stores the rows.
#[derive(
    CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
)]
pub enum Engine {
    /// `StableBTreeMap<u64, String>`.
    #[serde(rename = "btree")]
    Btree,
    /// SQLite, a table with an integer primary key.
    #[serde(rename = "sqlite")]
    Sqlite,
    /// The floor: a log of rows on bare stable memory, in the order written.
    #[serde(rename = "append")]
    Append,
    /// The floor: an array of slots on bare stable memory, indexed by id.
    #[serde(rename = "array")]
    Array,
    /// A cuckoo hash table, built once. Only the suite cuckoo has it.
    #[serde(rename = "cuckoo")]
    Cuckoo,
    /// LevelDB, in a canister of its own.
    #[cfg(feature = "leveldb")]
    #[serde(rename = "leveldb")]
    Leveldb,
}

impl Engine {
    /// Every engine of the canister `bench` in the users suite, in the order they are shown.
    pub const ALL: [Self; 4] = [Self::Btree, Self::Sqlite, Self::Append, Self::Array];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Self::Btree => "btree",
            Self::Sqlite => "sqlite",
            Self::Append => "append",
            Self::Array => "array",
            Self::Cuckoo => "cuckoo",
            #[cfg(feature = "leveldb")]
            Self::Leveldb => "leveldb",
        }
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
