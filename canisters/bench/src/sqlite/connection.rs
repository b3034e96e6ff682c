//! The one connection to the database in stable memory, opened with the pragmas in one
//! order.
//!
//! `ic-rusqlite` keeps the pragmas for a connection in a `HashMap`, whose order is
//! not fixed, and opens the connection when it is first used. Here it is given no
//! pragmas, and they are issued on the fresh connection.

use super::statements::{CACHED, Prepared};
use super::storage;
use ic_rusqlite::{ConnectionConfig, with_connection};
use stablebench_harness::sql::{self, Prepare, Statements};
use stablebench_harness::{Pragmas, Sql, phases};
use stablebench_protocol::{
    Error, JournalMode, LockingMode, Phase, Result, Synchronous, TempStore,
};

/// What `ic-rusqlite` 0.5 opens its connection with.
pub const DEFAULTS: Pragmas = Pragmas {
    journal_mode: JournalMode::Persist,
    synchronous: Synchronous::Off,
    locking_mode: LockingMode::Exclusive,
    temp_store: TempStore::Memory,
    page_size: 4096,
    cache_size: 500_000,
};

/// The connection, open or not.
pub struct Connection {
    pragmas: Pragmas,
    open: bool,
}

impl Connection {
    /// A closed connection.
    pub fn new(pragmas: Pragmas) -> Self {
        Self { pragmas, open: false }
    }

    /// Runs `work` on the connection, which is opened where it is closed.
    fn with<T>(&mut self, work: impl FnOnce(&ic_rusqlite::Connection) -> Result<T>) -> Result<T> {
        self.open()?;
        with_connection(|connection| work(&connection))
    }
}

impl Prepare for Connection {
    fn prepared(
        &mut self,
        statements: &[&str],
        work: &mut dyn FnMut(&mut dyn Statements) -> Result<()>,
    ) -> Result<()> {
        self.with(|connection| {
            work(&mut Prepared::new(connection, statements).map_err(sqlite_error)?)
        })
    }
}

impl Sql for Connection {
    fn defaults(&self) -> Pragmas {
        DEFAULTS
    }

    fn pragmas(&self) -> Pragmas {
        self.pragmas
    }

    fn replace_pragmas(&mut self, pragmas: Pragmas) {
        self.close();
        self.pragmas = pragmas;
    }

    fn is_open(&self) -> bool {
        self.open
    }

    fn open(&mut self) -> Result<()> {
        if self.open {
            return Ok(());
        }
        let mut config = ConnectionConfig::new();
        config.pragma_settings.clear();
        ic_rusqlite::set_connection_config(config);
        self.open = true;
        let statements = self.pragmas.statements();
        let outcome = phases::all_of(Phase::Open, || {
            with_connection(|connection| {
                connection.set_prepared_statement_cache_capacity(CACHED);
                execute(&connection, &statements)
            })
        });
        outcome.inspect_err(|_| self.close())
    }

    fn close(&mut self) {
        // Closing one that was never open would open it first.
        if self.open {
            ic_rusqlite::close_connection();
            self.open = false;
        }
    }

    fn is_autocommit(&mut self) -> bool {
        !self.open || with_connection(|connection| connection.is_autocommit())
    }

    fn batch(&mut self, statements: &str) -> Result<()> {
        self.with(|connection| execute(connection, statements))
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Prepare) -> Result<()>) -> Result<()> {
        sql::transaction(self, work)
    }

    fn virtual_bytes(&self) -> u64 {
        storage::virtual_bytes()
    }

    fn cache_bytes(&self) -> u64 {
        // Asking a connection that is closed would open it.
        if self.open { with_connection(|connection| storage::cache_bytes(&connection)) } else { 0 }
    }
}

/// Executes statements, whatever rows they answer.
pub fn execute(connection: &ic_rusqlite::Connection, statements: &str) -> Result<()> {
    connection.execute_batch(statements).map_err(sqlite_error)
}

/// SQLite's error in the protocol's words.
pub fn sqlite_error(error: ic_rusqlite::Error) -> Error {
    Error::Sqlite { message: error.to_string() }
}
