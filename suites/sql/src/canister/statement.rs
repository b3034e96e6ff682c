//! Prepared statements through SQLite's C interface.

use crate::{Counters, Failure, Value};
use stablebench_workload::sql::RowBytes;
use stablebench_workload::sql::ValueRef;
use std::ffi::{CStr, c_char, c_int};
use std::marker::PhantomData;
use std::ptr::{self, NonNull};

/// An open connection, borrowed from its library.
#[derive(Clone, Copy, Debug)]
pub struct Handle<'c> {
    connection: NonNull<ffi::Connection>,
    lives: PhantomData<&'c ()>,
}

/// The maximum number of bytes of a text or a blob that are kept.
const MAX_KEPT: usize = 1 << 20;

impl<'c> Handle<'c> {
    /// Borrows a connection of a library.
    ///
    /// # Safety
    ///
    /// The pointer is that of a connection of the SQLite that the canister is linked with, and the
    /// connection stays open for the lifetime `'c`.
    pub unsafe fn new<T>(connection: *mut T) -> Option<Self> {
        let connection = NonNull::new(connection.cast())?;
        Some(Self { connection, lives: PhantomData })
    }

    /// Prepares the only statement of a text. `None` if it contains space and comments only.
    ///
    /// # Errors
    ///
    /// SQLite's; if there is a second statement.
    pub fn prepare(self, text: &str) -> Result<Option<Prepared<'c>>, Failure> {
        let Ok(bytes) = c_int::try_from(text.len()) else {
            return Err(Failure {
                code: TOO_BIG,
                message: "string or blob too big".to_owned(),
                ..Failure::default()
            });
        };
        let start = text.as_ptr().cast::<c_char>();
        let (mut statement, mut tail) = (ptr::null_mut(), ptr::null());
        // SAFETY: the connection is open, the text has as many bytes, and both results are written to
        // places of this function.
        let code = unsafe {
            let connection = self.connection.as_ptr();
            ffi::sqlite3_prepare_v3(connection, start, bytes, 0, &mut statement, &mut tail)
        };
        if code != ffi::OK {
            return Err(self.failure());
        }
        let statement = NonNull::new(statement);
        let prepared = statement.map(|statement| Prepared { statement, connection: self });
        // The tail is in the text.
        let rest = text.len().saturating_sub((tail as usize).saturating_sub(start as usize));
        let rest = text.as_bytes().get(text.len() - rest..).unwrap_or_default();
        let rest = std::str::from_utf8(rest).unwrap_or_default();
        if prepared.is_some()
            && !matches!(crate::split::end(rest), crate::split::End::Missing(false))
        {
            let message = "a call executes one statement; another one follows".to_owned();
            let offset = u32::try_from(text.len() - rest.len()).ok();
            return Err(Failure { code: MISUSE, message, offset, rolled_back: false });
        }
        Ok(prepared)
    }

    /// Returns the reason for the last failure.
    pub fn failure(self) -> Failure {
        let connection = self.connection.as_ptr();
        // SAFETY: the connection is open, and its message ends with a zero and is copied at once.
        unsafe {
            let message =
                CStr::from_ptr(ffi::sqlite3_errmsg(connection)).to_string_lossy().into_owned();
            let offset = u32::try_from(ffi::sqlite3_error_offset(connection)).ok();
            Failure {
                code: ffi::sqlite3_extended_errcode(connection),
                message,
                offset,
                rolled_back: false,
            }
        }
    }

    /// Returns `true` if no transaction is open.
    pub fn is_autocommit(self) -> bool {
        // SAFETY: the connection is open.
        unsafe { ffi::sqlite3_get_autocommit(self.connection.as_ptr()) != 0 }
    }

    /// Returns the number of rows that all statements changed so far.
    pub fn total_changes(self) -> i64 {
        // SAFETY: the connection is open.
        i64::from(unsafe { ffi::sqlite3_total_changes(self.connection.as_ptr()) })
    }
}

/// `SQLITE_TOOBIG`
const TOO_BIG: i32 = 18;
/// `SQLITE_MISUSE`
const MISUSE: i32 = 21;
/// `SQLITE_RANGE`
const RANGE: i32 = 25;

/// A prepared statement of one execution at a time.
#[derive(Debug)]
pub struct Prepared<'c> {
    statement: NonNull<ffi::Statement>,
    connection: Handle<'c>,
}

