//! What an SQL engine implements to get every SQL workload.
//!
//! ```text
//!   Script (statements, operations)          crates/workload, from a job and a seed
//!      └─ perform     prepare, begin, calls, commit: measured; reads once more: results
//!           └─ Sql    the engine: prepared statements on its one connection
//! ```

mod content;
mod objects;
mod perform;
mod settings;
mod users;

use crate::Pragmas;
use stablebench_protocol::{Inspected, Result, SqliteSettings};
use stablebench_workload::sql::{Value, ValueRef};
use std::ops::ControlFlow;

pub use content::{Table, content};
pub(crate) use perform::copy;
pub use perform::perform;
pub use settings::number;
pub use users::Users;

/// A connection to a database, which is opened by whatever needs it.
pub trait Sql {
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

    /// Work: prepares the statements, or takes them from a cache, and hands them to `work`.
    ///
    /// # Errors
    ///
    /// The engine's, and those of the work.
    fn prepared(
        &mut self,
        statements: &[&str],
        work: &mut dyn FnMut(&mut dyn Statements) -> Result<()>,
    ) -> Result<()>;

    /// What the connection runs with, read back.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn settings(&mut self) -> Result<SqliteSettings> {
        settings::settings(self)
    }

    /// Bytes of the virtual memories that the database is in; 0 where it is on the heap.
    fn virtual_bytes(&self) -> u64;

    /// Bytes of heap that the page cache holds.
    fn cache_bytes(&self) -> u64;
}

/// Prepared statements, each known by its place among those asked for.
pub trait Statements {
    /// Whether the statement changes rows and answers none.
    fn writes(&self, statement: usize) -> bool;

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

    /// The value of a column, from 0.
    ///
    /// # Errors
    ///
    /// Where there is no such column.
    fn get(&self, column: usize) -> Result<ValueRef<'_>>;
}

/// The number in the first column of the first row that a statement answers.
///
/// # Errors
///
/// The engine's.
pub fn first_number(
    sql: &mut (impl Sql + ?Sized),
    statement: &str,
    parameters: &[Value],
) -> Result<Option<i64>> {
    let mut first = None;
    sql.prepared(&[statement], &mut |statements| {
        statements.run(0, parameters, &mut |row| {
            if let ValueRef::Integer(number) = row.get(0)? {
                first = Some(number);
            }
            Ok(ControlFlow::Break(()))
        })?;
        Ok(())
    })?;
    Ok(first)
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
