//! Prepared statements of a connection of `rusqlite`, also for other builds of SQLite.

use ic_rusqlite::types::{Null, ValueRef as Got};
use ic_rusqlite::{CachedStatement, Connection, Statement};
use stablebench_harness::phases;
use stablebench_harness::sql::{Row, Statements};
use stablebench_protocol::{Error, Phase, Result};
use stablebench_workload::sql::{Value, ValueRef};
use std::ops::ControlFlow;

/// The size of a connection's cache of prepared statements: more than any suite has.
pub const CACHED: usize = 64;

pub struct Prepared<'c>(Vec<One<'c>>);

struct One<'c> {
    statement: CachedStatement<'c>,
    writes: bool,
}

impl<'c> Prepared<'c> {
    pub fn new(connection: &'c Connection, statements: &[&str]) -> ic_rusqlite::Result<Self> {
        // Each is returned to the cache when it is dropped.
        let prepare = |text: &&str| {
            let statement = connection.prepare_cached(text)?;
            let writes = statement.column_count() == 0;
            Ok(One { statement, writes })
        };
        let prepared = statements.iter().map(prepare).collect::<ic_rusqlite::Result<_>>().map(Self);
        phases::mark(Phase::Prepare);
        prepared
    }
}

impl Statements for Prepared<'_> {
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
        loop {
            let answered = rows.next().map_err(sqlite_error)?;
            phases::mark(Phase::Step);
            let Some(answered) = answered else {
                return Ok(0);
            };
            let next = row(&Answered(answered))?;
            phases::mark(Phase::Copy);
            if next.is_break() {
                return Ok(0);
            }
        }
    }
}

#[inline]
fn execute(statement: &mut Statement<'_>, parameters: &[Value]) -> ic_rusqlite::Result<u64> {
    bind(statement, parameters)?;
    let changed = statement.raw_execute()?;
    phases::mark(Phase::Step);
    Ok(changed as u64)
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
    phases::mark(Phase::Bind);
    Ok(())
}

struct Answered<'a, 'r>(&'a ic_rusqlite::Row<'r>);

impl Row for Answered<'_, '_> {
    fn columns(&self) -> usize {
        self.0.as_ref().column_count()
    }

    fn copy(&self, column: usize) -> Result<Value> {
        Ok(match self.get(column)? {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Integer(number),
            // Like `Row::get`, which checks UTF-8.
            ValueRef::Text(text) => match String::from_utf8(text.to_vec()) {
                Ok(text) => Value::Text(text),
                Err(error) => return Err(Error::Sqlite { message: error.to_string() }),
            },
            ValueRef::Blob(bytes) => Value::Blob(bytes.to_vec()),
        })
    }

    fn text_bytes(&self, column: usize) -> Result<u64> {
        let text = self.0.get_ref(column).and_then(|got| Ok(got.as_str()?));
        text.map(|text| text.len() as u64).map_err(sqlite_error)
    }

    fn visit(&self, column: usize, visit: &mut dyn FnMut(ValueRef<'_>)) -> Result<()> {
        visit(self.get(column)?);
        Ok(())
    }
}

impl Answered<'_, '_> {
    fn get(&self, column: usize) -> Result<ValueRef<'_>> {
        Ok(match self.0.get_ref(column).map_err(sqlite_error)? {
            Got::Null => ValueRef::Null,
            Got::Integer(number) => ValueRef::Integer(number),
            // Its bits identify the number.
            Got::Real(number) => ValueRef::Integer(number.to_bits() as i64),
            Got::Text(text) => ValueRef::Text(text),
            Got::Blob(bytes) => ValueRef::Blob(bytes),
        })
    }
}

/// SQLite's error as one of the protocol.
pub fn sqlite_error(error: ic_rusqlite::Error) -> Error {
    Error::Sqlite { message: error.to_string() }
}