/// The answer of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepOutcome {
    Row,
    Done,
}

impl Prepared<'_> {
    /// Binds the values of the parameters. Their bytes are read until the statement is reset.
    ///
    /// # Errors
    ///
    /// SQLite's; if there are more or fewer values than parameters.
    pub fn bind(&mut self, values: &[Value]) -> Result<(), Failure> {
        let statement = self.statement.as_ptr();
        // SAFETY: the statement is prepared.
        let expected = unsafe { ffi::sqlite3_bind_parameter_count(statement) };
        if usize::try_from(expected) != Ok(values.len()) {
            let message = format!(
                "the statement has {expected} parameters, and {} values were given",
                values.len()
            );
            return Err(Failure { code: RANGE, message, ..Failure::default() });
        }
        for (place, value) in (1..).zip(values) {
            // A bound length is an int. No message is that long.
            let length = |bytes: &[u8]| c_int::try_from(bytes.len()).unwrap_or(c_int::MAX);
            // SAFETY: the statement is prepared and reset. Bytes without a destructor are not copied;
            // the caller keeps the values until the next reset, which ends every use of them.
            let code = unsafe {
                match value {
                    Value::Null => ffi::sqlite3_bind_null(statement, place),
                    Value::Integer(number) => ffi::sqlite3_bind_int64(statement, place, *number),
                    Value::Real(number) => ffi::sqlite3_bind_double(statement, place, *number),
                    Value::Text(text) => {
                        let (text, bytes) = (text.as_ptr().cast(), length(text.as_bytes()));
                        ffi::sqlite3_bind_text(statement, place, text, bytes, None)
                    }
                    Value::TextBytes(text) => {
                        let (start, bytes) = (text.as_ptr().cast(), length(text));
                        ffi::sqlite3_bind_text(statement, place, start, bytes, None)
                    }
                    Value::Blob(blob) => {
                        let (start, bytes) = (blob.as_ptr().cast(), length(blob));
                        ffi::sqlite3_bind_blob(statement, place, start, bytes, None)
                    }
                }
            };
            if code != ffi::OK {
                return Err(self.connection.failure());
            }
        }
        Ok(())
    }

    /// Work: executes the statement until its next row or its end.
    ///
    /// # Errors
    ///
    /// SQLite's.
    #[inline]
    pub fn step(&mut self) -> Result<StepOutcome, Failure> {
        // SAFETY: the statement is prepared, and what is bound to it lives.
        match unsafe { ffi::sqlite3_step(self.statement.as_ptr()) } {
            ffi::ROW => Ok(StepOutcome::Row),
            ffi::DONE => Ok(StepOutcome::Done),
            _ => Err(self.connection.failure()),
        }
    }

    /// Ends the execution, and forgets what was bound.
    pub fn reset(&mut self) {
        // SAFETY: the statement is prepared. The code repeats that of the last step.
        unsafe {
            ffi::sqlite3_reset(self.statement.as_ptr());
            ffi::sqlite3_clear_bindings(self.statement.as_ptr());
        }
    }

    /// Returns `true` if the statement cannot change the database.
    pub fn is_readonly(&self) -> bool {
        // SAFETY: the statement is prepared.
        unsafe { ffi::sqlite3_stmt_readonly(self.statement.as_ptr()) != 0 }
    }

    /// Returns the names of the result's columns.
    pub fn columns(&self) -> Vec<String> {
        let statement = self.statement.as_ptr();
        // SAFETY: the statement is prepared; a name ends with a zero and is copied at once.
        let name = |column| unsafe {
            let name = ffi::sqlite3_column_name(statement, column);
            if name.is_null() {
                return String::new();
            }
            CStr::from_ptr(name).to_string_lossy().into_owned()
        };
        (0..self.width()).map(name).collect()
    }

    fn width(&self) -> c_int {
        // SAFETY: the statement is prepared.
        unsafe { ffi::sqlite3_column_count(self.statement.as_ptr()) }
    }

    /// Visits the values of the row at which the last step stopped: bytes of the whole value for the
    /// digest, and the value, of which at most [`MAX_KEPT`] bytes are kept, with the number of all.
    pub fn row(&mut self, digest: &mut RowBytes, mut keep: impl FnMut(Value, Option<u64>)) {
        for column in 0..self.width() {
            let statement = self.statement.as_ptr();
            // SAFETY: the statement stopped at a row that has the column. A pointer is asked for before
            // the length, and is read before the next call.
            unsafe {
                match ffi::sqlite3_column_type(statement, column) {
                    ffi::INTEGER => {
                        let number = ffi::sqlite3_column_int64(statement, column);
                        digest.add(ValueRef::Integer(number));
                        keep(Value::Integer(number), None);
                    }
                    ffi::FLOAT => {
                        let number = ffi::sqlite3_column_double(statement, column);
                        // Its bits identify it; the length tells it from an integer.
                        digest.add(ValueRef::Blob(&number.to_le_bytes()));
                        keep(Value::Real(number), None);
                    }
                    ffi::TEXT => {
                        let start = ffi::sqlite3_column_text(statement, column).cast();
                        let bytes = bytes_at(start, ffi::sqlite3_column_bytes(statement, column));
                        digest.add(ValueRef::Text(bytes));
                        let all = (bytes.len() > MAX_KEPT).then_some(bytes.len() as u64);
                        keep(text(&bytes[..bytes.len().min(MAX_KEPT)], all.is_some()), all);
                    }
                    ffi::BLOB => {
                        let start = ffi::sqlite3_column_blob(statement, column).cast();
                        let bytes = bytes_at(start, ffi::sqlite3_column_bytes(statement, column));
                        digest.add(ValueRef::Blob(bytes));
                        let all = (bytes.len() > MAX_KEPT).then_some(bytes.len() as u64);
                        keep(Value::Blob(bytes[..bytes.len().min(MAX_KEPT)].to_vec()), all);
                    }
                    _ => {
                        digest.add(ValueRef::Null);
                        keep(Value::Null, None);
                    }
                }
            }
        }
    }

    /// Returns the counters of all executions since they were last asked for.
    pub fn counters(&mut self) -> Counters {
        let statement = self.statement.as_ptr();
        let counter = |counter| {
            // SAFETY: the statement is prepared.
            let counted = unsafe { ffi::sqlite3_stmt_status(statement, counter, 1) };
            u64::try_from(counted).unwrap_or(0)
        };
        Counters {
            scanned: counter(ffi::counter::FULLSCAN_STEP),
            sorts: counter(ffi::counter::SORT),
            auto_indexed: counter(ffi::counter::AUTOINDEX),
            operations: counter(ffi::counter::VM_STEP),
            prepared_again: counter(ffi::counter::REPREPARE),
        }
    }
}

