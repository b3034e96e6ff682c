//! The interface of SQL engines, which get every SQL workload.
//!
//! ```text
//!   Script (statements, operations)      of a suite, from a job and a seed
//!      └─ MeasuredScript    begin, calls, commit: measured; results: what is read
//!           └─ Sql          the engine: a database and its connection, transactions as closures
//!                └─ Prepare    the connection, or a transaction on it
//!                     └─ Statements, Row    what it prepares, and the results
//! ```
//!
//! A transaction is a closure, since some libraries have no other form of it.

mod pragmas;
mod script;

pub use pragmas::{Pragmas, number, parse_settings, reopen, settings};
pub use script::{ContentTable, MeasuredScript, all_content, content, copy, phases, results};

use crate::{phases as phase, trap};
use stablebench_protocol::{Inspected, JournalMode, Phase, Result, SqliteSettings, StoredObject};
use stablebench_workload::sql::{RowBytes, Value, ValueRef};
use std::ops::ControlFlow;

/// A connection, or a transaction on it, which prepares statements.
pub trait Prepare {
    /// Work: prepares the statements, or takes them from a cache, and passes them to `work`. On a
    /// connection, each execution that changes rows is its own transaction.
    ///
    /// # Errors
    ///
    /// The engine's, and those of the work.
    fn prepared(
        &mut self,
        statements: &[&str],
        work: &mut dyn FnMut(&mut dyn Statements) -> Result<()>,
    ) -> Result<()>;
}

/// A connection to a database, which is opened when it is needed.
pub trait Sql: Prepare {
    /// Returns the pragmas that the library opens a connection with.
    fn defaults(&self) -> Pragmas;

    /// Returns the pragmas that the connection is opened with.
    fn pragmas(&self) -> Pragmas;

    /// Closes the connection, and opens the next one with other pragmas.
    fn replace_pragmas(&mut self, pragmas: Pragmas);

    /// Returns `true` if the connection is open.
    fn is_open(&self) -> bool;

    /// Opens the connection if it is closed, and issues the pragmas in their order.
    ///
    /// # Errors
    ///
    /// The engine's; then it is closed.
    fn open(&mut self) -> Result<()>;

    /// Closes the connection.
    fn close(&mut self);

    /// Returns `true` if no transaction is open. Opens nothing.
    fn is_autocommit(&mut self) -> bool;

    /// Executes statements without parameters and ignores their rows.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn batch(&mut self, statements: &str) -> Result<()>;

    /// Work: does `work` in one transaction.
    ///
    /// # Errors
    ///
    /// The engine's, and those of the work; then the transaction is undone.
    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Prepare) -> Result<()>) -> Result<()>;

    /// Work: prepares the statements and does `work` for each of `transactions` numbers, each in its
    /// own transaction, which changes rows or does not.
    ///
    /// # Errors
    ///
    /// The engine's, and those of the work; then a transaction may be left open.
    fn transactions(
        &mut self,
        statements: &[&str],
        transactions: usize,
        writes: bool,
        work: &mut dyn FnMut(&mut dyn Statements, usize) -> Result<()>,
    ) -> Result<()> {
        let _ = writes;
        bounded(self, statements, transactions, work)
    }

    /// Sets a pragma on the open connection. The caller reads back whether it was taken.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn set(&mut self, pragma: &str, value: &str) -> Result<()> {
        self.batch(&format!("PRAGMA {pragma} = {value}"))
    }

    /// Changes the page size of a database without rows to that of the pragmas, if possible.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn resize(&mut self) -> Result<()> {
        self.batch(&self.pragmas().resize_statements())
    }

    /// `VACUUM`.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn vacuum(&mut self) -> Result<()> {
        self.batch("VACUUM")
    }

    /// Returns the reason why the library never takes another value of a pragma, if it does not.
    fn fixed_because(&self, _pragma: &str) -> Option<&'static str> {
        None
    }

    /// Returns the settings of the connection, read back.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn settings(&mut self) -> Result<SqliteSettings> {
        settings(self)
    }

    /// Returns the bytes of the virtual memories that contain the database; 0 if it is on the heap.
    fn virtual_bytes(&self) -> u64;

    /// Returns the bytes of heap of the page cache.
    fn cache_bytes(&self) -> u64;
}

/// Prepared statements, each identified by its index.
pub trait Statements {
    /// Work: executes a statement, visits the rows of its result, and returns the number of rows that
    /// it changed.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn run(
        &mut self,
        statement: usize,
        parameters: &[Value],
        row: &mut dyn FnMut(&dyn Row) -> Result<ControlFlow<()>>,
    ) -> Result<u64>;
}

/// A row of a statement's result.
pub trait Row {
    /// Returns the number of its columns.
    fn columns(&self) -> usize;

    /// Work: copies the value of a column, counted from 0.
    ///
    /// # Errors
    ///
    /// If there is no such column.
    fn copy(&self, column: usize) -> Result<Value>;

    /// Work: returns the length of a text in bytes without copying it.
    ///
    /// # Errors
    ///
    /// If there is no such column, or it is not a text.
    fn text_bytes(&self, column: usize) -> Result<u64>;

