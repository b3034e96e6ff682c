//! C functions of the SQLite that `ic-sqlite-vfs` links, which it does not export.

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
