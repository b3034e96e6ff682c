//! The Candid types that cross between `stablebench` and its canisters.
//!
//! `canisters/bench.did` is the same interface in Candid, with comments for people who call a
//! canister by hand.
//!
//! Engines and jobs are opaque on the wire: an [`Engine`] is a name, and a [`Job`] is the name of
//! its suite and a blob, so a new one does not change the interface. A type that is added here
//! changes the modules of all canisters, so the suite calls has its own in `stablebench-calls`.
//!
//! Enumerations without fields are lower-case on the wire (`exclusive`). Errors are capitalised
//! (`IdExists`).

mod cuckoo;
mod db_bench;
mod description;
mod engine;
mod error;
mod history;
mod job;
mod keys;
mod measurement;
mod settings;
mod sysbench;
mod users;
mod vfs;

pub use cuckoo::{Cuckoo, CuckooHash, CuckooKeys, CuckooTask, Lookups};
pub use db_bench::{DbBench, DbBenchTask, DbBenchWrite};
pub use description::{CrateVersion, Description, EngineDescription, Occupant, SqliteDescription};
pub use engine::Engine;
pub use error::{Error, Result};
pub use history::{History, HistoryTask};
pub use job::{Digest, DigestPart, Executed, Inspected, Job, Kept, Part, StoredObject, SuiteJob};
pub use keys::{KeyKind, Keys, KeysTask, LinkSchema};
pub use measurement::{Measurement, OperationCost, PartCost, Phase, PhaseCost};
pub use settings::{
    JournalMode, Keyword, LockingMode, Setting, SqliteConfig, SqliteSettings, Storage, Synchronous,
    TempStore,
};
pub use sysbench::{KeyShape, Sysbench, SysbenchTask, SysbenchWorkload};
pub use users::{Operation, Selection, Users, UsersTask};
pub use vfs::{Vfs, VfsTask, VfsTransaction, VfsWork};

/// The largest payload of a row, in bytes.
pub const MAX_PAYLOAD_BYTES: u32 = 100_000;

/// The payload of a row where none was chosen, in bytes.
pub const DEFAULT_PAYLOAD_BYTES: u32 = 100;
