use candid::CandidType;
use serde::{Deserialize, Serialize};

/// A job of the suite: a table of texts under texts, and what is done to it.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct Vfs {
    /// Which operations are in one transaction.
    pub transaction: VfsTransaction,
    /// What the work finds open and cached.
    pub start: VfsStart,
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

/// What the work finds open and cached; made so before it is measured.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfsStart {
    /// What earlier messages left.
    #[serde(rename = "as_is")]
    AsIs,
    /// Nothing: the connection is closed.
    #[serde(rename = "cold")]
    Cold,
    /// The connection is open and the statement prepared.
    #[serde(rename = "prepared")]
    Prepared,
    /// As well, and the table was read once.
    #[serde(rename = "warm")]
    Warm,
}

/// What is done to the table.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum VfsTask {
    /// Creates the table; one operation.
    #[serde(rename = "create")]
    Create,
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
