use super::{CREATE, Users};
use crate::sql::{Sql, first_number};
use crate::{Database, Pragmas};
use stablebench_protocol::{JournalMode, LockingMode, Result, SqliteSettings};

impl<S: Sql> Database for Users<S> {
    fn configure(&mut self, pragmas: Pragmas) -> Result<SqliteSettings> {
        let before = self.sql.pragmas();
        let wal = before.journal_mode == JournalMode::Wal;
        if wal && pragmas.locking_mode == LockingMode::Normal {
            // Without the exclusive lock, a file with a write-ahead log cannot be opened.
            self.sql.batch("PRAGMA journal_mode=delete")?;
        }
        let outcome = self.reopen(pragmas);
        if outcome.is_err() {
            // A journal mode can be kept in the file: set the old one at once.
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
        self.sql.batch("VACUUM")
    }
}

impl<S: Sql> Users<S> {
    /// Opens the connection with other pragmas, creates the table, and reads back.
    fn reopen(&mut self, pragmas: Pragmas) -> Result<SqliteSettings> {
        self.sql.replace_pragmas(pragmas);
        self.sql.batch(CREATE)?;
        self.created = true;
        let mut settings = self.sql.settings()?;
        if settings.page_size != pragmas.page_size && self.is_empty()? {
            self.sql.batch(&pragmas.resize_statements())?;
            settings = self.sql.settings()?;
        }
        pragmas.check(&settings)?;
        Ok(settings)
    }

    fn is_empty(&mut self) -> Result<bool> {
        first_number(&mut self.sql, "SELECT NOT EXISTS (SELECT 1 FROM users)", &[])
            .map(|empty| empty == Some(1))
    }
}
