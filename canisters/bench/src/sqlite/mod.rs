//! SQLite through `ic-rusqlite`: a table with an integer primary key.

mod connection;
mod database;
mod key_value;
mod settings;
mod sql;
mod storage;

use connection::Connection;
use sql::Heap;
use stablebench_harness::{Pragmas, Sql, State};
use stablebench_protocol::{Result, Storage};
use stablebench_workload::{Amount, Selected};
use std::hint::black_box;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS users (\
                      id INTEGER PRIMARY KEY AUTOINCREMENT, username TEXT NOT NULL)";

/// The engine.
#[derive(Default)]
pub struct Sqlite {
    connection: Connection,
    /// Whether the table was created.
    created: bool,
    /// Whether checks opened a connection that the message found closed.
    opened_for_checks: bool,
    /// The database on the heap, once it is used.
    heap: Option<Heap>,
}

impl Sqlite {
    /// As it was before an upgrade.
    pub fn restore(state: &State) -> Self {
        Self {
            connection: Connection::new(Pragmas::new(state.sqlite_config)),
            created: state.sqlite_created,
            opened_for_checks: false,
            heap: None,
        }
    }

    pub fn pragmas(&self) -> Pragmas {
        self.connection.pragmas()
    }

    pub fn is_created(&self) -> bool {
        self.created
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        self.connection.close();
    }

    /// The database that is there, or on the heap.
    pub fn database(&mut self, storage: Storage) -> Result<&mut dyn Sql> {
        if storage == Storage::Stable {
            return Ok(self);
        }
        let heap = match self.heap.take() {
            Some(heap) => heap,
            None => Heap::open(&self.pragmas())?,
        };
        Ok(self.heap.insert(heap))
    }

    /// For checks: notes whether the connection was closed before.
    fn check<T>(
        &mut self,
        check: impl FnOnce(&mut ic_rusqlite::Connection) -> ic_rusqlite::Result<T>,
    ) -> Result<T> {
        self.opened_for_checks |= !self.connection.is_open();
        self.connection.with(check)
    }

    /// For work: one prepared statement, executed for each row.
    fn execute(
        &mut self,
        sql: &str,
        rows: Selected<'_>,
        execute: impl Fn(&mut ic_rusqlite::CachedStatement<'_>, i64) -> ic_rusqlite::Result<usize>,
    ) -> Result<()> {
        self.connection.with(|connection| {
            let mut statement = connection.prepare_cached(sql)?;
            rows.try_each(|id| execute(&mut statement, id as i64).map(drop))
        })
    }

    /// For work: rows of ids and texts, which a prepared statement answers for each value.
    fn query(
        &mut self,
        sql: &str,
        query: impl FnOnce(&mut ic_rusqlite::CachedStatement<'_>) -> ic_rusqlite::Result<Amount>,
    ) -> Result<Amount> {
        self.connection.with(|connection| query(&mut connection.prepare_cached(sql)?))
    }
}

/// Copies ids and texts.
fn copy_rows(mut rows: ic_rusqlite::Rows<'_>) -> ic_rusqlite::Result<Amount> {
    let mut read = Amount::default();
    while let Some(row) = rows.next()? {
        let (id, username) = (row.get::<_, i64>(0)?, row.get::<_, String>(1)?);
        read += Amount { rows: 1, bytes: username.len() as u64 };
        black_box((id, username));
    }
    Ok(read)
}
