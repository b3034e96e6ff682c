use crate::{Engine, Measurement};
use candid::CandidType;
use serde::{Deserialize, Serialize};

/// Which rows an operation is about, in this order.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Ids that are the same distance apart, ascending.
    #[serde(rename = "step")]
    Step {
        /// The smallest id.
        first: u64,
        /// The distance between two.
        step: u64,
        /// How many.
        rows: u64,
    },
    /// Ids one by one, in any order. What is inserted or deleted stands here once.
    #[serde(rename = "list")]
    List(Vec<u64>),
}

/// What is done to an engine's rows.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Adds rows that are not there.
    #[serde(rename = "insert")]
    Insert(Selection),
    /// Writes rows whether or not they are there: an upsert.
    #[serde(rename = "overwrite")]
    Overwrite(Selection),
    /// Replaces the texts of rows that are there.
    #[serde(rename = "update")]
    Update(Selection),
    /// Removes rows that are there.
    #[serde(rename = "delete")]
    Delete(Selection),
    /// Looks rows up one by one, whether or not they are there.
    #[serde(rename = "read")]
    Read(Selection),
    /// From each id on, reads the next rows in order.
    #[serde(rename = "range")]
    Range {
        /// Where each range begins.
        from: Selection,
        /// Rows a range.
        rows: u64,
    },
    /// Reads the first so many rows in the engine's order.
    #[serde(rename = "scan")]
    Scan(u64),
    /// Counts the rows.
    #[serde(rename = "count")]
    Count,
}

/// Work to be measured.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Work {
    /// Whose rows.
    pub engine: Engine,
    /// What is done.
    pub operation: Operation,
    /// Operations a transaction; all in one where it is left out. Only SQLite has
    /// transactions, and only what writes is put into one.
    pub transaction: Option<u64>,
    /// Whether the counter is read around each single operation as well.
    pub each: bool,
}

/// What the work cost.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Worked {
    /// All of it.
    pub measurement: Measurement,
    /// Each operation, in their order, where that was asked for.
    pub each: Vec<OperationCost>,
}

/// What one operation cost.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCost {
    /// `performance_counter(0)` after the operation less before it, without the
    /// beginning and the end of its transaction.
    pub instructions: u64,
    /// How many units of storage the operation took: pages of SQLite's database, nodes
    /// of the map, wasm pages of a floor. Negative where it gave some back.
    pub allocated: i64,
}
