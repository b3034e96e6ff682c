//! Prepared statements, through the library's own functions.

use ic_sqlite_vfs::DbError;
use ic_sqlite_vfs::db::connection::CachedStatement;
use ic_sqlite_vfs::db::statement::Statement;
use ic_sqlite_vfs::db::{self, Null, TextLen, ToSql};
use stablebench_harness::phases;
use stablebench_harness::sql::{Row, Statements};
use stablebench_protocol::{Error, Phase, Result};
use stablebench_workload::sql::{Value, changes_rows};
use std::cell::RefCell;
use std::ops::ControlFlow;

/// A connection of the library.
pub type Raw = db::connection::Connection;

/// A result of the library.
type Answer<T> = std::result::Result<T, DbError>;

/// Statements on a connection, all in one transaction or query.
pub struct Prepared<'c> {
    connection: &'c Raw,
    statements: Vec<One<'c>>,
}

struct One<'c> {
    statement: CachedStatement<'c>,
    writes: bool,
    columns: Columns,
}

/// The columns of a statement's rows, which the library does not report before they are read.
#[derive(Default)]
struct Columns {
    number: Option<usize>,
    kinds: RefCell<Vec<Kind>>,
}

/// The kind of a column's last value.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Kind {
    #[default]
    Integer,
    Real,
    Text,
    Blob,
    Null,
}

impl<'c> Prepared<'c> {
    pub fn new(connection: &'c Raw, statements: &[&str]) -> Result<Self> {
        // Each is returned to the library's cache when it is dropped.
        let prepare = |text: &&str| {
            let statement = connection.prepare_cached(text).map_err(sqlite_error)?;
            Ok(One { statement, writes: changes_rows(text), columns: Columns::default() })
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
        let One { statement, writes, columns } = &mut self.statements[statement];
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
            let next = row(&Answered { row: &answered, columns })?;
            phases::mark(Phase::Copy);
            if next.is_break() {
                return Ok(0);
            }
        }
    }
}

/// Executes a statement without rows. If the library has a function for exactly these parameters, which
/// does not copy them, it is called. Such a function binds and steps at once.
fn execute(statement: &mut Statement<'_>, parameters: &[Value]) -> Answer<()> {
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
) -> Answer<db::statement::Rows<'s, 'c>> {
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

impl Columns {
    /// Counts the columns once: the error of an index past the last one contains their number.
    fn count(&mut self, row: &db::Row<'_>) {
        if self.number.is_none()
            && let Err(DbError::ColumnOutOfRange { count, .. }) = row.get::<i64>(usize::MAX)
        {
            self.number = Some(count);
            self.kinds.borrow_mut().resize(count, Kind::default());
        }
    }
}

struct Answered<'a, 'r> {
    row: &'a db::Row<'r>,
    columns: &'a Columns,
}

impl Row for Answered<'_, '_> {
    fn columns(&self) -> usize {
        self.columns.number.unwrap_or(0)
    }

    fn copy(&self, column: usize) -> Result<Value> {
        // Most rows of a table have the kinds of the row before.
        let kind = self.columns.kinds.borrow().get(column).copied().unwrap_or_default();
        match self.copy_as(kind, column) {
            Err(DbError::TypeMismatch { actual, .. }) => {
                let kind = Kind::named(actual);
                if let Some(known) = self.columns.kinds.borrow_mut().get_mut(column) {
                    *known = kind;
                }
                self.copy_as(kind, column)
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

impl Answered<'_, '_> {
    fn copy_as(&self, kind: Kind, column: usize) -> Answer<Value> {
        match kind {
            Kind::Integer => self.row.get(column).map(Value::Integer),
            // Its bits identify the number.
            Kind::Real => {
                self.row.get(column).map(|number: f64| Value::Integer(number.to_bits() as i64))
            }
            Kind::Text => self.row.get(column).map(Value::Text),
            Kind::Blob => self.row.get(column).map(Value::Blob),
            Kind::Null => match self.row.get::<Option<i64>>(column)? {
                None => Ok(Value::Null),
                Some(number) => Ok(Value::Integer(number)),
            },
        }
    }
}

impl Kind {
    /// Returns the kind by the library's word for it.
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
pub fn sqlite_error(error: DbError) -> Error {
    Error::Sqlite { message: error.to_string() }
}
