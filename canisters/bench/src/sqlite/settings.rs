use ic_rusqlite::types::ValueRef;
use ic_rusqlite::{Connection, Result as SqlResult};
use stablebench_harness::Keyword;
use stablebench_protocol::{Error, Result, SqliteSettings};

/// What SQLite reports, as text.
pub struct Report {
    journal_mode: String,
    synchronous: String,
    locking_mode: String,
    temp_store: String,
    page_size: String,
    cache_size: String,
    auto_vacuum: String,
    page_count: String,
    freelist_count: String,
}

impl Report {
    /// Asks the connection.
    pub fn read(connection: &Connection) -> SqlResult<Self> {
        let pragma = |name: &str| {
            connection.pragma_query_value(None, name, |row| {
                Ok(match row.get_ref(0)? {
                    ValueRef::Integer(number) => number.to_string(),
                    ValueRef::Text(text) => String::from_utf8_lossy(text).into_owned(),
                    other => format!("{other:?}"),
                })
            })
        };
        Ok(Self {
            journal_mode: pragma("journal_mode")?,
            synchronous: pragma("synchronous")?,
            locking_mode: pragma("locking_mode")?,
            temp_store: pragma("temp_store")?,
            page_size: pragma("page_size")?,
            cache_size: pragma("cache_size")?,
            auto_vacuum: pragma("auto_vacuum")?,
            page_count: pragma("page_count")?,
            freelist_count: pragma("freelist_count")?,
        })
    }

    /// What the text means.
    pub fn interpret(&self) -> Result<SqliteSettings> {
        Ok(SqliteSettings {
            journal_mode: Keyword::from_report(&self.journal_mode)?,
            synchronous: Keyword::from_report(&self.synchronous)?,
            locking_mode: Keyword::from_report(&self.locking_mode)?,
            temp_store: Keyword::from_report(&self.temp_store)?,
            page_size: number("page_size", &self.page_size)?,
            cache_size: number("cache_size", &self.cache_size)?,
            auto_vacuum: number("auto_vacuum", &self.auto_vacuum)?,
            page_count: number("page_count", &self.page_count)?,
            freelist_count: number("freelist_count", &self.freelist_count)?,
        })
    }
}

fn number<N: std::str::FromStr>(setting: &str, got: &str) -> Result<N> {
    got.parse()
        .map_err(|_| Error::UnknownSetting { setting: setting.to_owned(), got: got.to_owned() })
}
