//! What an SQL engine implements to get every SQL workload.
//!
//! ```text
//!   Script (statements, operations)      crates/workload, from a job and a seed
//!      └─ Measured          begin, calls, commit: measured; results: what is read
//!           └─ Sql          the engine: a database and its connection, transactions as closures
//!                └─ Prepare    the connection, or a transaction on it
//!                     └─ Statements, Row    what it prepares, and what that answers
//! ```
//!
//! A transaction is a closure, since there are libraries that have it no other way.

mod content;
pub mod library;
mod objects;
mod perform;
mod settings;
mod users;

use crate::{Pragmas, phases, trap};
use stablebench_protocol::{Inspected, JournalMode, Phase, Result, SqliteSettings};
use stablebench_workload::sql::{RowBytes, Value, ValueRef};
use std::ops::ControlFlow;

pub use content::{Table, content};
pub(crate) use perform::copy;
pub use perform::{Measured, phases, results};
pub use settings::{number, settings};
pub use users::Users;

/// What prepares statements: a connection, or a transaction on it.
pub trait Prepare {
    /// Work: prepares the statements, or takes them from a cache, and hands them to `work`.
    /// On a connection, each execution that changes rows is a transaction of its own.
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

/// A connection to a database, which is opened by whatever needs it.
pub trait Sql: Prepare {
    /// What the library opens a connection with.
    fn defaults(&self) -> Pragmas;

    /// What the connection is opened with.
    fn pragmas(&self) -> Pragmas;

    /// Closes the connection, and opens the next one with other pragmas.
    fn replace_pragmas(&mut self, pragmas: Pragmas);

    /// Whether the connection is open.
    fn is_open(&self) -> bool;

    /// Opens the connection where it is closed, and issues the pragmas in their order.
    ///
    /// # Errors
    ///
    /// The engine's; then it is closed.
    fn open(&mut self) -> Result<()>;

    /// Closes the connection.
    fn close(&mut self);

    /// Whether no transaction is open. Opens nothing.
    fn is_autocommit(&mut self) -> bool;

    /// Executes statements that have no parameters and whose rows nobody wants.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn batch(&mut self, statements: &str) -> Result<()>;

    /// Work: what `work` does, in one transaction.
    ///
    /// # Errors
    ///
    /// The engine's, and those of the work; what the transaction did is undone then.
    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Prepare) -> Result<()>) -> Result<()>;

    /// Work: prepares the statements and does `work` for each of `transactions` numbers,
    /// each in a transaction, which changes rows or does not.
    ///
    /// # Errors
    ///
    /// The engine's, and those of the work; a transaction may be left open then.
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

    /// Sets a pragma on the open connection. Whether it was taken is read back.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn set(&mut self, pragma: &str, value: &str) -> Result<()> {
        self.batch(&format!("PRAGMA {pragma} = {value}"))
    }

    /// Gives a database without rows the page size of the pragmas, where that can be.
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

    /// Why the library does not take another value of a pragma, where it never does.
    fn fixes(&self, _pragma: &str) -> Option<&'static str> {
        None
    }

    /// What the connection runs with, read back.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn settings(&mut self) -> Result<SqliteSettings> {
        settings(self)
    }

    /// Bytes of the virtual memories that the database is in; 0 where it is on the heap.
    fn virtual_bytes(&self) -> u64;

    /// Bytes of heap that the page cache holds.
    fn cache_bytes(&self) -> u64;
}

/// Prepared statements, each known by its place among those asked for.
pub trait Statements {
    /// Work: executes a statement, shows the rows that it answers until told to stop, and
    /// tells how many rows it changed.
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

/// A row that a statement answers.
pub trait Row {
    /// How many columns it has.
    fn columns(&self) -> usize;

    /// Work: copies the value of a column, from 0, out of the engine.
    ///
    /// # Errors
    ///
    /// Where there is no such column.
    fn copy(&self, column: usize) -> Result<Value>;

    /// Work: the bytes of a text, which is not copied.
    ///
    /// # Errors
    ///
    /// Where there is no such column, or it is no text.
    fn text_bytes(&self, column: usize) -> Result<u64>;

    /// Shows the value of a column.
    ///
    /// # Errors
    ///
    /// Where there is no such column.
    fn look(&self, column: usize, look: &mut dyn FnMut(ValueRef<'_>)) -> Result<()> {
        look(self.copy(column)?.as_ref());
        Ok(())
    }
}

/// For an engine that has `BEGIN` and `COMMIT`: `work` in one transaction.
///
/// # Errors
///
/// The engine's, and those of the work; what the transaction did is undone then.
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
        // After some errors SQLite has rolled back by itself, and what failed to open has
        // begun nothing.
        if sql.is_open() && !sql.is_autocommit() && sql.batch("ROLLBACK").is_err() {
            trap(because);
        }
    })
}

/// `BEGIN` and `COMMIT`, prepared beside the statements.
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
            phases::all_of(Phase::Begin, || execute(statements, begin))?;
            work(statements, number)?;
            phases::all_of(Phase::Commit, || execute(statements, begin + 1))?;
        }
        Ok(())
    })
}

/// Executes a statement without parameters and rows.
fn execute(statements: &mut dyn Statements, statement: usize) -> Result<()> {
    statements.run(statement, &[], &mut |_| Ok(ControlFlow::Continue(()))).map(drop)
}

/// The number in the first column of the first row that a statement answers.
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
            row.look(0, &mut |value| {
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

/// Shows the values of a row, as they are encoded for a digest.
fn encoded(row: &dyn Row) -> Result<RowBytes> {
    let mut bytes = RowBytes::default();
    for column in 0..row.columns() {
        row.look(column, &mut |value| bytes.add(value))?;
    }
    Ok(bytes)
}

/// What the whole database takes.
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
        objects: objects::objects(sql)?,
    })
}
