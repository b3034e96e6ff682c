use super::{CREATE, Users};
use crate::sql::{Sql, first_number, number};
use crate::{Database, KeyValue, trap};
use stablebench_protocol::{Error, JournalMode, Result};
use stablebench_workload::sql::{Value, ValueRef};
use stablebench_workload::{Amount, ContentDigest, IdSet, Selected};
use std::ops::ControlFlow;

/// SQLite's row ids are signed.
const LARGEST_ID: u64 = i64::MAX as u64;

impl<S: Sql> KeyValue for Users<S> {
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

    fn walk(&mut self, from: u64, visit: &mut dyn FnMut(u64) -> ControlFlow<()>) -> Result<()> {
        let Ok(from) = i64::try_from(from) else {
            return Ok(());
        };
        let ids = "SELECT id FROM users WHERE id >= ? ORDER BY id";
        self.check().prepared(&[ids], &mut |statements| {
            statements.run(0, &[Value::Integer(from)], &mut |row| {
                Ok(match row.get(0)? {
                    ValueRef::Integer(id) => visit(id as u64),
                    _ => ControlFlow::Continue(()),
                })
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

    fn allocated_units(&mut self) -> Result<u64> {
        let pages: u64 = number(&mut self.sql, "page_count")?;
        let free: u64 = number(&mut self.sql, "freelist_count")?;
        Ok(pages - free)
    }

    fn begin(&mut self) -> Result<()> {
        self.sql.batch("BEGIN DEFERRED")
    }

    fn commit(&mut self) -> Result<()> {
        self.sql.batch("COMMIT")
    }

    fn rollback(&mut self, because: &Error) -> bool {
        if self.sql.pragmas().journal_mode == JournalMode::Off {
            // SQLite cannot roll back without a journal; the system can.
            trap(because);
        }
        // After some errors SQLite has rolled back by itself, and what failed to open has
        // begun nothing.
        if self.sql.is_open() && !self.sql.is_autocommit() && self.sql.batch("ROLLBACK").is_err() {
            trap(because);
        }
        true
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

    fn digest(
        &mut self,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let Ok(position) = i64::try_from(position) else {
            return Ok(None);
        };
        let rows = "SELECT id, username FROM users WHERE id >= ? ORDER BY id";
        let (mut left, mut next) = (limit, None);
        self.sql.prepared(&[rows], &mut |statements| {
            statements.run(0, &[Value::Integer(position)], &mut |row| {
                let (ValueRef::Integer(id), ValueRef::Text(text)) = (row.get(0)?, row.get(1)?)
                else {
                    return Ok(ControlFlow::Continue(()));
                };
                if left == 0 {
                    next = Some(id as u64);
                    return Ok(ControlFlow::Break(()));
                }
                left -= 1;
                digest.add(id as u64, text);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(())
        })?;
        Ok(next)
    }

    fn reset(&mut self) -> Result<()> {
        self.sql.batch("DROP TABLE users;DELETE FROM sqlite_sequence")?;
        self.sql.batch(CREATE)
    }
}
