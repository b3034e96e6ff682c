use crate::{Engine, Occupant};
use candid::CandidType;
use serde::{Deserialize, Serialize};

/// What a canister's method answers.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a method did nothing. The canister's rows and settings are as they were.
#[derive(CandidType, Serialize, Deserialize, Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Only controllers may call update methods.
    #[error("the caller is not a controller of the canister")]
    NotController,
    /// The call's id is not larger than that of every call before it.
    #[error("a call with id {last} was here already; ids of measured calls rise")]
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
    /// More rows than one message may hold.
    #[error("more rows than the {limit} possible here; use several messages")]
    TooManyRows {
        /// The most rows.
        limit: u64,
    },
    /// An id is larger than the engine's largest.
    #[error("an id would be larger than {largest}")]
    IdOverflow {
        /// The largest id.
        largest: u64,
    },
    /// The id is there already.
    #[error("a row with id {id} exists already")]
    IdExists {
        /// The smallest such id.
        id: u64,
    },
    /// The id is not there.
    #[error("there is no row with id {id}")]
    IdMissing {
        /// The smallest such id.
        id: u64,
    },
    /// What is inserted or deleted is named once.
    #[error("id {id} is in the list more than once")]
    IdTwice {
        /// The smallest such id.
        id: u64,
    },
    /// The engine has places for multiples only.
    #[error("id {id} is not a multiple of {multiple}")]
    IdNotMultiple {
        /// The smallest such id.
        id: u64,
        /// What ids must be multiples of.
        multiple: u64,
    },
    /// The payload is longer than it may be.
    #[error("a payload is at most {limit} bytes long here")]
    PayloadTooLong {
        /// The longest payload, in bytes.
        limit: u32,
    },
    /// A transaction of zero operations was asked for.
    #[error("a transaction holds one operation or more")]
    EmptyTransaction,
    /// More operations than one message can tell the costs of.
    #[error("costs of each operation are told of {limit} operations at most")]
    TooManyEach {
        /// The most operations.
        limit: u64,
    },
    /// A query drops what it writes, so it does not begin.
    #[error("a query cannot write rows; use the method work")]
    WritesInQuery,
    /// SQLite runs with another value than asked for.
    #[error("SQLite did not take {setting}={asked}: it runs with {got}{}", because(.reason))]
    SettingNotTaken {
        /// The pragma.
        setting: String,
        /// The value asked for.
        asked: String,
        /// The value read back.
        got: String,
        /// Why, where that is known.
        reason: Option<String>,
    },
    /// SQLite reported a value that this version does not know.
    #[error("SQLite reports {setting}={got}, which is not known here")]
    UnknownSetting {
        /// The pragma.
        setting: String,
        /// The value read back.
        got: String,
    },
    /// The canister has no such engine.
    #[error("this canister has no engine {engine}")]
    EngineUnavailable {
        /// The engine asked for.
        engine: Engine,
    },
    /// The engine cannot do what was asked.
    #[error("the engine {engine} cannot {operation}")]
    Unsupported {
        /// The engine.
        engine: Engine,
        /// What it cannot do.
        operation: String,
    },
    /// Another owner has the stable memory; a fresh canister is needed.
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
    /// The part of a digest passed in cannot be carried on.
    #[error("the digest is done already")]
    DigestDone,
    /// SQLite reported an error; the transaction was rolled back.
    #[error("SQLite: {message}")]
    Sqlite {
        /// SQLite's words.
        message: String,
    },
}

fn because(reason: &Option<String>) -> String {
    reason.as_ref().map(|reason| format!(", because {reason}")).unwrap_or_default()
}
