use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::{Engine, SuiteJob};

/// A job of the suite db-bench: a benchmark of LevelDB's `db_bench` on keys and values.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct DbBench {
    /// The engine that stores them.
    pub engine: Engine,
    /// True if SQLite's table has row ids in addition to its primary key.
    pub rowids: bool,
    /// The task.
    pub task: DbBenchTask,
}

impl SuiteJob for DbBench {
    const SUITE: &'static str = "db_bench";
}

/// A task on keys and values.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DbBenchTask {
    /// Prepares the engine for writes; one operation.
    #[serde(rename = "ready")]
    Ready {
        /// True if all keys are removed.
        fresh: bool,
        /// True if writes are synced.
        sync: bool,
    },
    /// Writes values under keys, replacing those that exist.
    #[serde(rename = "write")]
    Write(DbBenchWrite),
    /// Looks up random keys.
    #[serde(rename = "read_random")]
    ReadRandom {
        /// Keys are below this number.
        keys: u64,
        /// The number of the benchmark in its run. Random choices depend on it and the seed.
        stream: u64,
    },
    /// Reads rows in the order of their keys, from the first.
    #[serde(rename = "read_sequential")]
    ReadSequential {
        /// The number of rows that exist.
        rows: u64,
    },
}

/// The way values are written.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct DbBenchWrite {
    /// True if keys are random; otherwise they are 0, 1, 2, …
    pub random: bool,
    /// Random keys are below this number.
    pub keys: u64,
    /// Bytes per value.
    pub value_bytes: u32,
    /// Operations per transaction.
    pub batch: u64,
    /// The number of the benchmark in its run. Random choices depend on it and the seed.
    pub stream: u64,
}
