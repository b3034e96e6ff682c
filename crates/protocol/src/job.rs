#[cfg(feature = "history")]
use crate::History;
use crate::{
    Cuckoo, DbBench, Digest, Keys, Measurement, OperationCost, SqliteSettings, Sysbench, Vfs,
};
use candid::CandidType;
use serde::{Deserialize, Serialize};

/// Work of a suite that has tables of its own.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub enum Job {
    /// The benchmarks of LevelDB's `db_bench`.
    #[serde(rename = "db_bench")]
    DbBench(DbBench),
    /// A link table under different primary keys.
    #[serde(rename = "keys")]
    Keys(Keys),
    /// SQL statements as `sysbench` has them.
    #[serde(rename = "sysbench")]
    Sysbench(Sysbench),
    /// Point reads of a cuckoo hash table and of other engines.
    #[serde(rename = "cuckoo")]
    Cuckoo(Cuckoo),
    /// The file layer under two builds of SQLite.
    #[serde(rename = "vfs")]
    Vfs(Vfs),
    /// Commits and branches of a table, in a canister whose engine has such.
    #[cfg(feature = "history")]
    #[serde(rename = "history")]
    History(History),
}

/// The part of a job that one message does.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// The whole job.
    pub job: Job,
    /// What its random choices follow from.
    pub seed: u64,
    /// The first operation of the job that is done.
    pub from: u64,
    /// How many operations are done.
    pub count: u64,
    /// Whether the counter is read around each single operation as well.
    pub each: bool,
}

/// What a part of a job cost and found.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Performed {
    /// All of it.
    pub measurement: Measurement,
    /// Each operation, in their order, where that was asked for.
    pub each: Vec<OperationCost>,
    /// What was read, found once more after the measurement; nothing where the part
    /// wrote.
    pub results: Option<Digest>,
}

/// What the tables of a job take.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// Bytes of pages, nodes or slots, free space inside them included.
    pub stored_bytes: u64,
    /// Bytes of the virtual memories that those are in; 0 where they are on the heap.
    pub virtual_bytes: u64,
    /// Bytes of heap that a page cache holds.
    pub cache_bytes: u64,
    /// What SQLite runs with, where it is the engine.
    pub sqlite: Option<SqliteSettings>,
    /// The b-trees of the database, where the engine can tell.
    pub objects: Vec<StoredObject>,
}

/// A table or an index, as SQLite's `dbstat` tells of it.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct StoredObject {
    /// Its name.
    pub name: String,
    /// The table that it belongs to.
    pub table: String,
    /// Whether it is an index.
    pub index: bool,
    /// Bytes of its pages.
    pub bytes: u64,
    /// Its pages.
    pub pages: u64,
    /// Those that point to other pages.
    pub internal_pages: u64,
    /// Those that hold what is too long for its page.
    pub overflow_pages: u64,
    /// Pages that the internal ones point to.
    pub children: u64,
    /// Entries of its leaf pages.
    pub leaf_entries: u64,
    /// Bytes of its entries.
    pub payload_bytes: u64,
    /// Bytes of its pages that hold nothing.
    pub unused_bytes: u64,
    /// Pages from the root to a leaf, both counted.
    pub depth: u64,
}
