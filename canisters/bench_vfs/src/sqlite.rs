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
//! Statements that change rows outside of a transaction are an update each. Statements are prepared and
//! executed through the library's own functions.

use crate::{database_bytes, database_memory};
use ic_sqlite_vfs::db::connection::CachedStatement;
use ic_sqlite_vfs::db::statement::Statement;
use ic_sqlite_vfs::db::{self, Null, TextLen, ToSql};
use ic_sqlite_vfs::{DbError, DbHandle};
use stablebench_harness::sql::{self, Pragmas, Prepare, Row, Statements, library};
use stablebench_harness::{SavedState, Sql, phases};
use stablebench_protocol::{
    Error, JournalMode, LockingMode, Phase, Result, SqliteDescription, SqliteSettings, Synchronous,
    TempStore,
};
use stablebench_suite_users::canister::UsersTable;
use stablebench_workload::sql::{Value, changes_rows};
use std::cell::RefCell;
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
pub fn restore(state: &SavedState) -> Sqlite {
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
                let handle = DbHandle::init(database_memory()?).map_err(sqlite_error)?;
                Ok(*self.handle.insert(handle))
            }
        }
    }

    /// Does `work` in an update. A failure undoes it.
    pub fn update<T>(&mut self, work: impl FnOnce(&LibraryConnection) -> Result<T>) -> Result<T> {
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
    pub fn query<T>(&mut self, work: impl FnOnce(&LibraryConnection) -> Result<T>) -> Result<T> {
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
fn set_own(connection: &LibraryConnection, pragmas: Pragmas) -> std::result::Result<(), DbError> {
    if pragmas.page_size != DEFAULTS.page_size {
        connection.execute_batch(&format!("PRAGMA page_size={}", pragmas.page_size))?;
    }
    if pragmas.cache_size != DEFAULTS.cache_size {
        connection.execute_batch(&format!("PRAGMA cache_size={}", pragmas.cache_size))?;
    }
    Ok(())
}

/// A transaction.
struct Transaction<'c>(&'c LibraryConnection);

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
            let work = |connection: &LibraryConnection| {
                work(&mut Prepared::new(connection, statements)?, number)
            };
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
        database_bytes()
    }

    fn cache_bytes(&self) -> u64 {
        let Some(handle) = self.handle.filter(|_| self.is_open()) else {
            return 0;
        };
        let of = |connection: &LibraryConnection| {
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
        let run = |connection: &LibraryConnection| {
            Prepared::new(connection, &[text])?.run(0, parameters, row)
        };
        if changes_rows(text) { self.connection.update(run) } else { self.connection.query(run) }
    }
}

/// A connection of the library.
pub type LibraryConnection = db::connection::Connection;

/// A result of the library.
type DbResult<T> = std::result::Result<T, DbError>;

/// Statements on a connection, all in one transaction or query.
struct Prepared<'c> {
    connection: &'c LibraryConnection,
    statements: Vec<PreparedStatement<'c>>,
}

struct PreparedStatement<'c> {
    statement: CachedStatement<'c>,
    writes: bool,
    columns: ReadColumns,
}

/// The columns of a statement's rows, which the library does not report before they are read.
#[derive(Default)]
struct ReadColumns {
    number: Option<usize>,
    classes: RefCell<Vec<StorageClass>>,
}

/// The storage class of a column's last value.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum StorageClass {
    #[default]
    Integer,
    Real,
    Text,
    Blob,
    Null,
}

impl<'c> Prepared<'c> {
    fn new(connection: &'c LibraryConnection, statements: &[&str]) -> Result<Self> {
        // Each is returned to the library's cache when it is dropped.
        let prepare = |text: &&str| {
            let statement = connection.prepare_cached(text).map_err(sqlite_error)?;
            Ok(PreparedStatement {
                statement,
                writes: changes_rows(text),
                columns: ReadColumns::default(),
            })
        };
        let statements = statements.iter().map(prepare).collect::<Result<_>>()?;
        phases::mark(Phase::Prepare);
        Ok(Self { connection, statements })
    }
}

impl Statements for Prepared<'_> {
    fn run(
        &mut self,
        statement: usize,
        parameters: &[Value],
        row: &mut dyn FnMut(&dyn Row) -> Result<ControlFlow<()>>,
    ) -> Result<u64> {
        let PreparedStatement { statement, writes, columns } = &mut self.statements[statement];
        if *writes {
            execute(statement, parameters).map_err(sqlite_error)?;
            phases::mark(Phase::Step);
            return Ok(self.connection.changes());
        }
        let mut rows = bind(statement, parameters).map_err(sqlite_error)?;
        phases::mark(Phase::Bind);
        loop {
            let answered = rows.next_row().map_err(sqlite_error)?;
            phases::mark(Phase::Step);
            let Some(answered) = answered else {
                return Ok(0);
            };
            columns.count(&answered);
            let next = row(&ReadRow { row: &answered, columns })?;
            phases::mark(Phase::Copy);
            if next.is_break() {
                return Ok(0);
            }
        }
    }
}

