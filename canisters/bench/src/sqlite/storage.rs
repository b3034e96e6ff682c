//! Where SQLite's pages are.

use crate::manager;
use ic_rusqlite::{Connection, ffi};
use stablebench_harness::sql::library;

/// The file system, which has the journal, and the database.
const FILE_SYSTEM: std::ops::RangeInclusive<u8> = 101..=118;
const DATABASE: u8 = 120;

/// Bytes of the memories of the file system and the database.
pub fn virtual_bytes() -> u64 {
    FILE_SYSTEM.map(manager::memory_bytes).sum::<u64>() + manager::memory_bytes(DATABASE)
}

/// Bytes of heap of the connection's page cache.
pub fn cache_bytes(connection: &Connection) -> u64 {
    // SAFETY: the function is what it is called, and the connection is borrowed.
    unsafe { library::cache_bytes(ffi::sqlite3_db_status, connection.handle()) }
}
