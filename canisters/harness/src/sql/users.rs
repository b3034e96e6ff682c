//! The users suite's rows, for any SQL engine: a table with an integer primary key.

mod database;
mod key_value;
mod writes;

use super::{Sql, Statements};
use crate::State;
use stablebench_protocol::Result;
use stablebench_workload::Amount;
use stablebench_workload::sql::Value;
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
            if let Value::Text(text) = black_box(row.copy(column)?) {
                bytes += text.len() as u64;
            }
        }
        *found += Amount { rows: 1, bytes };
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(())
}