impl Drop for Prepared<'_> {
    fn drop(&mut self) {
        // SAFETY: the statement is prepared, and not used again.
        unsafe { ffi::sqlite3_finalize(self.statement.as_ptr()) };
    }
}

/// Returns a text, whose last character may be cut.
fn text(bytes: &[u8], is_cut: bool) -> Value {
    match std::str::from_utf8(bytes) {
        Ok(text) => Value::Text(text.to_owned()),
        Err(error) if is_cut && error.error_len().is_none() => {
            Value::Text(String::from_utf8_lossy(&bytes[..error.valid_up_to()]).into_owned())
        }
        Err(_) => Value::TextBytes(bytes.to_vec()),
    }
}

/// # Safety
///
/// The pointer is null, or at least as many bytes follow it, which live and are not changed.
unsafe fn bytes_at<'a>(start: *const u8, length: c_int) -> &'a [u8] {
    match usize::try_from(length) {
        // SAFETY: the caller's.
        Ok(length) if !start.is_null() => unsafe { std::slice::from_raw_parts(start, length) },
        _ => &[],
    }
}

/// SQLite's C interface, which every build of SQLite has under the same names.
mod ffi {
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
        pub fn sqlite3_stmt_status(
            statement: *mut Statement,
            counter: c_int,
            reset: c_int,
        ) -> c_int;
        pub fn sqlite3_total_changes(connection: *mut Connection) -> c_int;
        pub fn sqlite3_errmsg(connection: *mut Connection) -> *const c_char;
        pub fn sqlite3_extended_errcode(connection: *mut Connection) -> c_int;
        pub fn sqlite3_error_offset(connection: *mut Connection) -> c_int;
        pub fn sqlite3_get_autocommit(connection: *mut Connection) -> c_int;
    }
}