    /// Visits the value of a column without copying it, if the engine can.
    ///
    /// # Errors
    ///
    /// If there is no such column.
    fn visit(&self, column: usize, visit: &mut dyn FnMut(ValueRef<'_>)) -> Result<()> {
        visit(self.copy(column)?.as_ref());
        Ok(())
    }
}

/// Does `work` in one transaction, for an engine with `BEGIN` and `COMMIT`.
///
/// # Errors
///
/// The engine's, and those of the work; then the transaction is undone.
pub fn transaction<S: Sql>(
    sql: &mut S,
    work: &mut dyn FnMut(&mut dyn Prepare) -> Result<()>,
) -> Result<()> {
    let outcome =
        sql.batch("BEGIN DEFERRED").and_then(|()| work(sql)).and_then(|()| sql.batch("COMMIT"));
    outcome.inspect_err(|because| {
        if sql.pragmas().journal_mode == JournalMode::Off {
            // SQLite cannot roll back without a journal; the system can.
            trap(because);
        }
        // After some errors SQLite has already rolled back, and a connection that failed to open
        // has begun nothing.
        if sql.is_open() && !sql.is_autocommit() && sql.batch("ROLLBACK").is_err() {
            trap(because);
        }
    })
}

/// Does `work` between `BEGIN` and `COMMIT`, which are prepared together with the statements.
fn bounded(
    sql: &mut (impl Prepare + ?Sized),
    statements: &[&str],
    transactions: usize,
    work: &mut dyn FnMut(&mut dyn Statements, usize) -> Result<()>,
) -> Result<()> {
    let begin = statements.len();
    let texts = [statements, &["BEGIN", "COMMIT"]].concat();
    sql.prepared(&texts, &mut |statements| {
        for number in 0..transactions {
            phase::all_of(Phase::Begin, || execute(statements, begin))?;
            work(statements, number)?;
            phase::all_of(Phase::Commit, || execute(statements, begin + 1))?;
        }
        Ok(())
    })
}

/// Executes a statement without parameters, and ignores its rows.
fn execute(statements: &mut dyn Statements, statement: usize) -> Result<()> {
    statements.run(statement, &[], &mut |_| Ok(ControlFlow::Continue(()))).map(drop)
}

/// Returns the number in the first column of the first row of a statement's result.
///
/// # Errors
///
/// The engine's.
pub fn first_number(
    sql: &mut (impl Prepare + ?Sized),
    statement: &str,
    parameters: &[Value],
) -> Result<Option<i64>> {
    let mut first = None;
    sql.prepared(&[statement], &mut |statements| {
        statements.run(0, parameters, &mut |row| {
            row.visit(0, &mut |value| {
                if let ValueRef::Integer(number) = value {
                    first = Some(number);
                }
            })?;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(())
    })?;
    Ok(first)
}

/// Returns the values of a row, encoded for a digest.
fn encoded(row: &dyn Row) -> Result<RowBytes> {
    let mut bytes = RowBytes::default();
    for column in 0..row.columns() {
        row.visit(column, &mut |value| bytes.add(value))?;
    }
    Ok(bytes)
}

/// Returns the storage of the whole database.
///
/// # Errors
///
/// The engine's.
pub fn inspect(sql: &mut dyn Sql) -> Result<Inspected> {
    let settings = sql.settings()?;
    Ok(Inspected {
        stored_bytes: settings.page_count * u64::from(settings.page_size),
        virtual_bytes: sql.virtual_bytes(),
        cache_bytes: sql.cache_bytes(),
        sqlite: Some(settings),
        objects: objects(sql)?,
    })
}

/// The b-trees, from SQLite's `dbstat`, which has a row per page.
///
/// ```text
/// path      "/" is the root, "/00a/" its child 10, "/00a/000/" a child of that, and
///           "/00a/000+000000" an overflow page
/// pagetype  internal, leaf, overflow
/// ncell     entries; an internal page has one child more
/// ```
const TREES: &str = "\
    SELECT dbstat.name, coalesce(sqlite_schema.tbl_name, dbstat.name), \
           coalesce(sqlite_schema.type = 'index', 0), \
           sum(pgsize), count(*), sum(pagetype = 'internal'), sum(pagetype = 'overflow'), \
           sum(CASE pagetype WHEN 'internal' THEN ncell + 1 ELSE 0 END), \
           sum(CASE pagetype WHEN 'leaf' THEN ncell ELSE 0 END), \
           sum(payload), sum(unused), \
           max(CASE pagetype WHEN 'overflow' THEN 0 ELSE length(path) - length(replace(path, '/', '')) END) \
    FROM dbstat LEFT JOIN sqlite_schema ON sqlite_schema.name = dbstat.name \
    GROUP BY dbstat.name ORDER BY 2, 3, 1";

/// The b-trees; none if the engine was built without `dbstat`.
fn objects(sql: &mut dyn Sql) -> Result<Vec<StoredObject>> {
    const KNOWN: &str = "SELECT 1 FROM pragma_module_list WHERE name = 'dbstat'";
    if first_number(sql, KNOWN, &[]).ok().flatten().is_none() {
        return Ok(Vec::new());
    }
    let mut objects = Vec::new();
    sql.prepared(&[TREES], &mut |statements| {
        statements.run(0, &[], &mut |row| {
            let text = |column| -> Result<String> {
                Ok(match row.copy(column)? {
                    Value::Text(text) => text,
                    _ => String::new(),
                })
            };
            let number = |column| -> Result<u64> {
                Ok(match row.copy(column)? {
                    Value::Integer(number) => u64::try_from(number).unwrap_or(0),
                    _ => 0,
                })
            };
            objects.push(StoredObject {
                name: text(0)?,
                table: text(1)?,
                index: number(2)? != 0,
                bytes: number(3)?,
                pages: number(4)?,
                internal_pages: number(5)?,
                overflow_pages: number(6)?,
                children: number(7)?,
                leaf_entries: number(8)?,
                payload_bytes: number(9)?,
                unused_bytes: number(10)?,
                depth: number(11)?,
            });
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    })?;
    Ok(objects)
}

/// SQLite's C functions, for any build of SQLite.
pub mod library {
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
            compile_options: (0..)
                .map_while(|index| text(unsafe { compile_option(index) }))
                .collect(),
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
}
