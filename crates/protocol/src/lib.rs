//! The Candid types that cross between `stablebench` and its canisters.
//!
//! `canisters/bench.did` is the same interface in Candid, with comments for people who call a
//! canister by hand.
//!
//! Engines and jobs are opaque on the wire: an [`Engine`] is a name, and a [`Job`] is the name of
//! its suite and a blob, so a new one does not change the interface. The type of a suite's jobs is in the
//! suite's own crate, since a type that is added here changes the modules of all canisters.
//!
//! Enumerations without fields are lower-case on the wire (`exclusive`). Errors are capitalised
//! (`IdExists`).

mod engine;
mod job;

pub use engine::{
    CrateVersion, Description, Engine, EngineDescription, JournalMode, Keyword, LockingMode,
    Occupant, Setting, SqliteConfig, SqliteDescription, SqliteSettings, Storage, Synchronous,
    TempStore,
};
pub use job::{
    Digest, DigestPart, Executed, Inspected, Job, JobPart, KeptPart, Measurement, OperationCost,
    PartCost, Phase, PhaseCost, StoredObject, SuiteJob,
};

use candid::CandidType;
use serde::{Deserialize, Serialize};

/// The largest payload of a row, in bytes.
pub const MAX_PAYLOAD_BYTES: u32 = 100_000;

/// The payload of a row where none was chosen, in bytes.
pub const DEFAULT_PAYLOAD_BYTES: u32 = 100;

/// The answer of a canister's method.
pub type Result<T> = std::result::Result<T, Error>;

/// The reason why a method did nothing. The canister's rows and settings are unchanged.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Only controllers may call update methods.
    #[error("the caller is not a controller of the canister")]
    NotController,
    /// The call's id is not larger than the ids of all earlier calls.
    #[error("a call with the id {last} was already executed; the ids of calls must increase")]
    Repeated {
        /// The largest id so far.
        last: u64,
    },
    /// Zero rows were asked for.
    #[error("zero rows were asked for")]
    NoRows,
    /// Several rows were asked for with a step of zero: they would share an id.
    #[error("several rows with a step of 0 would share an id")]
    NoStep,
    /// More rows than one message can process, or than there are operations in a job.
    #[error("more rows than the {limit} possible here; use several messages")]
    TooManyRows {
        /// The maximum number of rows.
        limit: u64,
    },
    /// An id is larger than the engine's largest.
    #[error("an id would be larger than {largest}")]
    IdOverflow {
        /// The largest id.
        largest: u64,
    },
    /// A row with this id exists.
    #[error("a row with id {id} exists already")]
    IdExists {
        /// The smallest such id.
        id: u64,
    },
    /// No row has this id.
    #[error("there is no row with id {id}")]
    IdMissing {
        /// The smallest such id.
        id: u64,
    },
    /// An id to insert or to delete is listed more than once.
    #[error("id {id} is in the list more than once")]
    IdTwice {
        /// The smallest such id.
        id: u64,
    },
    /// The engine has slots for multiples only.
    #[error("id {id} is not a multiple of {multiple}")]
    IdNotMultiple {
        /// The smallest such id.
        id: u64,
        /// The number that divides every id.
        multiple: u64,
    },
    /// The payload is too long.
    #[error("a payload has at most {limit} bytes here")]
    PayloadTooLong {
        /// The maximum length, in bytes.
        limit: u32,
    },
    /// A transaction of zero operations was asked for.
    #[error("a transaction has at least one operation")]
    EmptyTransaction,
    /// The costs of more operations than fit into one reply were asked for.
    #[error("at most {limit} operations can be measured one by one in a message")]
    TooManyEach {
        /// The maximum number of operations.
        limit: u64,
    },
    /// Changes made by a query are dropped, so it does not start.
    #[error("a query cannot write rows; call the method run")]
    WritesInQuery,
    /// A setting that the engine does not have, or a value that it cannot have.
    #[error("{setting}={value} is no setting of this canister: {reason}")]
    InvalidSetting {
        /// The name of the setting.
        setting: String,
        /// The value asked for.
        value: String,
        /// The reason.
        reason: String,
    },
    /// SQLite runs with another value than asked for.
    #[error("SQLite did not take {setting}={asked}: it runs with {got}{}", because(.reason))]
    SettingNotTaken {
        /// The pragma.
        setting: String,
        /// The value asked for.
        asked: String,
        /// The value read back.
        got: String,
        /// The reason, if it is known.
        reason: Option<String>,
    },
    /// SQLite reported an unknown value.
    #[error("SQLite reports {setting}={got}, which this canister does not know")]
    UnknownSetting {
        /// The pragma.
        setting: String,
        /// The value read back.
        got: String,
    },
    /// The canister does not have the suite.
    #[error("this canister has no suite {suite}")]
    SuiteUnavailable {
        /// The suite of the job.
        suite: String,
    },
    /// The job cannot be decoded as one of its suite.
    #[error("this is no job of the suite {suite}: {message}")]
    InvalidJob {
        /// The suite.
        suite: String,
        /// The defect of the job.
        message: String,
    },
    /// The canister does not have the engine.
    #[error("this canister has no engine {engine}")]
    EngineUnavailable {
        /// The engine asked for.
        engine: Engine,
    },
    /// The engine cannot do what was asked for.
    #[error("the engine {engine} cannot {operation}")]
    Unsupported {
        /// The engine.
        engine: Engine,
        /// The operation that it does not support.
        operation: String,
    },
    /// Another engine owns the stable memory; a fresh canister is needed.
    #[error("stable memory belongs to another engine ({occupant:?}); use a fresh canister")]
    StableMemoryTaken {
        /// The owner.
        occupant: Occupant,
    },
    /// Stable memory cannot grow as far as needed.
    #[error("stable memory cannot grow to {pages} pages")]
    OutOfStableMemory {
        /// The wasm pages (64 KiB) needed.
        pages: u64,
    },
    /// The digest passed in is complete.
    #[error("the digest is done already")]
    DigestDone,
    /// SQLite reported an error; the transaction was rolled back.
    #[error("SQLite: {message}")]
    Sqlite {
        /// SQLite's message.
        message: String,
    },
}

fn because(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(", because {reason}")).unwrap_or_default()
}
