//! SQLite for the suites with tables of their own: the database in stable memory, or one
//! on the heap.

use super::connection::sqlite_error;
use super::settings::Report;
use super::{Sqlite, storage};
use ic_rusqlite::types::{Null, ValueRef as Got};
use ic_rusqlite::{CachedStatement, Connection};
use stablebench_harness::sql::{Row, Statements};
use stablebench_harness::{Pragmas, Sql};
use stablebench_protocol::{Result, SqliteSettings};
use stablebench_workload::sql::{Value, ValueRef};

/// `:memory:`, with the pragmas that the other connection has.
pub struct Heap(Connection);

impl Heap {
    pub fn open(pragmas: &Pragmas) -> Result<Self> {
        let open = || {
            let connection = Connection::open_in_memory()?;
            connection.execute_batch(&pragmas.statements())?;
            Ok(connection)
        };
        open().map(Self).map_err(sqlite_error)
    }
}

impl Sql for Heap {
    fn batch(&mut self, statements: &str) -> Result<()> {
        self.0.execute_batch(statements).map_err(sqlite_error)
    }

    fn prepared(
        &mut self,
        statements: &[&str],
        work: &mut dyn FnMut(&mut dyn Statements) -> Result<()>,
    ) -> Result<()> {
        work(&mut Prepared::new(&self.0, statements).map_err(sqlite_error)?)
    }

    fn settings(&mut self) -> Result<SqliteSettings> {
        Report::read(&self.0).map_err(sqlite_error)?.interpret()
    }

    fn virtual_bytes(&self) -> u64 {
        0
    }

    fn cache_bytes(&self) -> u64 {
        storage::cache_bytes(&self.0)
    }
}

impl Sql for Sqlite {
    fn batch(&mut self, statements: &str) -> Result<()> {
        self.connection.with(|connection| connection.execute_batch(statements))
    }

    fn prepared(
        &mut self,
        statements: &[&str],
        work: &mut dyn FnMut(&mut dyn Statements) -> Result<()>,
    ) -> Result<()> {
        self.connection.with(|connection| {
            // The work's errors are not SQLite's.
            Ok(work(&mut Prepared::new(connection, statements)?))
        })?
    }

    fn settings(&mut self) -> Result<SqliteSettings> {
        self.connection.with(|connection| Report::read(connection))?.interpret()
    }

    fn virtual_bytes(&self) -> u64 {
        storage::virtual_bytes()
    }

    fn cache_bytes(&self) -> u64 {
        self.connection.cache_bytes()
    }
}

struct Prepared<'c>(Vec<CachedStatement<'c>>);

impl<'c> Prepared<'c> {
    fn new(connection: &'c Connection, statements: &[&str]) -> ic_rusqlite::Result<Self> {
        // Each is in the cache once it is dropped.
        connection.set_prepared_statement_cache_capacity(CACHED);
        statements
            .iter()
            .map(|statement| connection.prepare_cached(statement))
            .collect::<ic_rusqlite::Result<_>>()
            .map(Self)
    }
}

/// Statements kept prepared: more than any suite has.
const CACHED: usize = 64;

impl Statements for Prepared<'_> {
    fn writes(&self, statement: usize) -> bool {
        self.0[statement].column_count() == 0
    }

    fn run(
        &mut self,
        statement: usize,
        parameters: &[Value],
        row: &mut dyn FnMut(&dyn Row) -> Result<()>,
    ) -> Result<u64> {
        let statement = &mut self.0[statement];
        for (place, parameter) in (1..).zip(parameters) {
            bind(statement, place, parameter).map_err(sqlite_error)?;
        }
        if statement.column_count() == 0 {
            let changed = statement.raw_execute().map_err(sqlite_error)?;
            return Ok(changed as u64);
        }
        let mut rows = statement.raw_query();
        while let Some(answered) = rows.next().map_err(sqlite_error)? {
            row(&Answered(answered))?;
        }
        Ok(0)
    }
}

fn bind(
    statement: &mut CachedStatement<'_>,
    place: usize,
    value: &Value,
) -> ic_rusqlite::Result<()> {
    match value {
        Value::Null => statement.raw_bind_parameter(place, Null),
        Value::Integer(number) => statement.raw_bind_parameter(place, number),
        Value::Text(text) => statement.raw_bind_parameter(place, text.as_str()),
        Value::Blob(bytes) => statement.raw_bind_parameter(place, bytes.as_slice()),
    }
}

struct Answered<'a, 'r>(&'a ic_rusqlite::Row<'r>);

impl Row for Answered<'_, '_> {
    fn columns(&self) -> usize {
        self.0.as_ref().column_count()
    }

    fn get(&self, column: usize) -> Result<ValueRef<'_>> {
        Ok(match self.0.get_ref(column).map_err(sqlite_error)? {
            Got::Null => ValueRef::Null,
            Got::Integer(number) => ValueRef::Integer(number),
            // No suite has such columns; its bits are a number as well.
            Got::Real(number) => ValueRef::Integer(number.to_bits() as i64),
            Got::Text(text) => ValueRef::Text(text),
            Got::Blob(bytes) => ValueRef::Blob(bytes),
        })
    }
}
