//! SQLite's C interface, which every build of SQLite has under the same names.

use std::ffi::{c_char, c_int, c_uint, c_void};

/// A connection.
#[repr(C)]
pub struct Connection {
    _opaque: [u8; 0],
}

/// A prepared statement.
#[repr(C)]
pub struct Statement {
    _opaque: [u8; 0],
}

/// A function that frees a bound value; none leaves it where it is.
pub type Destructor = Option<unsafe extern "C" fn(*mut c_void)>;

pub const OK: c_int = 0;
pub const ROW: c_int = 100;
pub const DONE: c_int = 101;

pub const INTEGER: c_int = 1;
pub const FLOAT: c_int = 2;
pub const TEXT: c_int = 3;
pub const BLOB: c_int = 4;

/// The counters of `sqlite3_stmt_status`.
pub mod counter {
    use super::c_int;

    pub const FULLSCAN_STEP: c_int = 1;
    pub const SORT: c_int = 2;
    pub const AUTOINDEX: c_int = 3;
    pub const VM_STEP: c_int = 4;
    pub const REPREPARE: c_int = 5;
}

unsafe extern "C" {
    pub fn sqlite3_prepare_v3(
        connection: *mut Connection,
        text: *const c_char,
        bytes: c_int,
        flags: c_uint,
        statement: *mut *mut Statement,
        tail: *mut *const c_char,
    ) -> c_int;
    pub fn sqlite3_step(statement: *mut Statement) -> c_int;
    pub fn sqlite3_reset(statement: *mut Statement) -> c_int;
    pub fn sqlite3_finalize(statement: *mut Statement) -> c_int;
    pub fn sqlite3_clear_bindings(statement: *mut Statement) -> c_int;
    pub fn sqlite3_bind_parameter_count(statement: *mut Statement) -> c_int;
    pub fn sqlite3_bind_null(statement: *mut Statement, place: c_int) -> c_int;
    pub fn sqlite3_bind_int64(statement: *mut Statement, place: c_int, value: i64) -> c_int;
    pub fn sqlite3_bind_double(statement: *mut Statement, place: c_int, value: f64) -> c_int;
    pub fn sqlite3_bind_text(
        statement: *mut Statement,
        place: c_int,
        text: *const c_char,
        bytes: c_int,
        destructor: Destructor,
    ) -> c_int;
    pub fn sqlite3_bind_blob(
        statement: *mut Statement,
        place: c_int,
        blob: *const c_void,
        bytes: c_int,
        destructor: Destructor,
    ) -> c_int;
    pub fn sqlite3_column_count(statement: *mut Statement) -> c_int;
    pub fn sqlite3_column_name(statement: *mut Statement, column: c_int) -> *const c_char;
    pub fn sqlite3_column_type(statement: *mut Statement, column: c_int) -> c_int;
    pub fn sqlite3_column_int64(statement: *mut Statement, column: c_int) -> i64;
    pub fn sqlite3_column_double(statement: *mut Statement, column: c_int) -> f64;
    pub fn sqlite3_column_blob(statement: *mut Statement, column: c_int) -> *const c_void;
    pub fn sqlite3_column_text(statement: *mut Statement, column: c_int) -> *const c_char;
    pub fn sqlite3_column_bytes(statement: *mut Statement, column: c_int) -> c_int;
    pub fn sqlite3_stmt_readonly(statement: *mut Statement) -> c_int;
    pub fn sqlite3_stmt_status(statement: *mut Statement, counter: c_int, reset: c_int) -> c_int;
    pub fn sqlite3_total_changes(connection: *mut Connection) -> c_int;
    pub fn sqlite3_errmsg(connection: *mut Connection) -> *const c_char;
    pub fn sqlite3_extended_errcode(connection: *mut Connection) -> c_int;
    pub fn sqlite3_error_offset(connection: *mut Connection) -> c_int;
    pub fn sqlite3_get_autocommit(connection: *mut Connection) -> c_int;
}
