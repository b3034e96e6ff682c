//! A canister with SQLite through `ic-sqlite-vfs`.
//!
//! ```text
//! ic_sqlite_vfs::MemoryManager, with the layout of ic-stable-structures
//!   memory 100         the state, written before an upgrade
//!   memory 120         the database, after a page of the library's own
//! ```
//!
//! The library's manager hands out memories, but others cannot read or write them. Its layout is that
//! of `ic-stable-structures`, whose manager reads and writes the state: only at an upgrade, when no
//! other manager is in use.
//!
//! ```text
//! 0   3  magic "MGR"
//! 3   1  layout version, 1
//! 4   2  buckets in use
//! 6   2  pages per bucket
//! 8  32  reserved
//! 40  …  pages of each memory, 8 bytes each, little-endian
//! ```
//!
//! Source: `src/stable/memory_layout.rs` of `ic-sqlite-vfs` 2.1.0.

mod sqlite;

use ic_sqlite_vfs::{DbMemory, MemoryManager};
use ic_stable_structures::memory_manager::VirtualMemory;
use ic_stable_structures::{DefaultMemoryImpl, memory_manager};
use sqlite::{LibraryConnection, Sqlite};
use stablebench_harness::{
    Canister, STATE_MEMORY, SavedState, Sql, SuiteEntry, crate_versions, is_managed,
};
use stablebench_protocol::{CrateVersion, Error, Occupant, SqliteDescription, Storage};
use stablebench_suite_cuckoo::Cuckoo;
use stablebench_suite_cuckoo::canister::PointEngines;
use stablebench_suite_db_bench::DbBench;
use stablebench_suite_db_bench::canister::RecordEngines;
use stablebench_suite_keys::Keys;
use stablebench_suite_mix::Mix;
use stablebench_suite_mix::canister::MixCanister;
use stablebench_suite_sql::Sql as SqlJob;
use stablebench_suite_sql::canister::{Handle, SqlCanister};
use stablebench_suite_sysbench::Sysbench;
use stablebench_suite_users::Users;
use stablebench_suite_users::canister::{Database, KeyValue, PayloadBytes, RowEngines};
use stablebench_suite_vfs::Vfs;

stablebench_harness::canister!(Bench, include_bytes!("../../bench.did"));
stablebench_suite_users::methods_by_hand!();
stablebench_suite_sql::sql_method!();

/// The database's memory, which the library's documentation suggests.
const DATABASE_MEMORY: u8 = 120;

/// The position of the memories' pages in the layout.
const PAGES_OFFSET: u64 = 40;
const WASM_PAGE_BYTES: u64 = 65536;

struct Bench {
    sqlite: Sqlite,
    payload: PayloadBytes,
}

impl Default for Bench {
    fn default() -> Self {
        Self { sqlite: sqlite::restore(&SavedState::default()), payload: PayloadBytes::default() }
    }
}

impl SqlCanister for Bench {
    const OWN_TRANSACTIONS: bool = true;

    fn with_handle(
        &mut self,
        writes: bool,
        work: &mut dyn FnMut(Handle<'_>) -> Result<()>,
    ) -> Result<()> {
        let work = |connection: &LibraryConnection| {
            // SAFETY: the library is linked with the same SQLite, and the connection is borrowed.
            let handle = unsafe { Handle::new(connection.raw()) };
            work(handle.ok_or(Error::NoRows)?)
        };
        let connection = self.sqlite.sql();
        if writes { connection.update(work) } else { connection.query(work) }
    }
}

impl Canister for Bench {
    const SUITES: &'static [SuiteEntry<Self>] = &[
        SuiteEntry::of::<Users>(),
        SuiteEntry::of::<DbBench>(),
        SuiteEntry::of::<Keys>(),
        SuiteEntry::of::<Sysbench>(),
        SuiteEntry::of::<Cuckoo>(),
        SuiteEntry::of::<Vfs>(),
        SuiteEntry::of::<SqlJob>(),
        SuiteEntry::of::<Mix>(),
    ];

    fn sql(&mut self, storage: Storage) -> Result<&mut dyn Sql> {
        match storage {
            Storage::Stable => Ok(self.sqlite.sql()),
            Storage::Heap => Err(Error::Unsupported {
                engine: Engine::SQLITE,
                operation: "have a database on the heap: ic-sqlite-vfs opens only the one in \
                            stable memory"
                    .to_owned(),
            }),
        }
    }

    fn configure(&mut self, settings: &[Setting]) -> Result<Vec<Setting>> {
        stablebench_suite_users::canister::configure(self, settings)
    }

    fn describe(&mut self) -> Result<Description> {
        stablebench_suite_users::canister::describe(self)
    }

    fn occupant(&self) -> Occupant {
        if is_managed() { Occupant::Manager } else { Occupant::Nobody }
    }

    fn sqlite_description(&self) -> Option<SqliteDescription> {
        Some(sqlite::describe())
    }

    fn crates(&self) -> Vec<CrateVersion> {
        crate_versions(env!("CRATE_VERSIONS"))
    }

    fn save(&mut self) -> Result<()> {
        let state = self.sqlite.state(self.payload.0);
        self.sqlite.close();
        state.save(&state_memory())
    }

    fn load(&mut self) {
        let saved = is_managed().then(|| SavedState::load(&state_memory()));
        let state = saved.flatten().unwrap_or_default();
        self.sqlite = sqlite::restore(&state);
        self.payload = PayloadBytes(state.payload_bytes);
    }
}

impl RowEngines for Bench {
    const ENGINES: &'static [Engine] = &[Engine::SQLITE];

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::SQLITE => Ok(&mut self.sqlite),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn database(&mut self) -> Result<&mut dyn Database> {
        Ok(&mut self.sqlite)
    }

    fn payload(&mut self) -> &mut PayloadBytes {
        &mut self.payload
    }
}

impl RecordEngines for Bench {}

impl PointEngines for Bench {}

impl MixCanister for Bench {}

/// Returns the database's memory; takes stable memory for the manager.
fn database_memory() -> Result<DbMemory> {
    let memory = ic_sqlite_vfs::DefaultMemoryImpl::default();
    let manager = MemoryManager::init_strict(memory)
        .map_err(|error| Error::Sqlite { message: error.to_string() })?;
    Ok(manager.get(ic_sqlite_vfs::MemoryId::new(DATABASE_MEMORY)))
}

/// Returns the bytes of the database's memory.
fn database_bytes() -> u64 {
    let mut pages = [0; 8];
    if is_managed() {
        ic_cdk::api::stable_read(PAGES_OFFSET + u64::from(DATABASE_MEMORY) * 8, &mut pages);
    }
    u64::from_le_bytes(pages) * WASM_PAGE_BYTES
}

/// Returns the memory of the state.
fn state_memory() -> VirtualMemory<DefaultMemoryImpl> {
    let manager = memory_manager::MemoryManager::init(DefaultMemoryImpl::default());
    manager.get(memory_manager::MemoryId::new(STATE_MEMORY))
}
