//! A canister with `StableBTreeMap`, SQLite (`ic-rusqlite`) and the floor engines.
//!
//! The first engine that is used decides who owns the stable memory:
//!
//! ```text
//! ic_rusqlite::MEMORY_MANAGER, the only MemoryManager          or the floor
//!   memory   0         StableBTreeMap                          (page 0: header,
//!   memory  10         StableBTreeMap, keys of 16 bytes         then its rows)
//!   memory  30 … 32    engines of the suite cuckoo
//!   memory  40 … 48    maps of the suite mix
//!   memory 100         the state, written before an upgrade
//!   memory 101 … 118   ic-rusqlite's file system
//!   memory 120         the database
//! ```
//!
//! The manager writes to stable memory when it is first touched, so nothing touches it before an
//! engine above the floor is used.

mod btree;
mod memory;
mod points;
mod sqlite;
mod statements;

use btree::{Btree, BtreeRecords};
use memory::{Virtual, memory, stored_bytes};
use sqlite::{DATABASE, Sqlite};
use stablebench_harness::{
    Canister, Records, STATE_MEMORY, SavedState, Sql, SuiteEntry, crate_versions, is_managed,
};
use stablebench_protocol::{CrateVersion, Error, Occupant, SqliteDescription, Storage};
use stablebench_suite_cuckoo::Cuckoo;
use stablebench_suite_cuckoo::canister::{PointEngines, Points};
use stablebench_suite_db_bench::DbBench;
use stablebench_suite_db_bench::canister::RecordEngines;
use stablebench_suite_keys::Keys;
use stablebench_suite_mix::Mix;
use stablebench_suite_mix::canister::{Maps, MixCanister, MixTable};
use stablebench_suite_sql::canister::{Handle, SqlCanister};
use stablebench_suite_sql::{FilePart, Sql as SqlJob};
use stablebench_suite_sysbench::Sysbench;
use stablebench_suite_users::Users;
use stablebench_suite_users::canister::floor::{Floor, StableMemory};
use stablebench_suite_users::canister::{Database, KeyValue, PayloadBytes, RowEngines};
use stablebench_suite_vfs::Vfs;

stablebench_harness::canister!(Bench, include_bytes!("../../bench.did"));
stablebench_suite_users::methods_by_hand!();
stablebench_suite_sql::sql_method!();

/// The first memory of the suite mix.
const MIX: u8 = 40;

/// The file of the database, as `ic-rusqlite` names it, and of its journal.
const FILE: &str = "./DB/main.db";

struct Bench {
    btree: Option<Btree>,
    records: Option<BtreeRecords>,
    sqlite: Sqlite,
    points: Option<points::Engines>,
    mix: Maps<Virtual>,
    floor: Floor<StableMemory>,
    managed: bool,
    payload: PayloadBytes,
}

impl Default for Bench {
    fn default() -> Self {
        Self {
            btree: None,
            records: None,
            sqlite: sqlite::restore(&SavedState::default()),
            points: None,
            mix: Maps::new(|number| memory(MIX + number), stored_bytes),
            floor: Floor::default(),
            managed: false,
            payload: PayloadBytes::default(),
        }
    }
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

    /// The floor engines, unless the manager has stable memory.
    fn floor(&mut self) -> Result<&mut Floor<StableMemory>> {
        if self.managed {
            return Err(Error::StableMemoryTaken { occupant: Occupant::Manager });
        }
        Ok(&mut self.floor)
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
        self.manage()?;
        Ok(self.sqlite.sql(storage))
    }

    fn configure(&mut self, settings: &[Setting]) -> Result<Vec<Setting>> {
        stablebench_suite_users::canister::configure(self, settings)
    }

    fn describe(&mut self) -> Result<Description> {
        stablebench_suite_users::canister::describe(self)
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
        crate_versions(env!("CRATE_VERSIONS"))
    }

    fn save(&mut self) -> Result<()> {
        let state = self.sqlite.state(self.payload.0);
        if self.managed {
            self.sqlite.close();
            state.save(&memory(STATE_MEMORY))
        } else {
            self.floor.save(state)
        }
    }

