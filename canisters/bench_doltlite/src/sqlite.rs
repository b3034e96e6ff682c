//! DoltLite as a database in stable memory, and one on the heap.
//!
//! DoltLite accepts SQLite's pragmas, but some have no meaning: its tables are chunks of prolly trees
//! with its own log, not pages with a journal. Those are not issued, and other values are refused.
//!
//! The files of the first are in memories of the only `MemoryManager`. The engine calls POSIX functions
//! from here where it expects more of them than the file system does; `include/canister.h` makes it.
//! `VACUUM` writes the database to another file and renames that file to the one that is still open.
//! `stable-fs` does not remove the last name of an open file. So the old file gets a second name
//! first, under which it is removed once it is closed:
//!
//! ```text
//!   DB/main.db  ──link──→  DB/replaced
//!   DB/main.db-gc-tmp  ──rename──→  DB/main.db
//! ```
//!
//! No other message sees the state between these steps: a message is executed completely or not at
//! all. The engine then syncs the directory, but `stable-fs` syncs only files.

use crate::statements::{CACHED, Prepared, sqlite_error};
use doltlite as _;
use ic_rusqlite::ffi;
use ic_stable_structures::memory_manager::{MemoryId, MemoryManager, VirtualMemory};
use ic_stable_structures::{DefaultMemoryImpl, Memory};
use libz_sys as _;
use stablebench_harness::sql::{self, Pragmas, Prepare, Statements, library};
use stablebench_harness::{SavedState, Sql, phases};
use stablebench_protocol::{
    Error, JournalMode, Keyword, LockingMode, Phase, Result, SqliteDescription, Storage,
    Synchronous, TempStore,
};
use stablebench_suite_users::canister::Databases;
use std::cell::RefCell;
use std::ffi::{CStr, c_char, c_int};
use std::fs::{self, File};
use std::io;
use std::mem::ManuallyDrop;
use std::ops::Range;
use std::os::fd::FromRawFd;

/// The databases.
pub type Sqlite = Databases<Connection, Connection>;

/// Restores the databases after an upgrade.
pub fn restore(state: &SavedState) -> Sqlite {
    let pragmas = Pragmas::new(state.sqlite_config, DEFAULTS);
    let [stable, heap] =
        [Storage::Stable, Storage::Heap].map(|storage| Connection::new(storage, pragmas));
    Databases::restore(stable, heap, state)
}

/// Describes the SQLite in DoltLite.
pub fn describe() -> SqliteDescription {
    // SAFETY: these are the functions that it requires.
    unsafe { library::describe(ffi::sqlite3_libversion, ffi::sqlite3_compileoption_get) }
}

const FOLDER: &str = "DB";
const FILE: &str = "DB/main.db";

/// The pragmas of a connection: DoltLite's own log, pages and cache, and all others as in
/// `ic-rusqlite`.
const DEFAULTS: Pragmas = Pragmas {
    journal_mode: JournalMode::Wal,
    synchronous: Synchronous::Off,
    locking_mode: LockingMode::Exclusive,
    temp_store: TempStore::Memory,
    page_size: 4096,
    cache_size: -65_536,
};

/// A connection to the database in stable memory or to the one on the heap, open or not. Closing the
/// latter removes the database.
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

    /// Returns the connection, which is opened if it is closed.
    pub fn opened(&mut self) -> Result<&ic_rusqlite::Connection> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => phases::all_of(Phase::Open, || open(self.storage, &self.pragmas))?,
        };
        Ok(self.connection.insert(connection))
    }
}

