//! The library's two connections, one that writes and one that reads, as one.

use super::ffi;
use super::statements::{Autocommit, Prepared};
use crate::manager;
use ic_sqlite_vfs::{DbError, DbHandle};
use stablebench_harness::sql::{self, Prepare, Statements, library};
use stablebench_harness::{Pragmas, Sql, phases};
use stablebench_protocol::{
    Error, JournalMode, LockingMode, Phase, Result, SqliteSettings, Synchronous, TempStore,
};
use stablebench_workload::sql::changes_rows;

/// A connection of the library's.
pub type Raw = ic_sqlite_vfs::db::connection::Connection;

/// What `ic-sqlite-vfs` 2.1 opens its connections with.
pub const DEFAULTS: Pragmas = Pragmas {
    journal_mode: JournalMode::Memory,
    synchronous: Synchronous::Off,
    locking_mode: LockingMode::Exclusive,
    temp_store: TempStore::Memory,
    page_size: 16_384,
    cache_size: -32_768,
};

/// The database's connections, open or not.
pub struct Connection {
    pragmas: Pragmas,
    handle: Option<DbHandle>,
    /// Whether the connection that writes is open.
    writes: bool,
    /// Whether the one that reads is.
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
                let handle = DbHandle::init(manager::database()?).map_err(sqlite_error)?;
                Ok(*self.handle.insert(handle))
            }
        }
    }

    /// Does `work` in an update, whose failure undoes it.
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
        // An update closes the connection that reads, and a failed one both.
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

/// Sets what is not as the library has it, and can be set in a transaction.
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
            // The library closes its connections where an update fails, and else never.
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
        // What is set is read back; see `fixes`.
        Ok(())
    }

    fn resize(&mut self) -> Result<()> {
        // See `fixes`.
        Ok(())
    }

    fn vacuum(&mut self) -> Result<()> {
        // Not in a transaction: the update's is ended, and gets another to end.
        self.batch("COMMIT;VACUUM;BEGIN")
    }

    fn fixes(&self, pragma: &str) -> Option<&'static str> {
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
        // The connection that reads does not know how the other one writes.
        self.update(|connection| sql::settings(&mut Transaction(connection)))
    }

    fn virtual_bytes(&self) -> u64 {
        manager::database_bytes()
    }

    fn cache_bytes(&self) -> u64 {
        let Some(handle) = self.handle.filter(|_| self.is_open()) else {
            return 0;
        };
        let of = |connection: &Raw| {
            // SAFETY: the function is what it is called, and the connection is borrowed.
            unsafe { library::cache_bytes(ffi::sqlite3_db_status, connection.raw().cast()) }
        };
        let reads = if self.reads { handle.query(|connection| Ok(of(connection))) } else { Ok(0) };
        let writes =
            if self.writes { handle.update(|connection| Ok(of(connection))) } else { Ok(0) };
        reads.unwrap_or(0) + writes.unwrap_or(0)
    }
}

/// SQLite's or the library's error in the protocol's words.
pub fn sqlite_error(error: DbError) -> Error {
    Error::Sqlite { message: error.to_string() }
}
