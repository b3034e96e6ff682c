//! SQLite through `ic-rusqlite`: a table with an integer primary key.

mod connection;
mod database;
mod settings;

use connection::Connection;
use ic_rusqlite::OptionalExtension;
use stablebench_harness::{Database, KeyValue, Pragmas, State};
use stablebench_protocol::{Error, JournalMode, Result};
use stablebench_workload::{ContentDigest, Ids};
use std::hint::black_box;
use std::ops::ControlFlow;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS users (\
                      id INTEGER PRIMARY KEY AUTOINCREMENT, username TEXT NOT NULL)";

/// SQLite's row ids are signed.
const LARGEST_ID: u64 = i64::MAX as u64;

/// The engine.
#[derive(Default)]
pub struct Sqlite {
    connection: Connection,
    /// Whether the table was created.
    created: bool,
    /// Whether checks opened a connection that the message found closed.
    opened_for_checks: bool,
}

impl Sqlite {
    /// As it was before an upgrade.
    pub fn restore(state: &State) -> Self {
        Self {
            connection: Connection::new(Pragmas::new(state.sqlite_config)),
            created: state.sqlite_created,
            opened_for_checks: false,
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

    /// For checks: notes whether the connection was closed before.
    fn check<T>(
        &mut self,
        check: impl FnOnce(&mut ic_rusqlite::Connection) -> ic_rusqlite::Result<T>,
    ) -> Result<T> {
        self.opened_for_checks |= !self.connection.is_open();
        self.connection.with(check)
    }

    /// For work: everything in one transaction with one prepared statement.
    fn transact(
        &mut self,
        sql: &str,
        ids: Ids,
        execute: impl Fn(&mut ic_rusqlite::CachedStatement<'_>, i64) -> ic_rusqlite::Result<usize>,
    ) -> Result<()> {
        let outcome = self.connection.with(|connection| {
            let transaction = connection.transaction()?;
            {
                let mut statement = transaction.prepare_cached(sql)?;
                for id in ids.iter() {
                    execute(&mut statement, id as i64)?;
                }
            }
            transaction.commit()
        });
        if let Err(error) = &outcome
            && self.pragmas().journal_mode == JournalMode::Off
        {
            // SQLite cannot roll back without a journal; the system can.
            ic_cdk::api::trap(error.to_string());
        }
        outcome
    }
}

impl KeyValue for Sqlite {
    fn prepare(&mut self) -> Result<()> {
        self.opened_for_checks = false;
        if !self.created {
            self.connection.with(|connection| connection.execute(CREATE, ()))?;
            self.created = true;
        }
        Ok(())
    }

    fn admit(&self, ids: Ids, _: u32) -> Result<()> {
        if ids.last() > LARGEST_ID {
            return Err(Error::IdOverflow { largest: LARGEST_ID });
        }
        Ok(())
    }

    fn settle(&mut self) {
        if std::mem::take(&mut self.opened_for_checks) {
            self.connection.close();
        }
    }

    fn walk(&mut self, from: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        let Ok(from) = i64::try_from(from) else {
            return Ok(());
        };
        self.check(|connection| {
            let mut statement =
                connection.prepare_cached("SELECT id FROM users WHERE id >= ? ORDER BY id")?;
            let mut rows = statement.query([from])?;
            while let Some(row) = rows.next()? {
                if visit(row.get::<_, i64>(0)? as u64).is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        let last = self.check(|connection| {
            connection
                .query_row("SELECT max(id) FROM users", (), |row| row.get::<_, Option<i64>>(0))
        })?;
        Ok(last.map(|id| id as u64))
    }

    fn rows(&mut self) -> Result<u64> {
        self.check(|connection| {
            connection.query_row("SELECT count(*) FROM users", (), |row| row.get::<_, i64>(0))
        })
        .map(|rows| rows as u64)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        let settings = self.settings()?;
        Ok(settings.page_count * u64::from(settings.page_size))
    }

    fn insert(&mut self, ids: Ids, payload: &str) -> Result<()> {
        self.transact("insert into users (id, username) values (?, ?)", ids, |statement, id| {
            statement.execute((id, payload))
        })
    }

    fn read(&mut self, ids: Ids) -> Result<u64> {
        self.connection.with(|connection| {
            let mut statement =
                connection.prepare_cached("select username from users where id = ?")?;
            let mut found = 0;
            for id in ids.iter() {
                let username: Option<String> =
                    statement.query_row([id as i64], |row| row.get(0)).optional()?;
                found += u64::from(username.is_some());
                black_box(username);
            }
            Ok(found)
        })
    }

    fn scan(&mut self, limit: u64) -> Result<u64> {
        self.connection.with(|connection| {
            let mut statement =
                connection.prepare_cached("select id, username from users order by id limit ?")?;
            let mut rows = statement.query([limit as i64])?;
            let mut read = 0;
            while let Some(row) = rows.next()? {
                black_box((row.get::<_, i64>(0)?, row.get::<_, String>(1)?));
                read += 1;
            }
            Ok(read)
        })
    }

    fn update(&mut self, ids: Ids, payload: &str) -> Result<()> {
        self.transact("update users set username = ? where id = ?", ids, |statement, id| {
            statement.execute((payload, id))
        })
    }

    fn delete(&mut self, ids: Ids) -> Result<()> {
        self.transact("delete from users where id = ?", ids, |statement, id| {
            statement.execute([id])
        })
    }

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let Ok(position) = i64::try_from(position) else {
            return Ok(None);
        };
        self.connection.with(|connection| {
            let mut statement = connection
                .prepare_cached("SELECT id, username FROM users WHERE id >= ? ORDER BY id")?;
            let mut rows = statement.query([position])?;
            let mut left = limit;
            while let Some(row) = rows.next()? {
                let id = row.get::<_, i64>(0)? as u64;
                if left == 0 {
                    return Ok(Some(id));
                }
                left -= 1;
                digest.add(id, row.get_ref(1)?.as_bytes()?);
            }
            Ok(None)
        })
    }

    fn reset(&mut self) -> Result<()> {
        self.connection.with(|connection| {
            connection.execute_batch("DROP TABLE users;DELETE FROM sqlite_sequence")?;
            connection.execute(CREATE, ())?;
            Ok(())
        })
    }
}
