//! A canister with `StableBTreeMap`, SQLite (`ic-rusqlite`) and the floor engines.
//!
//! Who has stable memory is decided by the first engine used:
//!
//! ```text
//! ic_rusqlite::MEMORY_MANAGER, the only MemoryManager          or the floor
//!   memory   0         StableBTreeMap                          (page 0: header,
//!   memory  10         StableBTreeMap, keys of 16 bytes         then its rows)
//!   memory  30 … 32    stores of the suite cuckoo
//!   memory 100         settings, written before an upgrade
//!   memory 101 … 118   ic-rusqlite's file system
//!   memory 120         the database
//! ```
//!
//! The manager writes to stable memory the moment it is first touched, so nothing
//! touches it before an engine above the floor is used.

mod allocator;
mod btree;
mod manager;
mod points;
mod records;
mod sqlite;

use btree::Btree;
use points::Stores;
use records::BtreeRecords;
use sqlite::Sqlite;
use stablebench_harness::floor::{Floor, StableMemory};
use stablebench_harness::{Canister, Database, KeyValue, Points, Records, Sql};
use stablebench_harness::{crate_versions, managed};
use stablebench_protocol::{CrateVersion, Cuckoo, Error, Occupant, SqliteDescription, Storage};

stablebench_harness::canister!(Bench);

/// The crates that decide what the engines cost.
const CRATES: [&str; 6] =
    ["ic-cdk", "ic-rusqlite", "ic-stable-structures", "ic-wasi-polyfill", "rusqlite", "stable-fs"];

/// What `dfx` and `icp` show of the canister.
#[used]
#[unsafe(link_section = "icp:public candid:service")]
static CANDID: [u8; include_bytes!("../bench.did").len()] = *include_bytes!("../bench.did");

#[derive(Default)]
struct Bench {
    btree: Option<Btree>,
    records: Option<BtreeRecords>,
    sqlite: Sqlite,
    points: Option<Stores>,
    floor: Floor<StableMemory>,
    managed: bool,
}

impl Bench {
    /// Takes stable memory for the manager.
    fn manage(&mut self) -> Result<()> {
        if let Some(owner) = self.floor.owner() {
            return Err(Error::StableMemoryTaken { occupant: Occupant::Floor(owner) });
        }
        self.managed = true;
        Ok(())
    }
}

impl Canister for Bench {
    fn engines(&self) -> &'static [Engine] {
        &Engine::ALL
    }

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::Btree => {
                self.manage()?;
                Ok(self.btree.get_or_insert_default())
            }
            Engine::Sqlite => {
                self.manage()?;
                Ok(self.sqlite.users())
            }
            Engine::Append | Engine::Array if self.managed => {
                Err(Error::StableMemoryTaken { occupant: Occupant::Manager })
            }
            Engine::Append | Engine::Array => self.floor.engine(engine),
            Engine::Cuckoo => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn database(&mut self) -> Result<&mut dyn Database> {
        self.manage()?;
        Ok(&mut self.sqlite)
    }

    fn sql(&mut self, storage: Storage) -> Result<&mut dyn Sql> {
        self.manage()?;
        Ok(self.sqlite.sql(storage))
    }

    fn records(&mut self, engine: Engine) -> Result<&mut dyn Records> {
        match engine {
            Engine::Btree => {
                self.manage()?;
                Ok(self.records.get_or_insert_default())
            }
            Engine::Append | Engine::Array if self.managed => {
                Err(Error::StableMemoryTaken { occupant: Occupant::Manager })
            }
            Engine::Append | Engine::Array => self.floor.records(engine),
            Engine::Sqlite | Engine::Cuckoo => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn points(&mut self, job: &Cuckoo, seed: u64) -> Result<&mut dyn Points> {
        self.manage()?;
        self.points.get_or_insert_default().store(job, seed)
    }

    fn occupant(&self) -> Occupant {
        match self.floor.owner() {
            Some(owner) => Occupant::Floor(owner),
            None if self.managed => Occupant::Manager,
            None => Occupant::Nobody,
        }
    }

    fn sqlite_description(&self) -> Option<SqliteDescription> {
        Some(sqlite::describe())
    }

    fn crates(&self) -> Vec<CrateVersion> {
        crate_versions(&CRATES)
    }

    fn save(&mut self, payload_bytes: u32) -> Result<()> {
        let state = self.sqlite.state(payload_bytes);
        if self.managed {
            self.sqlite.close();
            manager::settings().save(&state)
        } else {
            self.floor.save(state)
        }
    }

    fn load(&mut self) -> u32 {
        self.managed = managed::owns_stable_memory();
        let state = if self.managed { manager::settings().load() } else { self.floor.load() };
        let state = state.unwrap_or_default();
        self.sqlite = Sqlite::restore(&state);
        state.payload_bytes
    }
}
