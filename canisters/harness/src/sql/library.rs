//! SQLite's C functions, for any build of SQLite.

use stablebench_protocol::SqliteDescription;
use std::ffi::{CStr, c_char, c_int};

/// `SQLITE_DBSTATUS_CACHE_USED`
const CACHE_USED: c_int = 1;

/// Describes the library without a connection, which would take stable memory.
///
/// # Safety
///
/// The functions are `sqlite3_libversion` and `sqlite3_compileoption_get`.
pub unsafe fn describe(
    version: unsafe extern "C" fn() -> *const c_char,
    compile_option: unsafe extern "C" fn(c_int) -> *const c_char,
) -> SqliteDescription {
    let text = |pointer: *const c_char| {
        // SAFETY: a pointer that is not null points to a static string that ends with a zero.
        (!pointer.is_null())
            .then(|| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned())
    };
    SqliteDescription {
        // SAFETY: it can be called at any time.
        version: text(unsafe { version() }).unwrap_or_default(),
        // SAFETY: SQLite accepts any index, and returns null past its list.
        compile_options: (0..).map_while(|index| text(unsafe { compile_option(index) })).collect(),
    }
}

/// Returns the bytes of heap of a connection's page cache.
///
/// # Safety
///
/// The function is `sqlite3_db_status`, and the connection is open.
pub unsafe fn cache_bytes<C>(
    db_status: unsafe extern "C" fn(*mut C, c_int, *mut c_int, *mut c_int, c_int) -> c_int,
    connection: *mut C,
) -> u64 {
    let (mut bytes, mut highest) = (0, 0);
    // SAFETY: both numbers outlive the call. The caller ensures the rest.
    unsafe { db_status(connection, CACHE_USED, &mut bytes, &mut highest, 0) };
    u64::try_from(bytes).unwrap_or(0)
}
