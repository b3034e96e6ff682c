//! SQLite through `ic-sqlite-vfs`: a database in stable memory.
//!
//! The library's connections are available in closures only:
//!
//! ```text
//! DbHandle::update(|connection| …)   BEGIN, the closure, COMMIT, pages to stable memory
//! DbHandle::query(|connection| …)    the closure, on a second connection that only reads;
//!                                    every update closes it
//! ```
//!
//! Statements that change rows outside of a transaction are an update each.

use crate::memory;
use crate::statements::{Prepared, Raw, sqlite_error};
use ic_sqlite_vfs::{DbError, DbHandle};
use stablebench_harness::sql::{self, Pragmas, Prepare, Row, Statements, library};
use stablebench_harness::{Sql, State, phases};
use stablebench_protocol::{
    Error, JournalMode, LockingMode, Phase, Result, SqliteDescription, SqliteSettings, Synchronous,
    TempStore,
};
use stablebench_suite_users::canister::UsersTable;
use stablebench_workload::sql::{Value, changes_rows};
use std::ops::ControlFlow;

/// C functions of the SQLite that `ic-sqlite-vfs` links, which it does not export.
mod ffi {
    use std::ffi::{c_char, c_int, c_void};

    unsafe extern "C" {
        pub fn sqlite3_libversion() -> *const c_char;
        pub fn sqlite3_compileoption_get(index: c_int) -> *const c_char;
        pub fn sqlite3_db_status(
            connection: *mut c_void,
            what: c_int,
            current: *mut c_int,
            highest: *mut c_int,
            reset: c_int,
        ) -> c_int;
    }
}

/// The database with the users' table.
pub type Sqlite = UsersTable<Connection>;

/// Restores the database after an upgrade.
pub fn restore(state: &State) -> Sqlite {
    let pragmas = Pragmas::new(state.sqlite_config, DEFAULTS);
    UsersTable::restore(Connection::new(pragmas), state)
}

/// Describes the SQLite library.
pub fn describe() -> SqliteDescription {
    // SAFETY: these are the functions that it requires.
    unsafe { library::describe(ffi::sqlite3_libversion, ffi::sqlite3_compileoption_get) }
}

/// The pragmas of a connection of `ic-sqlite-vfs` 2.1.
const DEFAULTS: Pragmas = Pragmas {
    journal_mode: JournalMode::Memory,
    synchronous: Synchronous::Off,
    locking_mode: LockingMode::Exclusive,
    temp_store: TempStore::Memory,
    page_size: 16_384,
    cache_size: -32_768,
};

/// The database's two connections, one that writes and one that reads, as one; open or not.
pub struct Connection {
    pragmas: Pragmas,
    handle: Option<DbHandle>,
    /// True if the connection that writes is open.
    writes: bool,
    /// True if the connection that reads is open.
    reads: bool,
}

impl Connection {
    /// A closed connection.
    pub fn new(pragmas: Pragmas) -> Self {
        Self { pragmas, handle: None, writes: false, reads: false }
    }

    fn handle(&mut self) -> Result<DbHandle> {
        match self.handle {
            Some(handle) => Ok(handle),
            None => {
                let handle = DbHandle::init(memory::database()?).map_err(sqlite_error)?;
                Ok(*self.handle.insert(handle))
            }
        }
    }

    /// Does `work` in an update. A failure undoes it.
    pub fn update<T>(&mut self, work: impl FnOnce(&Raw) -> Result<T>) -> Result<T> {
        let handle = self.handle()?;
        let opened = !self.writes;
        let pragmas = self.pragmas;
        let mut failed = None;
        let outcome = handle.update(|connection| {
            if opened {
                set_own(connection, pragmas)?;
            }
            phases::mark(if opened { Phase::Open } else { Phase::Begin });
            work(connection).map_err(|error| {
                failed = Some(error);
                DbError::NotFound
            })
        });
        phases::mark(Phase::Commit);
        // An update closes the connection that reads, and a failed update closes both.
        self.reads = false;
        self.writes = outcome.is_ok();
        outcome.map_err(|error| failed.unwrap_or_else(|| sqlite_error(error)))
    }

    /// Does `work` on the connection that reads.
    pub fn query<T>(&mut self, work: impl FnOnce(&Raw) -> Result<T>) -> Result<T> {
        let handle = self.handle()?;
        let opened = !std::mem::replace(&mut self.reads, true);
        let cache_size = self.pragmas.cache_size;
        let mut failed = None;
        let outcome = handle.query(|connection| {
            if opened && cache_size != DEFAULTS.cache_size {
                connection.execute_batch(&format!("PRAGMA cache_size={cache_size}"))?;
            }
            phases::mark(if opened { Phase::Open } else { Phase::Begin });
            work(connection).map_err(|error| {
                failed = Some(error);
                DbError::NotFound
            })
        });
        phases::mark(Phase::Commit);
        outcome.map_err(|error| failed.unwrap_or_else(|| sqlite_error(error)))
    }
}

