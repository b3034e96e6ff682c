//! The Candid types that cross between `stablebench` and its canisters.
//!
//! There is no logic here: what a canister takes and answers, and nothing else.
//! The interface as a whole stands in `canisters/bench/bench.did`.
//!
//! Names on the wire are those of the Candid file: enumerations without fields
//! are lower-case (`btree`, `exclusive`), errors are capitalised (`IdExists`).

mod cuckoo;
mod db_bench;
mod describe;
mod digest;
mod engine;
mod error;
#[cfg(feature = "history")]
mod history;
mod job;
mod keys;
#[cfg(feature = "leveldb")]
mod leveldb;
mod measurement;
mod phase;
mod sqlite;
mod sysbench;
mod vfs;
mod work;

pub use cuckoo::{Cuckoo, CuckooHash, CuckooKeys, CuckooTask, Lookups, PointStore};
pub use db_bench::{DbBench, DbBenchTask, DbBenchWrite};
pub use describe::{CrateVersion, Description, EngineDescription, Occupant, SqliteDescription};
pub use digest::{Digest, DigestPart};
pub use engine::Engine;
pub use error::{Error, Result};
#[cfg(feature = "history")]
pub use history::{History, HistoryTask};
pub use job::{Inspected, Job, Part, Performed, StoredObject};
pub use keys::{KeyKind, Keys, KeysTask, LinkSchema};
#[cfg(feature = "leveldb")]
pub use leveldb::{Compression, LeveldbConfig};
pub use measurement::Measurement;
pub use phase::{Phase, PhaseCost};
pub use sqlite::{
    JournalMode, LockingMode, SqliteConfig, SqliteSettings, Storage, Synchronous, TempStore,
};
pub use sysbench::{KeyShape, Sysbench, SysbenchTask, SysbenchWorkload};
pub use vfs::{Vfs, VfsTask, VfsTransaction, VfsWork};
pub use work::{Operation, OperationCost, Selection, Work, Worked};

/// The longest payload a row may have, in bytes.
pub const MAX_PAYLOAD_BYTES: u32 = 100_000;

/// The length of a payload where none was chosen, in bytes.
pub const DEFAULT_PAYLOAD_BYTES: u32 = 100;
