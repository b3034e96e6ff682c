use candid::CandidType;
use serde::{Deserialize, Serialize};

/// What one piece of work cost inside the canister.
///
/// What comes before the work (the caller's check, and in methods called by hand those of
/// arguments and ids) is not in `instructions`; it is in `message_instructions`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Measurement {
    /// `performance_counter(0)` after the work less before it.
    pub instructions: u64,
    /// The same with no work between: part of `instructions`, not subtracted.
    pub counter_overhead: u64,
    /// `performance_counter(0)` after the work: the message so far.
    pub message_instructions: u64,
    /// Rows written, found or removed; 0 where the work is not about rows.
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
