//! Jobs of the suite on the wire.

use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::{Engine, SuiteJob};

/// A job of the suite users: rows of an id and a text.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Users {
    /// The engine that stores the rows.
    pub engine: Engine,
    /// The length of the texts that are written, in bytes.
    pub payload_bytes: u32,
    /// The task.
    pub task: UsersTask,
}

impl SuiteJob for Users {
    const SUITE: &'static str = "users";
}

/// A task on an engine's rows, or on its connection.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub enum UsersTask {
    /// Writes or reads rows. A part of the job is about a part of the rows selected.
    #[serde(rename = "operation")]
    Operation {
        /// The operation.
        operation: Operation,
        /// Operations per transaction; without a number, all of a message are one. Only SQL
        /// engines have transactions, and only writes are put into one.
        transaction: Option<u64>,
    },
    /// Closes the connection to the database; one operation. The next use opens it again.
    #[serde(rename = "close")]
    Close,
    /// `VACUUM` on an open connection; one operation.
    #[serde(rename = "vacuum")]
    Vacuum,
}

/// An operation on rows.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub enum Operation {
    /// Adds rows that do not exist.
    #[serde(rename = "insert")]
    Insert(Selection),
    /// Writes rows, whether or not they exist: an upsert.
    #[serde(rename = "overwrite")]
    Overwrite(Selection),
    /// Replaces the texts of rows that exist.
    #[serde(rename = "update")]
    Update(Selection),
    /// Removes rows that exist.
    #[serde(rename = "delete")]
    Delete(Selection),
    /// Looks rows up one by one, whether or not they exist.
    #[serde(rename = "read")]
    Read(Selection),
    /// Reads the next rows in order, starting at each id.
    #[serde(rename = "range")]
    Range {
        /// The beginning of each range.
        from: Selection,
        /// Rows per range.
        rows: u64,
    },
    /// Reads the first rows in the engine's order; one operation.
    #[serde(rename = "scan")]
    Scan(u64),
    /// Counts the rows; one operation.
    #[serde(rename = "count")]
    Count,
}

/// The rows of an operation, in this order. Each row is one operation of a job.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    /// Ids at equal distances, ascending.
    #[serde(rename = "step")]
    Step {
        /// The smallest id.
        first: u64,
        /// The distance between two ids.
        step: u64,
        /// The number of rows.
        rows: u64,
    },
    /// Ids in any order. Ids to insert or to delete are listed once.
    #[serde(rename = "list")]
    List(Vec<u64>),
}

impl Operation {
    /// Returns the rows that it selects; nothing for a scan and a count.
    pub fn selection(&self) -> Option<&Selection> {
        match self {
            Self::Insert(rows)
            | Self::Overwrite(rows)
            | Self::Update(rows)
            | Self::Delete(rows)
            | Self::Read(rows)
            | Self::Range { from: rows, .. } => Some(rows),
            Self::Scan(_) | Self::Count => None,
        }
    }

    /// Returns `true` if it may change rows.
    pub fn writes(&self) -> bool {
        match self {
            Self::Insert(_) | Self::Overwrite(_) | Self::Update(_) | Self::Delete(_) => true,
            Self::Read(_) | Self::Range { .. } | Self::Scan(_) | Self::Count => false,
        }
    }
}

impl Selection {
    /// Returns the number of rows, whether or not their ids are valid.
    pub fn rows(&self) -> u64 {
        match self {
            Self::Step { rows, .. } => *rows,
            Self::List(ids) => ids.len() as u64,
        }
    }
}
