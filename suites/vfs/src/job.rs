use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::SuiteJob;

/// A job of the suite vfs: a task on a table with text keys and text values.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vfs {
    /// The operations of one transaction.
    pub transaction: VfsTransaction,
    /// True if texts that are read are copied; otherwise only their lengths are read.
    pub copy: bool,
    /// The task.
    pub task: VfsTask,
}

impl SuiteJob for Vfs {
    const SUITE: &'static str = "vfs";
}

/// The operations of one transaction.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfsTransaction {
    /// All operations of a message.
    #[serde(rename = "message")]
    Message,
    /// This number of operations.
    #[serde(rename = "operations")]
    Operations(u64),
    /// Each statement is its own transaction.
    #[serde(rename = "statement")]
    Statement,
}

/// A task on the table.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfsTask {
    /// Creates the table; one operation.
    #[serde(rename = "create")]
    Create,
    /// Closes the connection.
    #[serde(rename = "close")]
    Close,
    /// Opens the connection that the work will use and prepares its statement.
    #[serde(rename = "prepare")]
    Prepare(VfsWork),
    /// Like `prepare`, and then reads the table once.
    #[serde(rename = "warm")]
    Warm(VfsWork),
    /// Does the work.
    #[serde(rename = "work")]
    Work(VfsWork),
}

/// Work on the table.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfsWork {
    /// Adds rows after this number of others.
    #[serde(rename = "insert")]
    Insert(u64),
    /// Adds rows with another prefix, or replaces their values.
    #[serde(rename = "upsert")]
    Upsert,
    /// Replaces values.
    #[serde(rename = "update")]
    Update,
    /// Looks values up by their keys.
    #[serde(rename = "read")]
    Read,
    /// Reads values in the order of their keys; all operations are one statement.
    #[serde(rename = "scan")]
    Scan,
    /// Reads the values of a list of keys; all operations are one statement.
    #[serde(rename = "list")]
    List,
}