fn open(storage: Storage, pragmas: &Pragmas) -> Result<ic_rusqlite::Connection> {
    // The C library looks for directories once, when the first database is opened.
    mount();
    let connection = match storage {
        Storage::Heap => ic_rusqlite::Connection::open_in_memory(),
        Storage::Stable => {
            for folder in ["tmp", FOLDER] {
                fs::create_dir_all(folder).map_err(|error| file_error(folder, &error))?;
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
        remove_replaced().map_err(|error| file_error("the replaced file", &error))
    }

    fn resize(&mut self) -> Result<()> {
        // See `fixed_because`.
        Ok(())
    }

    fn fixed_because(&self, pragma: &str) -> Option<&'static str> {
        Some(match pragma {
            "page_size" => "DoltLite has chunks of a tree instead of pages",
            "journal_mode" => "DoltLite has a log of its own instead of a journal",
            _ => return None,
        })
    }

    fn virtual_bytes(&self) -> u64 {
        match self.storage {
            Storage::Heap => 0,
            Storage::Stable => file_system_bytes(),
        }
    }

    fn cache_bytes(&self) -> u64 {
        self.connection.as_ref().map_or(0, |connection| {
            // SAFETY: this is the function that it requires, and the connection is borrowed.
            unsafe { library::cache_bytes(ffi::sqlite3_db_status, connection.handle()) }
        })
    }
}

fn file_error(what: &str, error: &io::Error) -> Error {
    Error::Sqlite { message: format!("{what}: {error}") }
}

/// The memories of the file system, as in `ic-rusqlite`.
const FILE_SYSTEM: Range<u8> = 101..119;

const WASM_PAGE_BYTES: u64 = 65536;

thread_local! {
    /// Takes stable memory when it is first touched.
    static MANAGER: RefCell<MemoryManager<DefaultMemoryImpl>> = {
        let manager = MemoryManager::init(DefaultMemoryImpl::default());
        // The engine's random numbers, for names of temporary files, follow from this.
        let seed = [0; 32];
        let environment = [("SQLITE_TMPDIR", "tmp")];
        ic_wasi_polyfill::init_with_memory_manager(&seed, &environment, &manager, FILE_SYSTEM);
        RefCell::new(manager)
    };
}

/// Returns the memory with an id.
pub fn memory(id: u8) -> VirtualMemory<DefaultMemoryImpl> {
    MANAGER.with_borrow(|manager| manager.get(MemoryId::new(id)))
}

/// Mounts the file system.
fn mount() {
    MANAGER.with_borrow(|_| ());
}

/// Returns the bytes of the file system's memories.
fn file_system_bytes() -> u64 {
    FILE_SYSTEM.map(|id| memory(id).size()).sum::<u64>() * WASM_PAGE_BYTES
}

const REPLACED: &str = "DB/replaced";

/// Removes the replaced file, which is closed, if there is one.
fn remove_replaced() -> io::Result<()> {
    match fs::remove_file(REPLACED) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

fn rename(from: &str, to: &str) -> io::Result<()> {
    remove_replaced()?;
    if fs::metadata(to).is_ok() {
        fs::hard_link(to, REPLACED)?;
    }
    fs::rename(from, to)
}

/// `rename` of POSIX, without `errno`.
///
/// # Safety
///
/// Both arguments point to strings that end with a zero.
#[unsafe(no_mangle)]
unsafe extern "C" fn stablebench_rename(from: *const c_char, to: *const c_char) -> c_int {
    // SAFETY: the caller ensures this.
    let path = |text: *const c_char| unsafe { CStr::from_ptr(text) }.to_str();
    match (path(from), path(to)) {
        (Ok(from), Ok(to)) if rename(from, to).is_ok() => 0,
        _ => -1,
    }
}

/// `fsync`, which does nothing for a directory.
#[unsafe(no_mangle)]
extern "C" fn stablebench_fsync(descriptor: c_int) -> c_int {
    unsafe extern "C" {
        safe fn fsync(descriptor: c_int) -> c_int;
    }
    // SAFETY: the engine has opened the file, and it is not closed here.
    let file = ManuallyDrop::new(unsafe { File::from_raw_fd(descriptor) });
    if file.metadata().is_ok_and(|metadata| metadata.is_dir()) { 0 } else { fsync(descriptor) }
}
