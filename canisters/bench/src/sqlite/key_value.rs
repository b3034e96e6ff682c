use super::{CREATE, Sqlite, copy_rows, storage};
use ic_rusqlite::OptionalExtension;
use stablebench_harness::{Database, KeyValue, trap};
use stablebench_protocol::{Error, JournalMode, Result};
use stablebench_workload::{Amount, ContentDigest, IdSet, Selected};
use std::hint::black_box;
use std::ops::ControlFlow;

/// SQLite's row ids are signed.
const LARGEST_ID: u64 = i64::MAX as u64;

impl KeyValue for Sqlite {
    fn prepare(&mut self) -> Result<()> {
        self.opened_for_checks = false;
        if !self.created {
            self.connection.with(|connection| connection.execute(CREATE, ()))?;
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

    fn virtual_bytes(&self) -> u64 {
        storage::virtual_bytes()
    }

    fn cache_bytes(&self) -> u64 {
        self.connection.cache_bytes()
    }

    fn allocated_units(&mut self) -> Result<u64> {
        self.connection.with(|connection| storage::pages_in_use(connection))
    }

    fn begin(&mut self) -> Result<()> {
        self.connection.with(|connection| connection.execute_batch("BEGIN DEFERRED"))
    }

    fn commit(&mut self) -> Result<()> {
        self.connection.with(|connection| connection.execute_batch("COMMIT"))
    }

    fn rollback(&mut self, because: &Error) -> bool {
        if self.pragmas().journal_mode == JournalMode::Off {
            // SQLite cannot roll back without a journal; the system can.
            trap(because);
        }
        // After some errors SQLite has rolled back by itself, and what failed to open has
        // begun nothing.
        if self.connection.is_open() {
            let undone = self.connection.with(|connection| {
                if connection.is_autocommit() {
                    Ok(())
                } else {
                    connection.execute_batch("ROLLBACK")
                }
            });
            if undone.is_err() {
                trap(because);
            }
        }
        true
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.execute("insert into users (id, username) values (?, ?)", rows, |statement, id| {
            statement.execute((id, payload))
        })
    }

    fn overwrite(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        let upsert = "insert into users (id, username) values (?, ?) \
                      on conflict (id) do update set username = excluded.username";
        self.execute(upsert, rows, |statement, id| statement.execute((id, payload)))
    }

    fn update(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        self.execute("update users set username = ? where id = ?", rows, |statement, id| {
            statement.execute((payload, id))
        })
    }

    fn delete(&mut self, rows: Selected<'_>) -> Result<()> {
        self.execute("delete from users where id = ?", rows, |statement, id| {
            statement.execute([id])
        })
    }

    fn read(&mut self, rows: Selected<'_>) -> Result<Amount> {
        self.query("select username from users where id = ?", |statement| {
            let mut found = Amount::default();
            rows.try_each(|id| {
                let username: Option<String> =
                    statement.query_row([id as i64], |row| row.get(0)).optional()?;
                if let Some(username) = &username {
                    found += Amount { rows: 1, bytes: username.len() as u64 };
                }
                black_box(username);
                Ok::<_, ic_rusqlite::Error>(())
            })?;
            Ok(found)
        })
    }

    fn range(&mut self, from: Selected<'_>, rows: u64) -> Result<Amount> {
        let range = "select id, username from users where id >= ? order by id limit ?";
        self.query(range, |statement| {
            let mut found = Amount::default();
            from.try_each(|id| {
                found += copy_rows(statement.query([id as i64, rows as i64])?)?;
                Ok::<_, ic_rusqlite::Error>(())
            })?;
            Ok(found)
        })
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        self.query("select id, username from users order by id limit ?", |statement| {
            copy_rows(statement.query([limit as i64])?)
        })
    }

    fn count(&mut self) -> Result<u64> {
        let rows: i64 = self.connection.with(|connection| {
            let mut statement = connection.prepare_cached("select count(*) from users")?;
            statement.query_row((), |row| row.get(0))
        })?;
        Ok(rows as u64)
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
