//! SQLite through `ic-rusqlite`: a database in stable memory, and one on the heap.

use crate::memory::memory_bytes;
use crate::statements::{CACHED, Prepared, sqlite_error};
use ic_rusqlite::{ConnectionConfig, ffi, with_connection};
use stablebench_harness::sql::{self, Pragmas, Prepare, Statements, library};
use stablebench_harness::{SavedState, Sql, phases};
use stablebench_protocol::{
    JournalMode, LockingMode, Phase, Result, SqliteDescription, Synchronous, TempStore,
};
use stablebench_suite_users::canister::Databases;

/// The memories of the file system, which contains the journal.
const FILE_SYSTEM: std::ops::RangeInclusive<u8> = 101..=118;
pub const DATABASE: u8 = 120;

/// The databases.
pub type Sqlite = Databases<Connection, Heap>;

/// Restores the databases after an upgrade.
pub fn restore(state: &SavedState) -> Sqlite {
    let pragmas = Pragmas::new(state.sqlite_config, DEFAULTS);
    Databases::restore(Connection::new(pragmas), Heap::new(pragmas), state)
}

/// Describes the SQLite library.
pub fn describe() -> SqliteDescription {
    // SAFETY: these are the functions that it requires.
    unsafe { library::describe(ffi::sqlite3_libversion, ffi::sqlite3_compileoption_get) }
}

/// Bytes of heap of the connection's page cache.
fn cache_bytes(connection: &ic_rusqlite::Connection) -> u64 {
    // SAFETY: this is the function that it requires, and the connection is borrowed.
    unsafe { library::cache_bytes(ffi::sqlite3_db_status, connection.handle()) }
}

/// The pragmas of a connection of `ic-rusqlite` 0.5.
const DEFAULTS: Pragmas = Pragmas {
    journal_mode: JournalMode::Persist,
    synchronous: Synchronous::Off,
    locking_mode: LockingMode::Exclusive,
    temp_store: TempStore::Memory,
    page_size: 4096,
    cache_size: 500_000,
};

/// The only connection to the database in stable memory, open or not.
///
/// `ic-rusqlite` stores the pragmas for a connection in a `HashMap`, which has no order, and opens the
/// connection when it is first used. Here it gets no pragmas, and they are issued on the fresh
/// connection.
pub struct Connection {
    pragmas: Pragmas,
    open: bool,
}

impl Connection {
    /// A closed connection.
    pub fn new(pragmas: Pragmas) -> Self {
        Self { pragmas, open: false }
    }

    /// Does `work` on the connection, which is opened if it is closed.
    pub fn with<T>(
        &mut self,
        work: impl FnOnce(&ic_rusqlite::Connection) -> Result<T>,
    ) -> Result<T> {
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
        // Closing a connection that was never open would open it first.
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
        FILE_SYSTEM.map(memory_bytes).sum::<u64>() + memory_bytes(DATABASE)
    }

    fn cache_bytes(&self) -> u64 {
        // This would open a closed connection.
        if self.open { with_connection(|connection| cache_bytes(&connection)) } else { 0 }
    }
}

/// Executes statements and ignores their rows.
fn execute(connection: &ic_rusqlite::Connection, statements: &str) -> Result<()> {
    connection.execute_batch(statements).map_err(sqlite_error)
}

/// A database on the heap, `:memory:`. Closing its connection removes it.
pub struct Heap {
    pragmas: Pragmas,
    connection: Option<ic_rusqlite::Connection>,
}

impl Heap {
    /// A closed connection.
    pub fn new(pragmas: Pragmas) -> Self {
        Self { pragmas, connection: None }
    }

    fn connection(&mut self) -> Result<&ic_rusqlite::Connection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => {
                let connection = ic_rusqlite::Connection::open_in_memory().map_err(sqlite_error)?;
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
        self.connection.as_ref().is_none_or(ic_rusqlite::Connection::is_autocommit)
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
        self.connection.as_ref().map_or(0, cache_bytes)
    }
}
