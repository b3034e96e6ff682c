//! The rows of the suite users in any SQL engine: a table with an integer primary key.

use super::{Database, Done, Failed, KeyValue, StoredRow, VisitRow, Writes};
use crate::work::{IdSet, Selected};
use stablebench_harness::SavedState;
use stablebench_harness::sql::{Pragmas, Prepare, Sql, Statements, first_number, number};
use stablebench_protocol::{
    Error, JournalMode, LockingMode, Result, SqliteConfig, SqliteSettings, Storage,
};
use stablebench_workload::Amount;
use stablebench_workload::sql::{Value, ValueRef};
use std::hint::black_box;
use std::ops::ControlFlow;

/// SQLite's row ids are signed.
const LARGEST_ID: u64 = i64::MAX as u64;

const CREATE: &str = "CREATE TABLE IF NOT EXISTS users (\
                      id INTEGER PRIMARY KEY AUTOINCREMENT, username TEXT NOT NULL)";

/// The table `users` of a database.
#[derive(Debug, Default)]
pub struct UsersTable<S> {
    sql: S,
    /// True if the table was created.
    created: bool,
    /// True if checks opened a connection that was closed before the message.
    opened_for_checks: bool,
}

impl<S: Sql> UsersTable<S> {
    /// Restores the table after an upgrade. The connection has the pragmas of the state.
    pub fn restore(sql: S, state: &SavedState) -> Self {
        Self { sql, created: state.sqlite_created, opened_for_checks: false }
    }

    /// Returns the connection.
    pub fn sql(&mut self) -> &mut S {
        &mut self.sql
    }

    /// Returns the state that an upgrade must keep.
    pub fn state(&self, payload_bytes: u32) -> SavedState {
        SavedState {
            payload_bytes,
            sqlite_config: self.sql.pragmas().config(),
            sqlite_created: self.created,
        }
    }

    /// The connection for checks, which record whether it was closed before.
    fn check(&mut self) -> &mut S {
        self.opened_for_checks |= !self.sql.is_open();
        &mut self.sql
    }

    /// Work: executes a prepared statement with parameters, and copies its rows.
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

/// Copies the rows of the result of the only statement.
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

impl<S: Sql> Database for UsersTable<S> {
    fn configure(&mut self, config: SqliteConfig) -> Result<SqliteSettings> {
        let before = self.sql.pragmas();
        let pragmas = Pragmas::new(config, self.sql.defaults());
        let wal = before.journal_mode == JournalMode::Wal;
        if wal && pragmas.locking_mode == LockingMode::Normal {
            // Without the exclusive lock, a file with a write-ahead log cannot be opened.
            self.sql.batch("PRAGMA journal_mode=delete")?;
        }
        let outcome = self.reopen(pragmas);
        if outcome.is_err() {
            // A journal mode can be stored in the file: set the old one at once.
            self.sql.replace_pragmas(before);
            self.open()?;
        }
        outcome
    }

    fn settings(&mut self) -> Result<SqliteSettings> {
        self.sql.settings()
    }

    fn close(&mut self) {
        self.sql.close();
    }

    fn open(&mut self) -> Result<()> {
        self.sql.open()
    }

    fn vacuum(&mut self) -> Result<()> {
        self.sql.vacuum()
    }
}

impl<S: Sql> UsersTable<S> {
    /// Opens the connection with other pragmas, creates the table, and reads the settings back.
    fn reopen(&mut self, pragmas: Pragmas) -> Result<SqliteSettings> {
        self.sql.replace_pragmas(pragmas);
        self.sql.batch(CREATE)?;
        self.created = true;
        let mut settings = self.sql.settings()?;
        if settings.page_size != pragmas.page_size && self.is_empty()? {
            self.sql.resize()?;
            settings = self.sql.settings()?;
        }
        pragmas.check(&settings, |pragma| self.sql.fixed_because(pragma))?;
        Ok(settings)
    }

    fn is_empty(&mut self) -> Result<bool> {
        first_number(&mut self.sql, "SELECT NOT EXISTS (SELECT 1 FROM users)", &[])
            .map(|empty| empty == Some(1))
    }
}

impl<S: Sql> KeyValue for UsersTable<S> {
    fn prepare(&mut self) -> Result<()> {
        self.opened_for_checks = false;
        if !self.created {
            self.sql.batch(CREATE)?;
            self.created = true;
        }
        Ok(())
    }

    fn admit(&self, ids: &IdSet, _: u32) -> Result<()> {
        if ids.last() > LARGEST_ID {
            return Err(Error::IdOverflow { largest: LARGEST_ID });
        }
        Ok(())
    }

    fn settle(&mut self) {
        if std::mem::take(&mut self.opened_for_checks) {
            self.sql.close();
        }
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        let Ok(position) = i64::try_from(position) else {
            return Ok(());
        };
        let rows = "SELECT id, username FROM users WHERE id >= ? ORDER BY id";
        self.check().prepared(&[rows], &mut |statements| {
            statements.run(0, &[Value::Integer(position)], &mut |row| {
                let Value::Integer(id) = row.copy(0)? else {
                    return Ok(ControlFlow::Continue(()));
                };
                let (id, mut next) = (id as u64, ControlFlow::Continue(()));
                row.visit(1, &mut |username| {
                    if let ValueRef::Text(payload) = username {
                        next = visit(StoredRow { position: id, id, payload });
                    }
                })?;
                Ok(next)
            })?;
            Ok(())
        })
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        let last = first_number(self.check(), "SELECT max(id) FROM users", &[])?;
        Ok(last.map(|id| id as u64))
    }

