//! SQLite through `ic-sqlite-vfs`: a database in stable memory.
//!
//! The library has no connection to hold on to. What it has is closures:
//!
//! ```text
//! DbHandle::update(|connection| …)   BEGIN, the closure, COMMIT, pages to stable memory
//! DbHandle::query(|connection| …)    the closure, on a second connection that only reads;
//!                                    every update closes it
//! ```
//!
//! Statements that change rows outside of a transaction are an update each.

mod connection;
mod ffi;
mod statements;

use connection::{Connection, DEFAULTS};
use stablebench_harness::sql::{Users, library};
use stablebench_harness::{Database, KeyValue, Pragmas, Sql, State};
use stablebench_protocol::SqliteDescription;

/// The engine.
pub struct Sqlite(Users<Connection>);

impl Default for Sqlite {
    fn default() -> Self {
        Self::restore(&State::default())
    }
}

impl Sqlite {
    /// As it was before an upgrade.
    pub fn restore(state: &State) -> Self {
        let pragmas = Pragmas::new(state.sqlite_config, DEFAULTS);
        Self(Users::restore(Connection::new(pragmas), state))
    }

    /// What an upgrade must keep.
    pub fn state(&self, payload_bytes: u32) -> State {
        self.0.state(payload_bytes)
    }

    /// Rows of the users suite.
    pub fn users(&mut self) -> &mut dyn KeyValue {
        &mut self.0
    }

    /// The database.
    pub fn database(&mut self) -> &mut dyn Database {
        &mut self.0
    }

    /// Its connection.
    pub fn sql(&mut self) -> &mut dyn Sql {
        self.0.sql()
    }
}

/// The SQLite library.
pub fn describe() -> SqliteDescription {
    // SAFETY: the functions are what they are called.
    unsafe { library::describe(ffi::sqlite3_libversion, ffi::sqlite3_compileoption_get) }
}