    fn load(&mut self) {
        self.managed = is_managed();
        let state =
            if self.managed { SavedState::load(&memory(STATE_MEMORY)) } else { self.floor.load() };
        let state = state.unwrap_or_default();
        self.sqlite = sqlite::restore(&state);
        self.payload = PayloadBytes(state.payload_bytes);
    }
}

impl RowEngines for Bench {
    const ENGINES: &'static [Engine] =
        &[Engine::BTREE, Engine::SQLITE, Engine::APPEND, Engine::ARRAY];

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::BTREE => {
                self.manage()?;
                Ok(self.btree.get_or_insert_default())
            }
            Engine::SQLITE => {
                self.manage()?;
                Ok(self.sqlite.users())
            }
            Engine::APPEND | Engine::ARRAY => self.floor()?.engine(engine),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn database(&mut self) -> Result<&mut dyn Database> {
        self.manage()?;
        Ok(&mut self.sqlite)
    }

    fn payload(&mut self) -> &mut PayloadBytes {
        &mut self.payload
    }
}

impl RecordEngines for Bench {
    fn records(&mut self, job: &DbBench) -> Result<&mut dyn Records> {
        match job.engine {
            Engine::BTREE => {
                self.manage()?;
                Ok(self.records.get_or_insert_default())
            }
            Engine::APPEND | Engine::ARRAY => self.floor()?.records(job.engine),
            engine => Err(Error::EngineUnavailable { engine }),
        }
    }
}

impl PointEngines for Bench {
    fn points(&mut self, job: &Cuckoo, seed: u64) -> Result<&mut dyn Points> {
        self.manage()?;
        self.points.get_or_insert_default().engine(job, seed)
    }
}

impl MixCanister for Bench {
    fn mix_maps(&mut self) -> Result<&mut dyn MixTable> {
        self.manage()?;
        Ok(&mut self.mix)
    }
}

impl SqlCanister for Bench {
    fn with_handle(
        &mut self,
        _: bool,
        work: &mut dyn FnMut(Handle<'_>) -> Result<()>,
    ) -> Result<()> {
        self.manage()?;
        self.sqlite.stable().with(|connection| {
            // SAFETY: `rusqlite` is linked with the same SQLite, and the connection is borrowed.
            let handle = unsafe { Handle::new(connection.handle()) };
            work(handle.ok_or(Error::NoRows)?)
        })
    }

    fn write_file(&mut self, part: &FilePart) -> Result<()> {
        self.manage()?;
        let connection = self.sqlite.stable();
        // Mounts the file, whose memory takes the bytes.
        connection.open()?;
        connection.close();
        if part.offset == 0 {
            for ending in ["-journal", "-wal"] {
                // There may be none.
                let _ = std::fs::remove_file(format!("{FILE}{ending}"));
            }
            // SQLite takes the size from the header, and the rest of the last page of memory is free.
            memory::fill(DATABASE);
        }
        memory::write(DATABASE, part.offset, &part.bytes)
    }

    fn read_file(&mut self, offset: u64, bytes: u64) -> Result<(Vec<u8>, u64)> {
        let size = file_bytes(&memory::read(DATABASE, 0, 100));
        let bytes = bytes.min(size.saturating_sub(offset));
        Ok((memory::read(DATABASE, offset, bytes), size))
    }
}

/// Returns the size of a database from its header: bytes 16 and 17 are the size of a page, where 1
/// stands for 65,536, and bytes 28 to 31 the number of pages, all big-endian.
fn file_bytes(header: &[u8]) -> u64 {
    let number = |bytes: &[u8]| bytes.iter().fold(0, |number, byte| number << 8 | u64::from(*byte));
    match (header.get(16..18).map(number), header.get(28..32).map(number)) {
        (Some(1), Some(pages)) => pages * 65_536,
        (Some(page), Some(pages)) => pages * page,
        _ => 0,
    }
}
