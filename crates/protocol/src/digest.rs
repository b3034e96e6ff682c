use candid::CandidType;
use serde::{Deserialize, Serialize};

/// A fingerprint of a set of rows. How it is computed: `stablebench_workload::digest`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// How many rows.
    pub rows: u64,
    /// Sum of the rows' first hashes.
    pub low: u64,
    /// Sum of the rows' second hashes.
    pub high: u64,
}

/// A digest that may not be finished. Passed back as it came, it is carried on.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestPart {
    /// The digest of the rows seen so far.
    pub digest: Digest,
    /// Where the engine goes on; means something to the engine alone.
    pub position: u64,
    /// Whether every row was seen.
    pub done: bool,
    /// `performance_counter(0)` after this part: how many rows the next may be about.
    pub message_instructions: u64,
}
