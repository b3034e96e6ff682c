//! SQLite through `ic-rusqlite`: a database in stable memory, and one on the heap.

mod connection;
mod heap;
mod statements;
mod storage;

use connection::Connection;
use heap::Heap;
use stablebench_harness::sql::Users;
use stablebench_harness::{Database, KeyValue, Pragmas, Sql, State};
use stablebench_protocol::{Result, SqliteSettings, Storage};

/// The engine.
#[derive(Default)]
pub struct Sqlite {
    users: Users<Connection>,
    heap: Heap,
}

impl Sqlite {
    /// As it was before an upgrade, which the database on the heap does not survive.
    pub fn restore(state: &State) -> Self {
        let pragmas = Pragmas::new(state.sqlite_config);
        let users = Users::restore(Connection::new(pragmas), state);
        let mut heap = Heap::default();
        heap.replace_pragmas(pragmas);
        Self { users, heap }
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
    fn configure(&mut self, pragmas: Pragmas) -> Result<SqliteSettings> {
        let settings = self.users.configure(pragmas)?;
        self.heap.replace_pragmas(pragmas);
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
