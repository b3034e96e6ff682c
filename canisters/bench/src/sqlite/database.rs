use super::settings::Report;
use super::{CREATE, Sqlite};
use stablebench_harness::{Database, Pragmas};
use stablebench_protocol::{JournalMode, LockingMode, Result, SqliteSettings};

impl Database for Sqlite {
    fn configure(&mut self, pragmas: Pragmas) -> Result<SqliteSettings> {
        let before = self.pragmas();
        let wal = before.journal_mode == JournalMode::Wal;
        if wal && pragmas.locking_mode == LockingMode::Normal {
            // Without the exclusive lock, a file with a write-ahead log cannot be opened.
            self.connection
                .with(|connection| connection.execute_batch("PRAGMA journal_mode=delete"))?;
        }
        let outcome = self.reopen(pragmas);
        if outcome.is_err() {
            // A journal mode can be kept in the file: set the old one at once.
            self.connection.replace_pragmas(before);
            self.open()?;
        }
        outcome
    }

    fn settings(&mut self) -> Result<SqliteSettings> {
        self.connection.with(|connection| Report::read(connection))?.interpret()
    }

    fn close(&mut self) {
        Self::close(self);
    }

    fn open(&mut self) -> Result<()> {
        self.connection.with(|_| Ok(()))
    }

    fn vacuum(&mut self) -> Result<()> {
        self.connection.with(|connection| connection.execute_batch("VACUUM"))
    }
}

impl Sqlite {
    /// Opens the connection with other pragmas, creates the table, and reads back.
    fn reopen(&mut self, pragmas: Pragmas) -> Result<SqliteSettings> {
        self.connection.replace_pragmas(pragmas);
        self.heap = None;
        self.connection.with(|connection| connection.execute(CREATE, ()))?;
        self.created = true;
        let mut settings = self.settings()?;
        if settings.page_size != pragmas.page_size && self.is_empty()? {
            let statements = pragmas.resize_statements();
            self.connection.with(|connection| connection.execute_batch(&statements))?;
            settings = self.settings()?;
        }
        pragmas.check(&settings)?;
        Ok(settings)
    }

    fn is_empty(&mut self) -> Result<bool> {
        self.connection.with(|connection| {
            connection.query_row("SELECT NOT EXISTS (SELECT 1 FROM users)", (), |row| row.get(0))
        })
    }
}
