use super::writes::Writing;
use super::{CREATE, Users};
use crate::sql::{Sql, first_number};
use crate::{Database, Done, Failed, KeyValue, Writes};
use stablebench_protocol::{Error, Result};
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
                Ok(match row.copy(0)? {
                    Value::Integer(id) => visit(id as u64),
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
                let Value::Integer(id) = row.copy(0)? else {
                    return Ok(ControlFlow::Continue(()));
                };
                if left == 0 {
                    next = Some(id as u64);
                    return Ok(ControlFlow::Break(()));
                }
                left -= 1;
                row.look(1, &mut |username| {
                    if let ValueRef::Text(text) = username {
                        digest.add(id as u64, text);
                    }
                })?;
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