/// Sets pragmas that differ from the library's and can be set in a transaction.
fn set_own(connection: &Raw, pragmas: Pragmas) -> std::result::Result<(), DbError> {
    if pragmas.page_size != DEFAULTS.page_size {
        connection.execute_batch(&format!("PRAGMA page_size={}", pragmas.page_size))?;
    }
    if pragmas.cache_size != DEFAULTS.cache_size {
        connection.execute_batch(&format!("PRAGMA cache_size={}", pragmas.cache_size))?;
    }
    Ok(())
}

/// A transaction.
struct Transaction<'c>(&'c Raw);

impl Prepare for Transaction<'_> {
    fn prepared(
        &mut self,
        statements: &[&str],
        work: &mut dyn FnMut(&mut dyn Statements) -> Result<()>,
    ) -> Result<()> {
        work(&mut Prepared::new(self.0, statements)?)
    }
}

impl Prepare for Connection {
    fn prepared(
        &mut self,
        statements: &[&str],
        work: &mut dyn FnMut(&mut dyn Statements) -> Result<()>,
    ) -> Result<()> {
        if statements.iter().any(|statement| changes_rows(statement)) {
            return work(&mut Autocommit::new(self, statements));
        }
        self.query(|connection| work(&mut Prepared::new(connection, statements)?))
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
        self.writes || self.reads
    }

    fn open(&mut self) -> Result<()> {
        if self.is_open() { Ok(()) } else { self.update(|_| Ok(())) }
    }

    fn close(&mut self) {
        if self.is_open() {
            // The library closes its connections only if an update fails.
            let failed: Result<()> = self.update(|_| Err(Error::NoRows));
            debug_assert_eq!(failed, Err(Error::NoRows));
        }
    }

    fn is_autocommit(&mut self) -> bool {
        // No transaction outlives its closure.
        true
    }

    fn batch(&mut self, statements: &str) -> Result<()> {
        self.update(|connection| connection.execute_batch(statements).map_err(sqlite_error))
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Prepare) -> Result<()>) -> Result<()> {
        self.update(|connection| work(&mut Transaction(connection)))
    }

    fn transactions(
        &mut self,
        statements: &[&str],
        transactions: usize,
        writes: bool,
        work: &mut dyn FnMut(&mut dyn Statements, usize) -> Result<()>,
    ) -> Result<()> {
        for number in 0..transactions {
            let work = |connection: &Raw| work(&mut Prepared::new(connection, statements)?, number);
            if writes { self.update(work) } else { self.query(work) }?;
        }
        Ok(())
    }

    fn set(&mut self, _: &str, _: &str) -> Result<()> {
        // The caller reads it back; see `fixed_because`.
        Ok(())
    }

    fn resize(&mut self) -> Result<()> {
        // See `fixed_because`.
        Ok(())
    }

    fn vacuum(&mut self) -> Result<()> {
        // VACUUM cannot run in a transaction: ends the update's, and begins another for it to end.
        self.batch("COMMIT;VACUUM;BEGIN")
    }

    fn fixed_because(&self, pragma: &str) -> Option<&'static str> {
        Some(match pragma {
            "page_size" => "ic-sqlite-vfs has a page size from the first write on",
            "cache_size" => return None,
            _ => {
                "ic-sqlite-vfs opens its connections so, and begins a transaction before anything \
                 else can be set"
            }
        })
    }

    fn settings(&mut self) -> Result<SqliteSettings> {
        // The connection that reads does not know the settings of the one that writes.
        self.update(|connection| sql::settings(&mut Transaction(connection)))
    }

    fn virtual_bytes(&self) -> u64 {
        memory::database_bytes()
    }

    fn cache_bytes(&self) -> u64 {
        let Some(handle) = self.handle.filter(|_| self.is_open()) else {
            return 0;
        };
        let of = |connection: &Raw| {
            // SAFETY: this is the function that it requires, and the connection is borrowed.
            unsafe { library::cache_bytes(ffi::sqlite3_db_status, connection.raw().cast()) }
        };
        let reads = if self.reads { handle.query(|connection| Ok(of(connection))) } else { Ok(0) };
        let writes =
            if self.writes { handle.update(|connection| Ok(of(connection))) } else { Ok(0) };
        reads.unwrap_or(0) + writes.unwrap_or(0)
    }
}

/// Statements outside of transactions: each that changes rows is its own update.
struct Autocommit<'a> {
    connection: &'a mut Connection,
    statements: Vec<String>,
}

impl<'a> Autocommit<'a> {
    fn new(connection: &'a mut Connection, statements: &[&str]) -> Self {
        let statements = statements.iter().map(|text| (*text).to_owned()).collect();
        Self { connection, statements }
    }
}

impl Statements for Autocommit<'_> {
    fn run(
        &mut self,
        statement: usize,
        parameters: &[Value],
        row: &mut dyn FnMut(&dyn Row) -> Result<ControlFlow<()>>,
    ) -> Result<u64> {
        let text = &self.statements[statement];
        let run = |connection: &Raw| Prepared::new(connection, &[text])?.run(0, parameters, row);
        if changes_rows(text) { self.connection.update(run) } else { self.connection.query(run) }
    }
}
