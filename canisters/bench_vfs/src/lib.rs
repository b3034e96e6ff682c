//! A canister with SQLite through `ic-sqlite-vfs`.
//!
//! ```text
//! ic_sqlite_vfs::MemoryManager, with the layout of ic-stable-structures
//!   memory 100         the state, written before an upgrade
//!   memory 120         the database, after a page of the library's own
//! ```

mod memory;
mod sqlite;
mod statements;

use sqlite::Sqlite;
use stablebench_harness::{Canister, Sql, State, SuiteEntry, crate_versions, is_managed};
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

struct Bench {
    sqlite: Sqlite,
    payload: PayloadBytes,
}

impl Default for Bench {
    fn default() -> Self {
        Self { sqlite: sqlite::restore(&State::default()), payload: PayloadBytes::default() }
    }
}

impl SqlCanister for Bench {
    const OWN_TRANSACTIONS: bool = true;

    fn with_handle(
        &mut self,
        writes: bool,
        work: &mut dyn FnMut(Handle<'_>) -> Result<()>,
    ) -> Result<()> {
        let work = |connection: &statements::Raw| {
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
        state.save(&memory::state())
    }

    fn load(&mut self) {
        let saved = is_managed().then(|| State::load(&memory::state()));
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
