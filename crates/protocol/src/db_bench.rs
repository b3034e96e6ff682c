use crate::Engine;
use candid::CandidType;
use serde::{Deserialize, Serialize};

/// A job of the suite: something that is done to one store of keys and values.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct DbBench {
    /// What stores them: the map, SQLite, or the array of slots.
    pub engine: Engine,
    /// Whether SQLite's table has row ids beside its primary key.
    pub rowids: bool,
    /// What is done.
    pub task: DbBenchTask,
}

/// What is done to the store.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DbBenchTask {
    /// Makes the store ready for writes: one operation.
    #[serde(rename = "ready")]
    Ready {
        /// Whether it is emptied.
        fresh: bool,
        /// Whether SQLite is to wait until what it wrote is on the disk.
        sync: bool,
    },
    /// Writes a value under a key, which replaces the one that is there.
    #[serde(rename = "write")]
    Write(DbBenchWrite),
    /// Looks up keys that are chosen at random.
    #[serde(rename = "read_random")]
    ReadRandom {
        /// Keys are below this.
        keys: u64,
        /// Which benchmark of the run it is: what is chosen follows from this and the seed.
        stream: u64,
    },
    /// Reads rows in the order of keys, from the first.
    #[serde(rename = "read_sequential")]
    ReadSequential {
        /// How many rows there are.
        rows: u64,
    },
}

/// How values are written.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbBenchWrite {
    /// Whether keys are chosen at random, else 0, 1, 2, …
    pub random: bool,
    /// Keys that are chosen at random are below this.
    pub keys: u64,
    /// Bytes of a value.
    pub value_bytes: u32,
    /// Operations a transaction.
    pub batch: u64,
    /// Which benchmark of the run it is: what is chosen follows from this and the seed.
    pub stream: u64,
}