/// Executes a statement without rows. If the library has a function for exactly these parameters, which
/// does not copy them, it is called. Such a function binds and steps at once.
fn execute(statement: &mut Statement<'_>, parameters: &[Value]) -> DbResult<()> {
    if !phases::are_measured() {
        match parameters {
            [Value::Text(first), Value::Text(second)] => {
                return statement.execute_text_text(first, second);
            }
            [Value::Integer(first), Value::Text(second)] => {
                return statement.execute_i64_text(*first, second);
            }
            [Value::Integer(first), Value::Blob(second)] => {
                return statement.execute_i64_blob(*first, second);
            }
            _ => {}
        }
    }
    let mut rows = bind(statement, parameters)?;
    phases::mark(Phase::Bind);
    rows.next_row().map(drop)
}

/// Binds parameters; a few of them from the stack, as in code with a fixed number.
fn bind<'s, 'c>(
    statement: &'s mut Statement<'c>,
    parameters: &[Value],
) -> DbResult<db::statement::Rows<'s, 'c>> {
    const FEW: usize = 8;
    let mut few: [&dyn ToSql; FEW] = [&Null; FEW];
    let Some(few) = few.get_mut(..parameters.len()) else {
        let many: Vec<&dyn ToSql> = parameters.iter().map(to_sql).collect();
        return statement.query(&many);
    };
    for (place, parameter) in few.iter_mut().zip(parameters) {
        *place = to_sql(parameter);
    }
    statement.query(few)
}

fn to_sql(value: &Value) -> &dyn ToSql {
    match value {
        Value::Null => &Null,
        Value::Integer(number) => number,
        Value::Text(text) => text,
        Value::Blob(bytes) => bytes,
    }
}

impl ReadColumns {
    /// Counts the columns once: the error of an index past the last one contains their number.
    fn count(&mut self, row: &db::Row<'_>) {
        if self.number.is_none()
            && let Err(DbError::ColumnOutOfRange { count, .. }) = row.get::<i64>(usize::MAX)
        {
            self.number = Some(count);
            self.classes.borrow_mut().resize(count, StorageClass::default());
        }
    }
}

struct ReadRow<'a, 'r> {
    row: &'a db::Row<'r>,
    columns: &'a ReadColumns,
}

impl Row for ReadRow<'_, '_> {
    fn columns(&self) -> usize {
        self.columns.number.unwrap_or(0)
    }

    fn copy(&self, column: usize) -> Result<Value> {
        // Most rows of a table have the storage classes of the row before.
        let class = self.columns.classes.borrow().get(column).copied().unwrap_or_default();
        match self.copy_as(class, column) {
            Err(DbError::TypeMismatch { actual, .. }) => {
                let class = StorageClass::named(actual);
                if let Some(known) = self.columns.classes.borrow_mut().get_mut(column) {
                    *known = class;
                }
                self.copy_as(class, column)
            }
            copied => copied,
        }
        .map_err(sqlite_error)
    }

    fn text_bytes(&self, column: usize) -> Result<u64> {
        let TextLen(bytes) = self.row.get(column).map_err(sqlite_error)?;
        Ok(bytes as u64)
    }
}

impl ReadRow<'_, '_> {
    fn copy_as(&self, class: StorageClass, column: usize) -> DbResult<Value> {
        match class {
            StorageClass::Integer => self.row.get(column).map(Value::Integer),
            // Its bits identify the number.
            StorageClass::Real => {
                self.row.get(column).map(|number: f64| Value::Integer(number.to_bits() as i64))
            }
            StorageClass::Text => self.row.get(column).map(Value::Text),
            StorageClass::Blob => self.row.get(column).map(Value::Blob),
            StorageClass::Null => match self.row.get::<Option<i64>>(column)? {
                None => Ok(Value::Null),
                Some(number) => Ok(Value::Integer(number)),
            },
        }
    }
}

impl StorageClass {
    /// Returns the class by the library's word for it.
    fn named(word: &str) -> Self {
        match word {
            "REAL" => Self::Real,
            "TEXT" => Self::Text,
            "BLOB" => Self::Blob,
            "NULL" => Self::Null,
            _ => Self::Integer,
        }
    }
}

/// SQLite's or the library's error as one of the protocol.
fn sqlite_error(error: DbError) -> Error {
    Error::Sqlite { message: error.to_string() }
}
