//! A canister with DoltLite: SQLite's front end over tables that are prolly trees, and their history.
//!
//! ```text
//! ic_stable_structures::MemoryManager
//!   memory 100         the state, written before an upgrade
//!   memory 101 … 118   file system, with the database
//! ```
//!
//! `rusqlite` calls DoltLite's C functions, which are those of SQLite. The code between `rusqlite` and
//! the suites is that of `bench`, so that only the engine differs.

mod sqlite;
#[path = "../../bench/src/statements.rs"]
mod statements;

use sqlite::{Sqlite, memory};
use stablebench_harness::{
    Canister, STATE_MEMORY, SavedState, Sql, SuiteEntry, crate_versions, is_managed,
};
use stablebench_protocol::{CrateVersion, Error, Occupant, SqliteDescription, Storage};
use stablebench_suite_cuckoo::Cuckoo;
use stablebench_suite_cuckoo::canister::PointEngines;
use stablebench_suite_db_bench::DbBench;
use stablebench_suite_db_bench::canister::RecordEngines;
use stablebench_suite_history::History;
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
    managed: bool,
    payload: PayloadBytes,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            sqlite: sqlite::restore(&SavedState::default()),
            managed: false,
            payload: PayloadBytes::default(),
        }
    }
}

impl SqlCanister for Bench {
    fn with_handle(
        &mut self,
        _: bool,
        work: &mut dyn FnMut(Handle<'_>) -> Result<()>,
    ) -> Result<()> {
        self.managed = true;
        let connection = self.sqlite.stable().opened()?;
        // SAFETY: `rusqlite` calls DoltLite's functions, and the connection is borrowed.
        let handle = unsafe { Handle::new(connection.handle()) };
        work(handle.ok_or(Error::NoRows)?)
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
        SuiteEntry::of::<History>(),
    ];

    fn sql(&mut self, storage: Storage) -> Result<&mut dyn Sql> {
        self.managed = true;
        Ok(self.sqlite.sql(storage))
    }

    fn configure(&mut self, settings: &[Setting]) -> Result<Vec<Setting>> {
        stablebench_suite_users::canister::configure(self, settings)
    }

    fn describe(&mut self) -> Result<Description> {
        stablebench_suite_users::canister::describe(self)
    }

    fn occupant(&self) -> Occupant {
        if self.managed { Occupant::Manager } else { Occupant::Nobody }
    }

    fn sqlite_description(&self) -> Option<SqliteDescription> {
        Some(sqlite::describe())
    }

    fn crates(&self) -> Vec<CrateVersion> {
        crate_versions(env!("CRATE_VERSIONS"))
    }

    fn save(&mut self) -> Result<()> {
        if !self.managed && self.payload == PayloadBytes::default() {
            // Nothing to save: stable memory stays as it is.
            return Ok(());
        }
        let state = self.sqlite.state(self.payload.0);
        self.sqlite.close();
        state.save(&memory(STATE_MEMORY))
    }

    fn load(&mut self) {
        self.managed = is_managed();
        let saved = self.managed.then(|| SavedState::load(&memory(STATE_MEMORY)));
        let state = saved.flatten().unwrap_or_default();
        self.sqlite = sqlite::restore(&state);
        self.payload = PayloadBytes(state.payload_bytes);
    }
}

impl RowEngines for Bench {
    const ENGINES: &'static [Engine] = &[Engine::SQLITE];

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::SQLITE => {
                self.managed = true;
                Ok(self.sqlite.users())
            }
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn database(&mut self) -> Result<&mut dyn Database> {
        self.managed = true;
        Ok(&mut self.sqlite)
    }

    fn payload(&mut self) -> &mut PayloadBytes {
        &mut self.payload
    }
}

impl RecordEngines for Bench {}

impl PointEngines for Bench {}

impl MixCanister for Bench {}
