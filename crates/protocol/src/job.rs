//! Jobs of suites: their parts, and what canisters answer about them.

use crate::{Error, Result, SqliteSettings};
use candid::CandidType;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The work of a suite. Only the suite knows what it means.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// The name of the suite.
    pub suite: String,
    /// The suite's own type in Candid.
    #[serde(with = "serde_bytes")]
    pub work: Vec<u8>,
}

/// The type of a suite's jobs.
pub trait SuiteJob: CandidType + DeserializeOwned {
    /// The name of the suite.
    const SUITE: &'static str;
}

impl Job {
    /// Encodes a job of a suite.
    pub fn new<J: SuiteJob>(job: &J) -> Self {
        #[expect(clippy::expect_used, reason = "the type table of a derived type is valid")]
        let work = candid::encode_one(job).expect("a job can be encoded");
        Self { suite: J::SUITE.to_owned(), work }
    }

    /// Decodes a job of a suite.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidJob`] if this is a job of another suite, or not encoded as one.
    pub fn decode<J: SuiteJob>(&self) -> Result<J> {
        let invalid = |message| Error::InvalidJob { suite: J::SUITE.to_owned(), message };
        if self.suite != J::SUITE {
            return Err(invalid(format!("it is of the suite {}", self.suite)));
        }
        let decoded = candid::decode_one(&self.work);
        decoded.map_err(|error| invalid(error.to_string()))
    }
}

/// The part of a job that one message does.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct JobPart {
    /// The whole job.
    pub job: Job,
    /// The source of all random choices.
    pub seed: u64,
    /// The first operation of the job that is done.
    pub from: u64,
    /// The number of operations that are done.
    pub count: u64,
    /// True if the counter is also read around each single operation.
    pub each: bool,
}

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

/// The answer of the method `execute`: the costs of a part of a job, and what it found.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Executed {
    /// The costs of the whole part.
    pub measurement: Measurement,
    /// The costs of each operation, in their order, if they were asked for.
    pub each: Vec<OperationCost>,
    /// The digest of what was read, found again after the measurement; nothing if the part
    /// wrote.
    pub results: Option<Digest>,
}

/// The answer of the method `kept`: a part of what a suite keeps for its caller.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, Default, PartialEq, Eq)]
pub struct KeptPart {
    /// Candid of the suite's own type, or bytes of a file.
    #[serde(with = "serde_bytes")]
    pub bytes: Vec<u8>,
    /// The position of the next part, if there is one.
    pub next: Option<u64>,
}

impl KeptPart {
    /// A part in Candid.
    pub fn encoded(value: &impl CandidType, next: Option<u64>) -> Self {
        #[expect(clippy::expect_used, reason = "the type table of a derived type is valid")]
        let bytes = candid::encode_one(value).expect("a part can be encoded");
        Self { bytes, next }
    }
}

/// A fingerprint of a set of rows, computed as in `stablebench_workload::digest`.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Digest {
    /// The number of rows.
    pub rows: u64,
    /// The sum of the rows' first hashes.
    pub low: u64,
    /// The sum of the rows' second hashes.
    pub high: u64,
}

/// A digest that may not be complete. The next call continues from it.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DigestPart {
    /// The digest of the rows read so far.
    pub digest: Digest,
    /// The position of the next row; its meaning depends on the suite and the engine.
    pub position: u64,
    /// True if every row was read.
    pub done: bool,
    /// `performance_counter(0)` after this part, to choose the size of the next.
    pub message_instructions: u64,
}

/// The storage that the tables of a job take.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
pub struct Inspected {
    /// Bytes of pages, nodes or slots, including the free space inside them.
    pub stored_bytes: u64,
    /// Bytes of the virtual memories that contain those; 0 if they are on the heap.
    pub virtual_bytes: u64,
    /// Bytes of heap that a page cache takes.
    pub cache_bytes: u64,
    /// SQLite's settings, if SQLite is the engine.
    pub sqlite: Option<SqliteSettings>,
    /// The b-trees of the database, if the engine can list them.
    pub objects: Vec<StoredObject>,
}

/// A table or an index, as SQLite's `dbstat` reports it.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct StoredObject {
    /// Its name.
    pub name: String,
    /// The table that it belongs to.
    pub table: String,
    /// True for an index.
    pub index: bool,
    /// Bytes of its pages.
    pub bytes: u64,
    /// The number of its pages.
    pub pages: u64,
    /// The number of pages that point to other pages.
    pub internal_pages: u64,
    /// The number of pages with the rest of entries that are too long for theirs.
    pub overflow_pages: u64,
    /// The number of pages that internal pages point to.
    pub children: u64,
    /// The number of entries of its leaf pages.
    pub leaf_entries: u64,
    /// Bytes of its entries.
    pub payload_bytes: u64,
    /// Free bytes in its pages.
    pub unused_bytes: u64,
    /// The number of pages from the root to a leaf, including both.
    pub depth: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(CandidType, Deserialize, Clone, Debug, PartialEq, Eq)]
    enum Clocks {
        #[serde(rename = "wind")]
        Wind { turns: u64, together: Option<u64> },
    }

    impl SuiteJob for Clocks {
        const SUITE: &'static str = "clocks";
    }

    #[derive(CandidType, Deserialize, Debug, PartialEq, Eq)]
    struct Kites {
        strings: u64,
    }

    impl SuiteJob for Kites {
        const SUITE: &'static str = "kites";
    }

    #[test]
    fn a_job_is_decoded_by_its_suite_only() {
        let clocks = Clocks::Wind { turns: 7, together: Some(5) };
        let job = Job::new(&clocks);
        assert_eq!(job.decode::<Clocks>(), Ok(clocks));
        let bytes = candid::encode_one(&job).unwrap();
        assert_eq!(candid::decode_one::<Job>(&bytes).unwrap(), job);

        let other = job.decode::<Kites>().unwrap_err();
        assert_eq!(
            other.to_string(),
            "this is no job of the suite kites: it is of the suite clocks"
        );
        let kites = Job::new(&Kites { strings: 1 });
        let damaged = Job { suite: Clocks::SUITE.to_owned(), ..kites };
        let refused = damaged.decode::<Clocks>().unwrap_err().to_string();
        assert!(refused.starts_with("this is no job of the suite clocks: "), "{refused}");
    }
}
