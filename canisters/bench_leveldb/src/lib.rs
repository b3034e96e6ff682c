//! A canister with LevelDB (`rusty-leveldb`).
//!
//! ```text
//! ic_stable_structures::MemoryManager
//!   memory   0         files:  users/ …      the database of the suite users
//!                              records/ …    that of the suite db-bench
//!                              config        the settings of both
//!   memory 100         the state, written before an upgrade
//! ```
//!
//! The manager writes to stable memory when it is first touched, so nothing touches it before the
//! engine is used.

mod engine;

use engine::{Leveldb, Users, Virtual, error};
use ic_stable_structures::DefaultMemoryImpl;
use ic_stable_structures::memory_manager::{MemoryId, MemoryManager};
use stablebench_harness::{
    Canister, Records, STATE_MEMORY, SavedState, SuiteEntry, crate_versions, is_managed,
};
use stablebench_leveldb::Disk;
use stablebench_protocol::{CrateVersion, Error, Occupant};
use stablebench_suite_db_bench::canister::RecordEngines;
use stablebench_suite_db_bench::{DbBench, DbBenchTask};
use stablebench_suite_users::Users as UsersJob;
use stablebench_suite_users::canister::{KeyValue, PayloadBytes, RowEngines};

stablebench_harness::canister!(Bench, include_bytes!("../../bench.did"));
stablebench_suite_users::methods_by_hand!();
stablebench_suite_users::no_sql_method!();

const FILES_MEMORY: u8 = 0;

thread_local! {
    static MANAGER: MemoryManager<DefaultMemoryImpl> =
        MemoryManager::init(DefaultMemoryImpl::default());
}

fn memory(id: u8) -> Virtual {
    MANAGER.with(|manager| manager.get(MemoryId::new(id)))
}

#[derive(Default)]
struct Bench {
    disk: Option<Disk<Virtual>>,
    users: Option<Users>,
    records: Option<Leveldb>,
    payload: PayloadBytes,
}

impl Bench {
    /// The files; takes stable memory for the manager.
    fn disk(&mut self) -> Result<&Disk<Virtual>> {
        match &mut self.disk {
            Some(disk) => Ok(disk),
            none => Ok(none.insert(Disk::open(memory(FILES_MEMORY)).map_err(error)?)),
        }
    }

    fn users(&mut self) -> Result<&mut Users> {
        if self.users.is_none() {
            self.users = Some(Users::new(Leveldb::new(self.disk()?, "users")?));
        }
        self.users.as_mut().ok_or(Error::EngineUnavailable { engine: Engine::LEVELDB })
    }

    fn table(&mut self) -> Result<&mut Leveldb> {
        if self.records.is_none() {
            self.records = Some(Leveldb::new(self.disk()?, "records")?);
        }
        self.records.as_mut().ok_or(Error::EngineUnavailable { engine: Engine::LEVELDB })
    }
}

impl Canister for Bench {
    const SUITES: &'static [SuiteEntry<Self>] =
        &[SuiteEntry::of::<UsersJob>(), SuiteEntry::of::<DbBench>()];

    /// Configures both databases, and opens them to read the settings back. Existing tables keep their
    /// compression.
    fn configure(&mut self, settings: &[Setting]) -> Result<Vec<Setting>> {
        let config = engine::parse_config(settings)?;
        engine::save_config(self.disk()?, config)?;
        self.users()?.leveldb().configure(config)?;
        let records = self.table()?;
        records.configure(config)?;
        Ok(engine::list_config(records.opened()?))
    }

    fn describe(&mut self) -> Result<Description> {
        stablebench_suite_users::canister::describe(self)
    }

    fn occupant(&self) -> Occupant {
        if is_managed() { Occupant::Manager } else { Occupant::Nobody }
    }

    fn crates(&self) -> Vec<CrateVersion> {
        crate_versions(env!("CRATE_VERSIONS"))
    }

    fn save(&mut self) -> Result<()> {
        if let Some(users) = &mut self.users {
            users.leveldb().close()?;
        }
        if let Some(records) = &mut self.records {
            records.close()?;
        }
        SavedState { payload_bytes: self.payload.0, ..SavedState::default() }
            .save(&memory(STATE_MEMORY))
    }

    fn load(&mut self) {
        let saved = is_managed().then(|| SavedState::load(&memory(STATE_MEMORY)));
        self.payload = PayloadBytes(saved.flatten().unwrap_or_default().payload_bytes);
    }
}

impl RowEngines for Bench {
    const ENGINES: &'static [Engine] = &[Engine::LEVELDB];

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::LEVELDB => Ok(self.users()?),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn payload(&mut self) -> &mut PayloadBytes {
        &mut self.payload
    }
}

impl RecordEngines for Bench {
    fn records(&mut self, job: &DbBench) -> Result<&mut dyn Records> {
        if job.engine != Engine::LEVELDB {
            return Err(Error::EngineUnavailable { engine: job.engine });
        }
        let table = self.table()?;
        match &job.task {
            DbBenchTask::Ready { sync, .. } => table.set_sync(*sync),
            DbBenchTask::Write(write) => table.set_single(write.batch == 1),
            DbBenchTask::ReadRandom { .. } | DbBenchTask::ReadSequential { .. } => {}
        }
        Ok(table)
    }
}
