//! The one connection, opened with the pragmas in one order.
//!
//! `ic-rusqlite` keeps the pragmas for a connection in a `HashMap`, whose order is
//! not fixed, and opens the connection when it is first used. Here it is given no
//! pragmas, and they are issued on the fresh connection.

use super::storage;
use ic_rusqlite::{ConnectionConfig, with_connection};
use stablebench_harness::Pragmas;
use stablebench_protocol::{Error, Result};

/// The connection, open or not.
pub struct Connection {
    pragmas: Pragmas,
    open: bool,
}

impl Default for Connection {
    fn default() -> Self {
        Self::new(Pragmas::DEFAULT)
    }
}

impl Connection {
    /// A closed connection.
    pub fn new(pragmas: Pragmas) -> Self {
        Self { pragmas, open: false }
    }

    /// What the connection is opened with.
    pub fn pragmas(&self) -> Pragmas {
        self.pragmas
    }

    /// Whether the connection is open.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// Runs `work` on the connection, which is opened where it is closed.
    pub fn with<T>(
        &mut self,
        work: impl FnOnce(&mut ic_rusqlite::Connection) -> ic_rusqlite::Result<T>,
    ) -> Result<T> {
        if !self.open {
            self.open()?;
        }
        with_connection(|mut connection| work(&mut connection)).map_err(sqlite_error)
    }

    /// Bytes of heap of the page cache; none where the connection is closed.
    pub fn cache_bytes(&self) -> u64 {
        // Asking a connection that is closed would open it.
        if self.open { with_connection(|connection| storage::cache_bytes(&connection)) } else { 0 }
    }

    /// Closes the connection.
    pub fn close(&mut self) {
        // Closing one that was never open would open it first.
        if self.open {
            ic_rusqlite::close_connection();
            self.open = false;
        }
    }

    /// Closes the connection, and opens the next one with other pragmas.
    pub fn replace_pragmas(&mut self, pragmas: Pragmas) {
        self.close();
        self.pragmas = pragmas;
    }

    fn open(&mut self) -> Result<()> {
        let mut config = ConnectionConfig::new();
        config.pragma_settings.clear();
        ic_rusqlite::set_connection_config(config);
        self.open = true;
        let statements = self.pragmas.statements();
        let outcome = with_connection(|connection| connection.execute_batch(&statements));
        outcome.map_err(|error| {
            self.close();
            sqlite_error(error)
        })
    }
}

/// SQLite's error in the protocol's words.
pub fn sqlite_error(error: ic_rusqlite::Error) -> Error {
    Error::Sqlite { message: error.to_string() }
}
