//! A canister with SQLite through `ic-sqlite-vfs`, and the interface of `bench`.
//!
//! ```text
//! ic_sqlite_vfs::MemoryManager, laid out as that of ic-stable-structures
//!   memory 100         settings, written before an upgrade
//!   memory 120         the database, behind a page of the library's own
//! ```

mod manager;
mod sqlite;

use sqlite::Sqlite;
use stablebench_harness::{Canister, Database, KeyValue, Sql, crate_versions, managed};
use stablebench_protocol::{CrateVersion, Error, Occupant, SqliteDescription, Storage};

stablebench_harness::canister!(Bench);

/// The crates that decide what the engine costs.
const CRATES: [&str; 3] = ["ic-cdk", "ic-sqlite-vfs", "ic-stable-structures"];

/// What `dfx` and `icp` show of the canister.
#[used]
#[unsafe(link_section = "icp:public candid:service")]
static CANDID: [u8; include_bytes!("../../bench/bench.did").len()] =
    *include_bytes!("../../bench/bench.did");

#[derive(Default)]
struct Bench {
    sqlite: Sqlite,
}

impl Canister for Bench {
    fn engines(&self) -> &'static [Engine] {
        &[Engine::Sqlite]
    }

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::Sqlite => Ok(self.sqlite.users()),
            Engine::Btree | Engine::Append | Engine::Array | Engine::Cuckoo => {
                Err(Error::EngineUnavailable { engine })
            }
        }
    }

    fn database(&mut self) -> Result<&mut dyn Database> {
        Ok(self.sqlite.database())
    }

    fn sql(&mut self, storage: Storage) -> Result<&mut dyn Sql> {
        match storage {
            Storage::Stable => Ok(self.sqlite.sql()),
            Storage::Heap => Err(Error::Unsupported {
                engine: Engine::Sqlite,
                operation: "have a database on the heap: ic-sqlite-vfs opens none but the one in \
                            stable memory"
                    .to_owned(),
            }),
        }
    }

    fn occupant(&self) -> Occupant {
        if managed::owns_stable_memory() { Occupant::Manager } else { Occupant::Nobody }
    }

    fn sqlite_description(&self) -> Option<SqliteDescription> {
        Some(sqlite::describe())
    }

    fn crates(&self) -> Vec<CrateVersion> {
        crate_versions(&CRATES)
    }

    fn save(&mut self, payload_bytes: u32) -> Result<()> {
        let state = self.sqlite.state(payload_bytes);
        self.sqlite.database().close();
        manager::settings().save(&state)
    }

    fn load(&mut self) -> u32 {
        let saved = managed::owns_stable_memory().then(|| manager::settings().load());
        let state = saved.flatten().unwrap_or_default();
        self.sqlite = Sqlite::restore(&state);
        state.payload_bytes
    }
}