    fn rows(&mut self) -> Result<u64> {
        let rows = first_number(self.check(), "SELECT count(*) FROM users", &[])?;
        Ok(rows.unwrap_or(0) as u64)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        let settings = self.settings()?;
        Ok(settings.page_count * u64::from(settings.page_size))
    }

    fn virtual_bytes(&self) -> u64 {
        self.sql.virtual_bytes()
    }

    fn cache_bytes(&self) -> u64 {
        self.sql.cache_bytes()
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        self.sql.transaction(&mut |sql| work(&mut Writing(sql))).map_err(Failed::undone)
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        self.query("select username from users where id = ?", |query| {
            rows.try_each(|id| query(&[Value::Integer(id as i64)]))
        })
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        self.query("select id, username from users where id >= ? order by id limit ?", |query| {
            from.try_each(|id| query(&[Value::Integer(id as i64), Value::Integer(rows as i64)]))
        })
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        self.query("select id, username from users order by id limit ?", |query| {
            query(&[Value::Integer(limit as i64)])
        })
    }

    fn count(&mut self) -> Result<u64> {
        let rows = first_number(&mut self.sql, "select count(*) from users", &[])?;
        Ok(rows.unwrap_or(0) as u64)
    }

    fn reset(&mut self) -> Result<()> {
        self.sql.batch("DROP TABLE users;DELETE FROM sqlite_sequence")?;
        self.sql.batch(CREATE)
    }
}

/// The table in a transaction.
struct Writing<'a>(&'a mut dyn Prepare);

impl Writing<'_> {
    /// Executes a prepared statement for each row, with its id as one of the parameters.
    fn execute(
        &mut self,
        statement: &str,
        rows: Selected<'_>,
        mut parameters: Vec<Value>,
        id_at: usize,
    ) -> Result<()> {
        self.0.prepared(&[statement], &mut |statements| {
            rows.try_each(|id| {
                parameters[id_at] = Value::Integer(id as i64);
                statements.run(0, &parameters, &mut |_| Ok(ControlFlow::Break(()))).map(drop)
            })
        })
    }
}

impl Writes for Writing<'_> {
    fn allocated_units(&mut self) -> Result<u64> {
        let pages: u64 = number(self.0, "page_count")?;
        let free: u64 = number(self.0, "freelist_count")?;
        Ok(pages - free)
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        let parameters = vec![Value::Null, Value::Text(payload.to_owned())];
        self.execute("insert into users (id, username) values (?, ?)", rows, parameters, 0)
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        let upsert = "insert into users (id, username) values (?, ?) \
                      on conflict (id) do update set username = excluded.username";
        self.execute(upsert, rows, vec![Value::Null, Value::Text(payload.to_owned())], 0)
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        let parameters = vec![Value::Text(payload.to_owned()), Value::Null];
        self.execute("update users set username = ? where id = ?", rows, parameters, 1)
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        self.execute("delete from users where id = ?", rows, vec![Value::Null], 0)
    }
}

/// The database in stable memory with the users' table, and a database on the heap.
pub struct Databases<S, H> {
    users: UsersTable<S>,
    heap: H,
}

impl<S: Sql, H: Sql> Databases<S, H> {
    /// Restores the databases after an upgrade, which the one on the heap does not survive. Both
    /// connections have the pragmas of the state.
    pub fn restore(stable: S, heap: H, state: &SavedState) -> Self {
        Self { users: UsersTable::restore(stable, state), heap }
    }

    /// Returns the state that an upgrade must keep.
    pub fn state(&self, payload_bytes: u32) -> SavedState {
        self.users.state(payload_bytes)
    }

    /// Returns the users' table.
    pub fn users(&mut self) -> &mut dyn KeyValue {
        &mut self.users
    }

    /// Returns the connection to the database in stable memory.
    pub fn stable(&mut self) -> &mut S {
        self.users.sql()
    }

    /// Returns a database.
    pub fn sql(&mut self, storage: Storage) -> &mut dyn Sql {
        match storage {
            Storage::Stable => self.users.sql(),
            Storage::Heap => &mut self.heap,
        }
    }
}

impl<S: Sql, H: Sql> Database for Databases<S, H> {
    fn configure(&mut self, config: SqliteConfig) -> Result<SqliteSettings> {
        let settings = self.users.configure(config)?;
        self.heap.replace_pragmas(Pragmas::new(config, self.heap.defaults()));
        Ok(settings)
    }

    fn settings(&mut self) -> Result<SqliteSettings> {
        self.users.settings()
    }

    fn close(&mut self) {
        self.users.close();
    }

    fn open(&mut self) -> Result<()> {
        self.users.open()
    }

    fn vacuum(&mut self) -> Result<()> {
        self.users.vacuum()
    }
}
