use candid::CandidType;
use serde::{Deserialize, Serialize};

/// A job of the suite: a table, and the commits and branches it is in.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// Rows of the table.
    pub rows: u64,
    /// What is done.
    pub task: HistoryTask,
}

/// What is done to the table or its history. All but [`Insert`](Self::Insert) are one operation.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryTask {
    /// Creates the table, and commits it.
    #[serde(rename = "create")]
    Create,
    /// Adds rows; an operation is a row.
    #[serde(rename = "insert")]
    Insert,
    /// Changes so many rows, with one statement.
    #[serde(rename = "change")]
    Change(u64),
    /// Commits what was changed.
    #[serde(rename = "commit")]
    Commit,
    /// Reads the rows that were changed since the last commit: before and after.
    #[serde(rename = "diff")]
    Diff,
    /// Makes a branch.
    #[serde(rename = "branch")]
    Branch,
    /// Makes a branch on which so many rows are changed in one commit, and goes back.
    #[serde(rename = "diverge")]
    Diverge(u64),
    /// As well, and commits a change of another row where it went back to.
    #[serde(rename = "part")]
    Part(u64),
    /// Goes to that branch.
    #[serde(rename = "checkout")]
    Checkout,
    /// Reads the rows that differ between that branch and this one.
    #[serde(rename = "diff_branch")]
    DiffBranch,
    /// Merges that branch into this one.
    #[serde(rename = "merge")]
    Merge,
}
