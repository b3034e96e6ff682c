use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::SuiteJob;

/// A job of the suite history: a table with commits and branches.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct History {
    /// The number of rows of the table.
    pub rows: u64,
    /// The task.
    pub task: HistoryTask,
}

impl SuiteJob for History {
    const SUITE: &'static str = "history";
}

/// A task on the table or its history. All tasks except [`Insert`](Self::Insert) are one operation.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum HistoryTask {
    /// Creates the table and commits it.
    #[serde(rename = "create")]
    Create,
    /// Adds rows, one per operation.
    #[serde(rename = "insert")]
    Insert,
    /// Changes this number of rows with one statement.
    #[serde(rename = "change")]
    Change(u64),
    /// Commits the changes.
    #[serde(rename = "commit")]
    Commit,
    /// Reads the rows that changed since the last commit, before and after.
    #[serde(rename = "diff")]
    Diff,
    /// Creates a branch.
    #[serde(rename = "branch")]
    Branch,
    /// Creates a branch with one commit that changes this number of rows, and goes back.
    #[serde(rename = "diverge")]
    Diverge(u64),
    /// Like `diverge`, and then commits a change of another row on the first branch.
    #[serde(rename = "part")]
    Part(u64),
    /// Checks out that branch.
    #[serde(rename = "checkout")]
    Checkout,
    /// Reads the rows that differ between that branch and this one.
    #[serde(rename = "diff_branch")]
    DiffBranch,
    /// Merges that branch into this one.
    #[serde(rename = "merge")]
    Merge,
}
