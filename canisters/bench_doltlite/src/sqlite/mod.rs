//! DoltLite as a database in stable memory, and one on the heap.

mod connection;
#[path = "../../../bench/src/sqlite/statements.rs"]
mod statements;

use connection::{Connection, DEFAULTS};
use ic_rusqlite::ffi;
use stablebench_harness::sql::{Users, library};
use stablebench_harness::{Database, KeyValue, Pragmas, Sql, State};
use stablebench_protocol::{Result, SqliteConfig, SqliteDescription, SqliteSettings, Storage};

/// The engine.
pub struct Sqlite {
    users: Users<Connection>,
    heap: Connection,
}

impl Default for Sqlite {
    fn default() -> Self {
        Self::restore(&State::default())
    }
}

impl Sqlite {
    /// As it was before an upgrade, which the database on the heap does not survive.
    pub fn restore(state: &State) -> Self {
        let pragmas = Pragmas::new(state.sqlite_config, DEFAULTS);
        let users = Users::restore(Connection::new(Storage::Stable, pragmas), state);
        Self { users, heap: Connection::new(Storage::Heap, pragmas) }
    }

    /// What an upgrade must keep.
    pub fn state(&self, payload_bytes: u32) -> State {
        self.users.state(payload_bytes)
    }

    /// Rows of the users suite.
    pub fn users(&mut self) -> &mut dyn KeyValue {
        &mut self.users
    }

    /// The database that is there.
    pub fn sql(&mut self, storage: Storage) -> &mut dyn Sql {
        match storage {
            Storage::Stable => self.users.sql(),
            Storage::Heap => &mut self.heap,
        }
    }
}

impl Database for Sqlite {
    fn configure(&mut self, config: SqliteConfig) -> Result<SqliteSettings> {
        let settings = self.users.configure(config)?;
        self.heap.replace_pragmas(Pragmas::new(config, DEFAULTS));
        Ok(settings)
    }

    fn settings(&mut self) -> Result<SqliteSettings> {
        self.users.settings()
    }

    fn close(&mut self) {
        self.users.close();
    }

    fn open(&mut self) -> Result<()> {
        self.users.open()
    }

    fn vacuum(&mut self) -> Result<()> {
        self.users.vacuum()
    }
}

/// The SQLite in DoltLite.
pub fn describe() -> SqliteDescription {
    // SAFETY: the functions are what they are called.
    unsafe { library::describe(ffi::sqlite3_libversion, ffi::sqlite3_compileoption_get) }
}
