//! A database on the heap: `:memory:`.

use super::connection::{DEFAULTS, execute, sqlite_error};
use super::statements::{CACHED, Prepared};
use super::storage;
use ic_rusqlite::Connection;
use stablebench_harness::sql::{self, Prepare, Statements};
use stablebench_harness::{Pragmas, Sql};
use stablebench_protocol::Result;

/// The connection; closing it ends the database.
pub struct Heap {
    pragmas: Pragmas,
    connection: Option<Connection>,
}

impl Heap {
    /// A database that is not there yet.
    pub fn new(pragmas: Pragmas) -> Self {
        Self { pragmas, connection: None }
    }

    fn connection(&mut self) -> Result<&Connection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let connection = Connection::open_in_memory().map_err(sqlite_error)?;
                connection.set_prepared_statement_cache_capacity(CACHED);
                execute(&connection, &self.pragmas.statements())?;
                connection
            }
        };
        Ok(self.connection.insert(connection))
    }
}

impl Prepare for Heap {
    fn prepared(
        &mut self,
        statements: &[&str],
        work: &mut dyn FnMut(&mut dyn Statements) -> Result<()>,
    ) -> Result<()> {
        work(&mut Prepared::new(self.connection()?, statements).map_err(sqlite_error)?)
    }
}

impl Sql for Heap {
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
        self.connection.is_some()
    }

    fn open(&mut self) -> Result<()> {
        self.connection().map(drop)
    }

    fn close(&mut self) {
        self.connection = None;
    }

    fn is_autocommit(&mut self) -> bool {
        self.connection.as_ref().is_none_or(Connection::is_autocommit)
    }

    fn batch(&mut self, statements: &str) -> Result<()> {
        execute(self.connection()?, statements)
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Prepare) -> Result<()>) -> Result<()> {
        sql::transaction(self, work)
    }

    fn virtual_bytes(&self) -> u64 {
        0
    }

    fn cache_bytes(&self) -> u64 {
        self.connection.as_ref().map_or(0, storage::cache_bytes)
    }
}
