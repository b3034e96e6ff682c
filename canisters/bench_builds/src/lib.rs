//! A canister that is built with many options: the users workload on `StableBTreeMap`, on SQLite and
//! on the heap, and computations without rows.
//!
//! The engines in stable memory are the files of the canister `bench`, and use the same memories. An
//! upgrade keeps none of their rows: a build is installed, measured and dropped.

#[path = "../../bench/src/btree.rs"]
#[allow(dead_code, reason = "the suite db-bench is not part of this canister")]
mod btree;
mod heap;
#[path = "../../bench/src/memory.rs"]
#[allow(dead_code, reason = "the canister bench uses more of it")]
mod memory;
#[path = "../../bench/src/sqlite.rs"]
#[allow(dead_code, reason = "upgrades and other suites are not part of this canister")]
mod sqlite;
#[path = "../../bench/src/statements.rs"]
mod statements;

use btree::Btree;
use heap::Heap;
use sqlite::Sqlite;
use stablebench_harness::{Canister, State, SuiteEntry, crate_versions, is_managed};
use stablebench_protocol::{CrateVersion, Error, Occupant, SqliteDescription};
use stablebench_suite_builds::{Builds, HEAP};
use stablebench_suite_users::Users;
use stablebench_suite_users::canister::{Database, KeyValue, PayloadBytes, RowEngines};

#[cfg(feature = "talc")]
#[global_allocator]
static ALLOCATOR: talc::wasm::WasmDynamicTalc = talc::wasm::new_wasm_dynamic_allocator();

stablebench_harness::canister!(Bench, include_bytes!("../../bench.did"));
stablebench_suite_users::methods_by_hand!();
stablebench_suite_users::no_sql_method!();

struct Bench {
    btree: Option<Btree>,
    heap: Heap,
    sqlite: Sqlite,
    payload: PayloadBytes,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            btree: None,
            heap: Heap::default(),
            sqlite: sqlite::restore(&State::default()),
            payload: PayloadBytes::default(),
        }
    }
}

impl Canister for Bench {
    const SUITES: &'static [SuiteEntry<Self>] =
        &[SuiteEntry::of::<Users>(), SuiteEntry::of::<Builds>()];

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
        self.sqlite.close();
        Ok(())
    }

    fn load(&mut self) {}
}

impl RowEngines for Bench {
    const ENGINES: &'static [Engine] = &[Engine::BTREE, Engine::SQLITE, HEAP];

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::BTREE => Ok(self.btree.get_or_insert_default()),
            Engine::SQLITE => Ok(self.sqlite.users()),
            HEAP => Ok(&mut self.heap),
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
