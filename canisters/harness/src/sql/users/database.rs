use super::{CREATE, Users};
use crate::sql::{Sql, first_number};
use crate::{Database, Pragmas};
use stablebench_protocol::{JournalMode, LockingMode, Result, SqliteConfig, SqliteSettings};

impl<S: Sql> Database for Users<S> {
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
        self.sql.vacuum()
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
            self.sql.resize()?;
            settings = self.sql.settings()?;
        }
        pragmas.check(&settings, |pragma| self.sql.fixes(pragma))?;
        Ok(settings)
    }

    fn is_empty(&mut self) -> Result<bool> {
        first_number(&mut self.sql, "SELECT NOT EXISTS (SELECT 1 FROM users)", &[])
            .map(|empty| empty == Some(1))
    }
}
