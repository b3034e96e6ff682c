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

mod description;
mod engine;
mod error;
mod job;
mod measurement;
mod settings;

pub use description::{CrateVersion, Description, EngineDescription, Occupant, SqliteDescription};
pub use engine::Engine;
pub use error::{Error, Result};
pub use job::{Digest, DigestPart, Executed, Inspected, Job, Kept, Part, StoredObject, SuiteJob};
pub use measurement::{Measurement, OperationCost, PartCost, Phase, PhaseCost};
pub use settings::{
    JournalMode, Keyword, LockingMode, Setting, SqliteConfig, SqliteSettings, Storage, Synchronous,
    TempStore,
};

/// The largest payload of a row, in bytes.
pub const MAX_PAYLOAD_BYTES: u32 = 100_000;

/// The payload of a row where none was chosen, in bytes.
pub const DEFAULT_PAYLOAD_BYTES: u32 = 100;
