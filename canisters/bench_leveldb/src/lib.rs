//! A canister with LevelDB (`rusty-leveldb`), and the interface of `bench` with one method
//! more.
//!
//! ```text
//! ic_stable_structures::MemoryManager
//!   memory   0         files:  users/ …      the database of the suite users
//!                              records/ …    that of the suite db-bench
//!                              config        what both are opened with
//!   memory 100         settings, written before an upgrade
//! ```
//!
//! The manager writes to stable memory the moment it is first touched, so nothing touches it
//! before the engine is used.

mod config;
mod engine;
mod memory;
mod random;
mod users;

use engine::Leveldb;
use memory::Memories;
use stablebench_harness::{Canister, KeyValue, Records, State, crate_versions, managed};
use stablebench_protocol::{CrateVersion, DbBench, DbBenchTask, Error, LeveldbConfig, Occupant};
use users::Users;

stablebench_harness::canister!(Bench);

/// The crates that decide what the engine costs, beside LevelDB's own.
const CRATES: [&str; 2] = ["ic-cdk", "ic-stable-structures"];

/// What `dfx` and `icp` show of the canister.
#[used]
#[unsafe(link_section = "icp:public candid:service")]
static CANDID: [u8; include_bytes!("../bench_leveldb.did").len()] =
    *include_bytes!("../bench_leveldb.did");

/// Opens the databases anew with these settings, what is left out being LevelDB's default;
/// answers those in effect. Rows stay; tables that are there keep their compression.
#[ic_cdk::update]
fn configure_leveldb(config: LeveldbConfig) -> Result<LeveldbConfig> {
    controlled(|host| host.canister().configure(config))
}

#[derive(Default)]
struct Bench {
    memories: Option<Memories>,
    users: Option<Users>,
    records: Option<Leveldb>,
}

impl Bench {
    fn memories(&mut self) -> Result<&Memories> {
        match &mut self.memories {
            Some(memories) => Ok(memories),
            none => Ok(none.insert(Memories::open()?)),
        }
    }

    fn users(&mut self) -> Result<&mut Users> {
        if self.users.is_none() {
            self.users = Some(Users::new(Leveldb::new(self.memories()?, "users")?));
        }
        self.users.as_mut().ok_or(Error::EngineUnavailable { engine: Engine::Leveldb })
    }

    fn table(&mut self) -> Result<&mut Leveldb> {
        if self.records.is_none() {
            self.records = Some(Leveldb::new(self.memories()?, "records")?);
        }
        self.records.as_mut().ok_or(Error::EngineUnavailable { engine: Engine::Leveldb })
    }

    /// Sets what both databases are opened with; they are opened to read it back.
    fn configure(&mut self, config: LeveldbConfig) -> Result<LeveldbConfig> {
        let config = config::parse(config)?;
        config::save(self.memories()?.disk(), config)?;
        self.users()?.leveldb().configure(config)?;
        let records = self.table()?;
        records.configure(config)?;
        Ok(config::told(records.opened()?))
    }
}

impl Canister for Bench {
    fn engines(&self) -> &'static [Engine] {
        &[Engine::Leveldb]
    }

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::Leveldb => Ok(self.users()?),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn records(&mut self, engine: Engine) -> Result<&mut dyn Records> {
        match engine {
            Engine::Leveldb => Ok(self.table()?),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn records_for(&mut self, job: &DbBench) -> Result<&mut dyn Records> {
        if job.engine == Engine::Leveldb {
            let table = self.table()?;
            match &job.task {
                DbBenchTask::Ready { sync, .. } => table.set_sync(*sync),
                DbBenchTask::Write(write) => table.set_single(write.batch == 1),
                _ => {}
            }
        }
        self.records(job.engine)
    }

    fn occupant(&self) -> Occupant {
        if managed::owns_stable_memory() { Occupant::Manager } else { Occupant::Nobody }
    }

    fn crates(&self) -> Vec<CrateVersion> {
        let mut crates = crate_versions(&CRATES);
        let own = env!("CRATE_VERSIONS").split(',').filter_map(|of| of.split_once(' '));
        crates.extend(
            own.map(|(name, version)| CrateVersion { name: name.into(), version: version.into() }),
        );
        crates
    }

    fn save(&mut self, payload_bytes: u32) -> Result<()> {
        if let Some(users) = &mut self.users {
            users.leveldb().close()?;
        }
        if let Some(records) = &mut self.records {
            records.close()?;
        }
        memory::settings().save(&State { payload_bytes, ..State::default() })
    }

    fn load(&mut self) -> u32 {
        let saved = managed::owns_stable_memory().then(|| memory::settings().load());
        saved.flatten().unwrap_or_default().payload_bytes
    }
}
