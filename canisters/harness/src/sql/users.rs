//! The users suite's rows, for any SQL engine: a table with an integer primary key.

mod database;
mod key_value;

use super::{Sql, Statements};
use crate::State;
use stablebench_protocol::Result;
use stablebench_workload::sql::{Value, ValueRef};
use stablebench_workload::{Amount, Selected};
use std::hint::black_box;
use std::ops::ControlFlow;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS users (\
                      id INTEGER PRIMARY KEY AUTOINCREMENT, username TEXT NOT NULL)";

/// The table `users` of a database.
#[derive(Debug, Default)]
pub struct Users<S> {
    sql: S,
    /// Whether the table was created.
    created: bool,
    /// Whether checks opened a connection that the message found closed.
    opened_for_checks: bool,
}

impl<S: Sql> Users<S> {
    /// As it was before an upgrade; the connection has the pragmas of then.
    pub fn restore(sql: S, state: &State) -> Self {
        Self { sql, created: state.sqlite_created, opened_for_checks: false }
    }

    /// The connection.
    pub fn sql(&mut self) -> &mut S {
        &mut self.sql
    }

    /// What an upgrade must keep, beside the length of payloads.
    pub fn state(&self, payload_bytes: u32) -> State {
        State {
            payload_bytes,
            sqlite_config: self.sql.pragmas().config(),
            sqlite_created: self.created,
        }
    }

    /// For checks: notes whether the connection was closed before.
    fn check(&mut self) -> &mut S {
        self.opened_for_checks |= !self.sql.is_open();
        &mut self.sql
    }

    /// For work: one prepared statement, executed for each row with its id in one place.
    fn execute(
        &mut self,
        statement: &str,
        rows: Selected<'_>,
        mut parameters: Vec<Value>,
        id_at: usize,
    ) -> Result<()> {
        self.sql.prepared(&[statement], &mut |statements| {
            rows.try_each(|id| {
                parameters[id_at] = Value::Integer(id as i64);
                statements.run(0, &parameters, &mut |_| Ok(ControlFlow::Break(()))).map(drop)
            })
        })
    }

    /// For work: a prepared statement, executed with some parameters; its rows are copied.
    fn query(
        &mut self,
        statement: &str,
        mut each: impl FnMut(&mut dyn FnMut(&[Value]) -> Result<()>) -> Result<()>,
    ) -> Result<Amount> {
        let mut found = Amount::default();
        self.sql.prepared(&[statement], &mut |statements| {
            each(&mut |parameters| copy_rows(statements, parameters, &mut found))
        })?;
        Ok(found)
    }
}

/// Copies the rows that the only statement answers.
fn copy_rows(
    statements: &mut dyn Statements,
    parameters: &[Value],
    found: &mut Amount,
) -> Result<()> {
    statements.run(0, parameters, &mut |row| {
        let mut bytes = 0;
        for column in 0..row.columns() {
            match row.get(column)? {
                ValueRef::Text(text) => {
                    bytes += text.len() as u64;
                    // As a String, which has been looked through.
                    drop(black_box(String::from_utf8(text.to_vec())));
                }
                other => drop(black_box(other)),
            }
        }
        *found += Amount { rows: 1, bytes };
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(())
}
