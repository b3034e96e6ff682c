use super::Prepare;
use crate::Keyword;
use stablebench_protocol::{Error, Result, SqliteSettings};
use stablebench_workload::sql::Value;
use std::ops::ControlFlow;

/// What a connection runs with, as SQLite reports it.
///
/// # Errors
///
/// The engine's; where it reports what is not known here.
pub fn settings(sql: &mut (impl Prepare + ?Sized)) -> Result<SqliteSettings> {
    Ok(SqliteSettings {
        journal_mode: Keyword::from_report(&pragma(sql, "journal_mode")?)?,
        synchronous: Keyword::from_report(&pragma(sql, "synchronous")?)?,
        locking_mode: Keyword::from_report(&pragma(sql, "locking_mode")?)?,
        temp_store: Keyword::from_report(&pragma(sql, "temp_store")?)?,
        page_size: number(sql, "page_size")?,
        cache_size: number(sql, "cache_size")?,
        auto_vacuum: number(sql, "auto_vacuum")?,
        page_count: number(sql, "page_count")?,
        freelist_count: number(sql, "freelist_count")?,
    })
}

/// A pragma that is a number.
///
/// # Errors
///
/// The engine's; where it reports another text.
pub fn number<N: std::str::FromStr>(sql: &mut (impl Prepare + ?Sized), setting: &str) -> Result<N> {
    let got = pragma(sql, setting)?;
    let unknown = |got| Error::UnknownSetting { setting: setting.to_owned(), got };
    got.parse().map_err(|_| unknown(got))
}

/// A pragma as text; empty where the engine does not know it.
fn pragma(sql: &mut (impl Prepare + ?Sized), setting: &str) -> Result<String> {
    let mut report = String::new();
    sql.prepared(&[&format!("PRAGMA {setting}")], &mut |statements| {
        statements.run(0, &[], &mut |row| {
            report = match row.copy(0)? {
                Value::Integer(number) => number.to_string(),
                Value::Text(text) => text,
                other => format!("{other:?}"),
            };
            Ok(ControlFlow::Break(()))
        })?;
        Ok(())
    })?;
    Ok(report)
}
