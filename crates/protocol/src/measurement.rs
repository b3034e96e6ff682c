use candid::CandidType;
use serde::{Deserialize, Serialize};

/// The cost of one piece of work inside the canister.
///
/// `instructions` does not include what comes before the work: the check of the caller, and in
/// methods that are called by hand the checks of arguments and ids. `message_instructions` does.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measurement {
    /// `performance_counter(0)` after the work minus before it.
    pub instructions: u64,
    /// The same without work in between: a part of `instructions`, not subtracted.
    pub counter_overhead: u64,
    /// `performance_counter(0)` after the work: the message so far.
    pub message_instructions: u64,
    /// The number of rows written, found or removed; 0 if the work is not about rows.
    pub rows: u64,
    /// Bytes of the rows' texts that were written or read.
    pub bytes: u64,
    /// Wasm pages (64 KiB) of heap before the work.
    pub heap_pages_before: u64,
    /// Wasm pages (64 KiB) of heap after the work.
    pub heap_pages_after: u64,
    /// Wasm pages (64 KiB) of stable memory before the work.
    pub stable_pages_before: u64,
    /// Wasm pages (64 KiB) of stable memory after the work.
    pub stable_pages_after: u64,
}

/// The cost of a part of a job.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct PartCost {
    /// The costs of the whole part.
    pub measurement: Measurement,
    /// The costs of each operation, in their order, if they were asked for.
    pub each: Vec<OperationCost>,
}

impl From<Measurement> for PartCost {
    fn from(measurement: Measurement) -> Self {
        Self { measurement, each: Vec::new() }
    }
}

/// The cost of one operation.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OperationCost {
    /// `performance_counter(0)` after the operation minus before it, without the beginning and
    /// the end of its transaction.
    pub instructions: u64,
    /// The units of storage that the operation took: pages of SQLite's database, nodes of the
    /// map, wasm pages of a floor. Negative if it released some.
    pub allocated: i64,
}

/// A phase of work in SQL.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The connection is opened and configured.
    #[serde(rename = "open")]
    Open,
    /// Statements are prepared, or taken from a cache.
    #[serde(rename = "prepare")]
    Prepare,
    /// A transaction begins.
    #[serde(rename = "begin")]
    Begin,
    /// Parameters are bound.
    #[serde(rename = "bind")]
    Bind,
    /// SQLite executes a statement, up to its next row or its end.
    #[serde(rename = "step")]
    Step,
    /// A row's values are copied.
    #[serde(rename = "copy")]
    Copy,
    /// A transaction ends.
    #[serde(rename = "commit")]
    Commit,
    /// Everything else.
    #[serde(rename = "rest")]
    Rest,
}

impl Phase {
    /// All phases, each at the index of its discriminant.
    pub const ALL: [Self; 8] = [
        Self::Open,
        Self::Prepare,
        Self::Begin,
        Self::Bind,
        Self::Step,
        Self::Copy,
        Self::Commit,
        Self::Rest,
    ];
}

/// The cost of a phase.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct PhaseCost {
    /// The phase.
    pub phase: Phase,
    /// Instructions of all its occurrences.
    pub instructions: u64,
    /// The number of its occurrences. The instructions include a reading of the counter for
    /// each.
    pub times: u64,
}
