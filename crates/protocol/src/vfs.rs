use candid::CandidType;
use serde::{Deserialize, Serialize};

/// A job of the suite: a table of texts under texts, and what is done to it.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vfs {
    /// Which operations are in one transaction.
    pub transaction: VfsTransaction,
    /// Whether texts that are read are copied; else only their lengths are asked for.
    pub copy: bool,
    /// What is done.
    pub task: VfsTask,
}

/// Which operations are in one transaction.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfsTransaction {
    /// All of a message.
    #[serde(rename = "message")]
    Message,
    /// So many.
    #[serde(rename = "operations")]
    Operations(u64),
    /// Each statement, which opens and ends its own.
    #[serde(rename = "statement")]
    Statement,
}

/// What is done to the table.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfsTask {
    /// Creates it; one operation.
    #[serde(rename = "create")]
    Create,
    /// Closes the connection.
    #[serde(rename = "close")]
    Close,
    /// Opens the connection that the work will use, and prepares its statement.
    #[serde(rename = "prepare")]
    Prepare(VfsWork),
    /// As well, and goes through the table once.
    #[serde(rename = "warm")]
    Warm(VfsWork),
    /// The work.
    #[serde(rename = "work")]
    Work(VfsWork),
}

/// Work on the table.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfsWork {
    /// Adds a row, after so many others.
    #[serde(rename = "insert")]
    Insert(u64),
    /// Adds a row under another prefix, or replaces its value.
    #[serde(rename = "upsert")]
    Upsert,
    /// Replaces a value.
    #[serde(rename = "update")]
    Update,
    /// Looks a value up by its key.
    #[serde(rename = "read")]
    Read,
    /// Reads values in the order of their keys; all operations are one statement.
    #[serde(rename = "scan")]
    Scan,
    /// Reads the values of a list of keys; all operations are one statement.
    #[serde(rename = "list")]
    List,
}
