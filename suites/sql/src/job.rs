//! Jobs of the suite on the wire, and what the canister answers.
//!
//! ```text
//!   stage   Statements    texts, and calls of them with parameters
//!   run                   executes the calls, measured; keeps an answer for each
//!   kept    Answers       those answers, in parts that fit into a reply
//!   kept    Statements    executes the calls in the query, whose changes are dropped
//!   kept    Configure     the settings in effect
//!   kept    File          the database as a file, in parts
//! ```

use std::ops::Range;

use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::{Digest, Setting, SuiteJob};

/// A job of the suite.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum Sql {
    /// Executes statements.
    #[serde(rename = "statements")]
    Statements(Statements),
    /// Opens the connection again with these settings; a setting that is left out takes the library's
    /// default.
    #[serde(rename = "configure")]
    Configure(Vec<Setting>),
    /// Replaces the database by a file, one part after the other.
    #[serde(rename = "load")]
    Load(FilePart),
    /// The answers to the statements of the last message.
    #[serde(rename = "answers")]
    Answers,
    /// The database as a file.
    #[serde(rename = "file")]
    File,
}

impl SuiteJob for Sql {
    const SUITE: &'static str = "sql";
}

/// Statements that a message executes.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Statements {
    /// The texts, each of one statement. Each is prepared once per message and transaction.
    pub texts: Vec<String>,
    /// The executions, in their order. An error ends them.
    pub calls: Vec<Call>,
    /// The maximum number of bytes of values that are kept.
    pub keep: u64,
}

/// An execution of a statement.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Call {
    /// The index of its text.
    pub text: u32,
    /// The values of its parameters `?1`, `?2` …
    pub parameters: Vec<Value>,
}

/// A value of SQLite.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub enum Value {
    /// `NULL`
    Null,
    /// `INTEGER`
    Integer(i64),
    /// `REAL`
    Real(f64),
    /// `TEXT`
    Text(String),
    /// `BLOB`
    Blob(#[serde(with = "serde_bytes")] Vec<u8>),
    /// `TEXT` that is not UTF-8. As a parameter, it is bound as it is.
    TextBytes(#[serde(with = "serde_bytes")] Vec<u8>),
}

impl Value {
    /// Returns the number of bytes that it takes in a reply, roughly.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Null => 1,
            Self::Integer(_) | Self::Real(_) => 9,
            Self::Text(text) => text.len() as u64 + 4,
            Self::Blob(bytes) | Self::TextBytes(bytes) => bytes.len() as u64 + 4,
        }
    }
}

/// A part of a database file.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq)]
pub struct FilePart {
    /// The number of bytes before it.
    pub offset: u64,
    /// Its bytes.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// The number of bytes of the whole file.
    pub size: u64,
    /// FNV-1a, 64 bits, of the whole file.
    pub checksum: u64,
}

/// A part of the answers to a message's calls.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Answers {
    /// The answers. The rows of the first may continue those of the last of the part before.
    pub answers: Vec<Answer>,
}

/// The answer to a call.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq)]
pub struct Answer {
    /// The number of the call.
    pub call: u32,
    /// The readings of the counter before and after the statement, the copies of its rows included.
    pub readings: (u64, u64),
    /// Instructions of preparing the statement; 0 if it was prepared for an earlier call.
    pub prepare: u64,
    /// Instructions of binding the parameters and of all calls of `sqlite3_step`.
    pub step: u64,
    /// Instructions of the library around the statement: opening the connection, and beginning and
    /// ending a transaction that the library itself has around its work.
    pub around: u64,
    /// The number of rows that the statement changed.
    pub changes: u64,
    /// The names of the result's columns.
    pub columns: Vec<String>,
    /// The number of rows of the result, and their digest, whatever their order.
    pub digest: Digest,
    /// The rows that are kept.
    pub rows: Vec<Vec<Value>>,
    /// The values of these rows that are kept in part: row, column, and the number of all bytes.
    pub cut: Vec<(u64, u32, u64)>,
    /// The statement's counters.
    pub counters: Counters,
    /// The reason why it failed.
    pub error: Option<Failure>,
}

impl Answer {
    /// Returns the answer with some of its rows.
    pub fn with_rows(&self, rows: Range<usize>) -> Self {
        let inside = |cut: &&(u64, u32, u64)| rows.contains(&(cut.0 as usize));
        Self {
            columns: self.columns.clone(),
            cut: self.cut.iter().filter(inside).copied().collect(),
            error: self.error.clone(),
            rows: self.rows[rows.clone()].to_vec(),
            ..*self
        }
    }
}

/// Counters of SQLite (`sqlite3_stmt_status`).
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Steps forward in scans of whole tables.
    pub scanned: u64,
    /// Sorts.
    pub sorts: u64,
    /// Rows inserted into automatic indexes.
    pub auto_indexed: u64,
    /// Operations of the virtual machine.
    pub operations: u64,
    /// Times that the statement was prepared again, because the schema had changed.
    pub prepared_again: u64,
}

/// The reason why a statement failed.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct Failure {
    /// SQLite's extended result code.
    pub code: i32,
    /// SQLite's message.
    pub message: String,
    /// The byte of the text at which SQLite saw the fault.
    pub offset: Option<u32>,
    /// True if a transaction was open, and was rolled back.
    pub rolled_back: bool,
}
