//! A connection to a database in stable memory, or to one on the heap.
//!
//! DoltLite takes SQLite's pragmas, but not all of them mean something: its tables are chunks of
//! prolly trees behind a log of its own, not pages behind a journal. Those that mean nothing
//! are not issued, and other values of them refused.

use super::statements::{CACHED, Prepared};
use crate::{manager, shim};
use doltlite as _;
use ic_rusqlite::ffi;
use libz_sys as _;
use stablebench_harness::sql::{self, Prepare, Statements, library};
use stablebench_harness::{Keyword, Pragmas, Sql, phases};
use stablebench_protocol::{
    Error, JournalMode, LockingMode, Phase, Result, Storage, Synchronous, TempStore,
};

const FOLDER: &str = "DB";
const FILE: &str = "DB/main.db";

/// DoltLite's own log, pages and cache; all else as `ic-rusqlite` has it.
pub const DEFAULTS: Pragmas = Pragmas {
    journal_mode: JournalMode::Wal,
    synchronous: Synchronous::Off,
    locking_mode: LockingMode::Exclusive,
    temp_store: TempStore::Memory,
    page_size: 4096,
    cache_size: -65_536,
};

/// The connection, open or not. Closing one on the heap ends the database.
pub struct Connection {
    storage: Storage,
    pragmas: Pragmas,
    connection: Option<ic_rusqlite::Connection>,
}

impl Connection {
    /// A closed connection.
    pub fn new(storage: Storage, pragmas: Pragmas) -> Self {
        Self { storage, pragmas, connection: None }
    }

    /// The connection, which is opened where it is closed.
    fn opened(&mut self) -> Result<&ic_rusqlite::Connection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => phases::all_of(Phase::Open, || open(self.storage, &self.pragmas))?,
        };
        Ok(self.connection.insert(connection))
    }
}

fn open(storage: Storage, pragmas: &Pragmas) -> Result<ic_rusqlite::Connection> {
    // The C library looks once where files can be: whichever database comes first.
    manager::mount();
    let connection = match storage {
        Storage::Heap => ic_rusqlite::Connection::open_in_memory(),
        Storage::Stable => {
            for folder in ["tmp", FOLDER] {
                std::fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))?;
            }
            ic_rusqlite::Connection::open(FILE)
        }
    };
    let connection = connection.map_err(sqlite_error)?;
    connection.set_prepared_statement_cache_capacity(CACHED);
    let statements = format!(
        "PRAGMA temp_store={};PRAGMA locking_mode={};PRAGMA synchronous={};PRAGMA cache_size={};",
        pragmas.temp_store.word(),
        pragmas.locking_mode.word(),
        pragmas.synchronous.word(),
        pragmas.cache_size,
    );
    connection.execute_batch(&statements).map_err(sqlite_error)?;
    Ok(connection)
}

impl Prepare for Connection {
    fn prepared(
        &mut self,
        statements: &[&str],
        work: &mut dyn FnMut(&mut dyn Statements) -> Result<()>,
    ) -> Result<()> {
        work(&mut Prepared::new(self.opened()?, statements).map_err(sqlite_error)?)
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
        self.connection.is_some()
    }

    fn open(&mut self) -> Result<()> {
        self.opened().map(drop)
    }

    fn close(&mut self) {
        self.connection = None;
    }

    fn is_autocommit(&mut self) -> bool {
        self.connection.as_ref().is_none_or(ic_rusqlite::Connection::is_autocommit)
    }

    fn batch(&mut self, statements: &str) -> Result<()> {
        self.opened()?.execute_batch(statements).map_err(sqlite_error)
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Prepare) -> Result<()>) -> Result<()> {
        sql::transaction(self, work)
    }

    fn vacuum(&mut self) -> Result<()> {
        self.batch("VACUUM")?;
        shim::remove_replaced().map_err(|error| file_error("what was replaced", &error))
    }

    fn resize(&mut self) -> Result<()> {
        // See `fixes`.
        Ok(())
    }

    fn fixes(&self, pragma: &str) -> Option<&'static str> {
        Some(match pragma {
            "page_size" => "DoltLite has chunks of a tree instead of pages",
            "journal_mode" => "DoltLite has a log of its own instead of a journal",
            _ => return None,
        })
    }

    fn virtual_bytes(&self) -> u64 {
        match self.storage {
            Storage::Heap => 0,
            Storage::Stable => manager::file_system_bytes(),
        }
    }

    fn cache_bytes(&self) -> u64 {
        self.connection.as_ref().map_or(0, |connection| {
            // SAFETY: the function is what it is called, and the connection is borrowed.
            unsafe { library::cache_bytes(ffi::sqlite3_db_status, connection.handle()) }
        })
    }
}

fn file_error(what: &str, error: &std::io::Error) -> Error {
    Error::Sqlite { message: format!("{what}: {error}") }
}

/// DoltLite's error in the protocol's words.
pub fn sqlite_error(error: ic_rusqlite::Error) -> Error {
    Error::Sqlite { message: error.to_string() }
}
