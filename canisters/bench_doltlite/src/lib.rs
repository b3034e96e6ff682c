//! A canister with DoltLite, and the interface of `bench`: SQLite's front end over tables that are
//! prolly trees, and their history.
//!
//! ```text
//! ic_stable_structures::MemoryManager
//!   memory 100         settings, written before an upgrade
//!   memory 101 … 118   file system, with the database
//! ```
//!
//! `rusqlite` calls DoltLite's C functions, which are SQLite's. The code between them and the
//! suites is that of `bench`, so that nothing but the engine differs.

mod history;
mod manager;
mod shim;
mod sqlite;

use sqlite::Sqlite;
use stablebench_harness::{Canister, Database, KeyValue, Sql, managed};
use stablebench_protocol::{CrateVersion, Error, Occupant, SqliteDescription, Storage};

stablebench_harness::canister!(Bench);

/// What `dfx` and `icp` show of the canister.
#[used]
#[unsafe(link_section = "icp:public candid:service")]
static CANDID: [u8; include_bytes!("../bench_doltlite.did").len()] =
    *include_bytes!("../bench_doltlite.did");

#[derive(Default)]
struct Bench {
    sqlite: Sqlite,
    managed: bool,
}

impl Canister for Bench {
    fn engines(&self) -> &'static [Engine] {
        &[Engine::Sqlite]
    }

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::Sqlite => {
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

    fn sql(&mut self, storage: Storage) -> Result<&mut dyn Sql> {
        self.managed = true;
        Ok(self.sqlite.sql(storage))
    }

    fn perform(&mut self, part: &Part) -> Result<Worked> {
        history::perform(self.sql(Storage::Stable)?, part)
    }

    fn results(&mut self, part: &Part) -> Result<Option<Digest>> {
        history::results(self.sql(Storage::Stable)?, part)
    }

    fn content(&mut self, _: &Job, part: Option<DigestPart>, limit: u64) -> Result<DigestPart> {
        history::content(self.sql(Storage::Stable)?, part, limit)
    }

    fn inspect(&mut self, _: &Job) -> Result<Inspected> {
        stablebench_harness::sql::inspect(self.sql(Storage::Stable)?)
    }

    fn occupant(&self) -> Occupant {
        if self.managed { Occupant::Manager } else { Occupant::Nobody }
    }

    fn sqlite_description(&self) -> Option<SqliteDescription> {
        Some(sqlite::describe())
    }

    fn crates(&self) -> Vec<CrateVersion> {
        let versions = env!("CRATE_VERSIONS").split(',');
        let of = |(name, version): (&str, &str)| CrateVersion {
            name: name.to_owned(),
            version: version.to_owned(),
        };
        versions.filter_map(|version| version.split_once(' ')).map(of).collect()
    }

    fn save(&mut self, payload_bytes: u32) -> Result<()> {
        if !self.managed && payload_bytes == stablebench_protocol::DEFAULT_PAYLOAD_BYTES {
            // Nothing to remember: stable memory stays as it is.
            return Ok(());
        }
        let state = self.sqlite.state(payload_bytes);
        self.sqlite.close();
        manager::settings().save(&state)
    }

    fn load(&mut self) -> u32 {
        self.managed = managed::owns_stable_memory();
        let saved = self.managed.then(|| manager::settings().load());
        let state = saved.flatten().unwrap_or_default();
        self.sqlite = Sqlite::restore(&state);
        state.payload_bytes
    }
}
