//! Prepared statements of a connection.

use super::connection::sqlite_error;
use ic_rusqlite::types::{Null, ValueRef as Got};
use ic_rusqlite::{CachedStatement, Connection, Statement};
use stablebench_harness::sql::{Row, Statements};
use stablebench_protocol::Result;
use stablebench_workload::sql::{Value, ValueRef};
use std::ops::ControlFlow;

/// Statements that a connection keeps prepared: more than any suite has.
pub const CACHED: usize = 64;

pub struct Prepared<'c>(Vec<One<'c>>);

struct One<'c> {
    statement: CachedStatement<'c>,
    writes: bool,
}

impl<'c> Prepared<'c> {
    pub fn new(connection: &'c Connection, statements: &[&str]) -> ic_rusqlite::Result<Self> {
        // Each goes back to the cache once it is dropped.
        let prepare = |text: &&str| {
            let statement = connection.prepare_cached(text)?;
            let writes = statement.column_count() == 0;
            Ok(One { statement, writes })
        };
        statements.iter().map(prepare).collect::<ic_rusqlite::Result<_>>().map(Self)
    }
}

impl Statements for Prepared<'_> {
    fn writes(&self, statement: usize) -> bool {
        self.0[statement].writes
    }

    fn run(
        &mut self,
        statement: usize,
        parameters: &[Value],
        row: &mut dyn FnMut(&dyn Row) -> Result<ControlFlow<()>>,
    ) -> Result<u64> {
        let One { statement, writes } = &mut self.0[statement];
        let statement: &mut Statement<'_> = statement;
        if *writes {
            return execute(statement, parameters).map_err(sqlite_error);
        }
        bind(statement, parameters).map_err(sqlite_error)?;
        let mut rows = statement.raw_query();
        while let Some(answered) = rows.next().map_err(sqlite_error)? {
            if row(&Answered(answered))?.is_break() {
                break;
            }
        }
        Ok(0)
    }
}

#[inline]
fn execute(statement: &mut Statement<'_>, parameters: &[Value]) -> ic_rusqlite::Result<u64> {
    bind(statement, parameters)?;
    statement.raw_execute().map(|changed| changed as u64)
}

#[inline]
fn bind(statement: &mut Statement<'_>, parameters: &[Value]) -> ic_rusqlite::Result<()> {
    for (place, parameter) in (1..).zip(parameters) {
        match parameter {
            Value::Null => statement.raw_bind_parameter(place, Null),
            Value::Integer(number) => statement.raw_bind_parameter(place, number),
            Value::Text(text) => statement.raw_bind_parameter(place, text.as_str()),
            Value::Blob(bytes) => statement.raw_bind_parameter(place, bytes.as_slice()),
        }?;
    }
    Ok(())
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
            // Its bits say which number it is.
            Got::Real(number) => ValueRef::Integer(number.to_bits() as i64),
            Got::Text(text) => ValueRef::Text(text),
            Got::Blob(bytes) => ValueRef::Blob(bytes),
        })
    }
}
