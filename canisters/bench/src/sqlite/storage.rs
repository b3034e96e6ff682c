//! Where SQLite's pages are.

use crate::manager;
use ic_rusqlite::{Connection, ffi};

/// The file system, which has the journal, and the database.
const FILE_SYSTEM: std::ops::RangeInclusive<u8> = 101..=118;
const DATABASE: u8 = 120;

/// Bytes of the memories of the file system and the database.
pub fn virtual_bytes() -> u64 {
    FILE_SYSTEM.map(manager::memory_bytes).sum::<u64>() + manager::memory_bytes(DATABASE)
}

/// Bytes of heap of the connection's page cache.
pub fn cache_bytes(connection: &Connection) -> u64 {
    let (mut bytes, mut highest) = (0, 0);
    // SAFETY: the handle is that of an open connection, which is borrowed meanwhile, and
    // both numbers outlive the call.
    unsafe {
        ffi::sqlite3_db_status(
            connection.handle(),
            ffi::SQLITE_DBSTATUS_CACHE_USED,
            &mut bytes,
            &mut highest,
            0,
        );
    }
    u64::try_from(bytes).unwrap_or(0)
}
