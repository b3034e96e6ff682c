use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::{Engine, SuiteJob};

/// A job of the suite mix: one task on a table.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mix {
    /// The engine.
    pub engine: Engine,
    /// The number of rows before the first message.
    pub rows: u64,
    /// Bytes of the payload of each row.
    pub payload: u32,
    /// The number of indexed columns.
    pub indexes: u32,
    /// The rows that messages work on.
    pub at: Place,
    /// The task.
    pub task: MixTask,
}

impl SuiteJob for Mix {
    const SUITE: &'static str = "mix";
}

/// The rows that messages work on.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// The rows after the half; new rows are between them.
    #[serde(rename = "middle")]
    Middle,
    /// The last rows; new rows follow them.
    #[serde(rename = "end")]
    End,
    /// All rows; new rows are between any of them.
    #[serde(rename = "random")]
    Random,
}

/// The task of a job. Each comment describes one operation.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum MixTask {
    /// Creates the table and its indexes.
    #[serde(rename = "create")]
    Create,
    /// Adds a row, in the order of ids.
    #[serde(rename = "fill")]
    Fill,
    /// Executes these operations in a transaction.
    #[serde(rename = "message")]
    Message(Operations),
}

/// The operations of a message, executed kind by kind.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Operations {
    /// New rows.
    pub insert: u64,
    /// Rows read by their ids.
    pub read: u64,
    /// Rows whose columns are all replaced, except the id.
    pub update: u64,
    /// Rows that are removed.
    pub delete: u64,
    /// Ranges of rows that are read in the order of ids.
    pub scan: u64,
}

impl Operations {
    /// Returns `true` if they change rows.
    pub fn write(&self) -> bool {
        self.insert + self.update + self.delete > 0
    }
}
