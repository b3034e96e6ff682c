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

use stablebench_protocol::{Inspected, Result, SqliteSettings};
use stablebench_workload::sql::{Value, ValueRef};

pub use content::{Table, content};
pub use perform::{perform, perform_unordered};

/// A connection to a database.
pub trait Sql {
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
    fn settings(&mut self) -> Result<SqliteSettings>;

    /// Bytes of the virtual memories that the database is in; 0 where it is on the heap.
    fn virtual_bytes(&self) -> u64;

    /// Bytes of heap that the page cache holds.
    fn cache_bytes(&self) -> u64;
}

/// Prepared statements, each known by its place among those asked for.
pub trait Statements {
    /// Whether the statement changes rows and answers none.
    fn writes(&self, statement: usize) -> bool;

    /// Work: executes a statement, shows the rows that it answers, and tells how many rows
    /// it changed.
    ///
    /// # Errors
    ///
    /// The engine's.
    fn run(
        &mut self,
        statement: usize,
        parameters: &[Value],
        row: &mut dyn FnMut(&dyn Row) -> Result<()>,
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
