use candid::CandidType;
use serde::{Deserialize, Serialize};

/// A part of work in SQL.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The connection is opened and set.
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
    /// What is left.
    #[serde(rename = "rest")]
    Rest,
}

impl Phase {
    /// All of them, each at its own number.
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

/// What a phase cost.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct PhaseCost {
    /// Which.
    pub phase: Phase,
    /// Instructions of all its times.
    pub instructions: u64,
    /// How many times it came. In the instructions is a reading of the counter for each.
    pub times: u64,
}
