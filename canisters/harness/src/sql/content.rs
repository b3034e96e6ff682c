use super::{Sql, encoded, first_number};
use crate::instructions;
use stablebench_protocol::{DigestPart, Error, Result};
use stablebench_workload::ContentDigest;
use stablebench_workload::sql::Value;
use std::ops::ControlFlow;

/// A table whose rows are read back.
#[derive(Clone, Copy, Debug)]
pub struct Table<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its columns, in the order in which the model has them.
    pub columns: &'a str,
    /// What its rows are ordered by, so that they can be read in parts.
    pub order: &'a str,
}

/// Begins the digest of the tables' rows, or carries one on, by at most `limit` rows. A
/// row's place in the digest is the number of its table.
///
/// # Errors
///
/// The engine's; where the digest is done already.
pub fn content(
    sql: &mut dyn Sql,
    tables: &[Table<'_>],
    part: Option<DigestPart>,
    limit: u64,
) -> Result<DigestPart> {
    let part = part.unwrap_or_default();
    if part.done {
        return Err(Error::DigestDone);
    }
    if limit == 0 {
        return Err(Error::NoRows);
    }
    let mut digest = ContentDigest::from(part.digest);
    // The position is the number of rows seen.
    let (mut skip, mut left) = (part.position, limit);
    for (place, table) in (0..).zip(tables) {
        let count = format!("SELECT count(*) FROM {}", table.name);
        let rows = first_number(sql, &count, &[])?.unwrap_or(0) as u64;
        let first = skip.min(rows);
        skip -= first;
        let taken = left.min(rows - first);
        if taken == 0 {
            continue;
        }
        left -= taken;
        let select = format!(
            "SELECT {} FROM {} ORDER BY {} LIMIT ? OFFSET ?",
            table.columns, table.name, table.order
        );
        let parameters = [Value::Integer(taken as i64), Value::Integer(first as i64)];
        sql.prepared(&[&select], &mut |statements| {
            statements.run(0, &parameters, &mut |row| {
                encoded(row)?.digest(&mut digest, place);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(())
        })?;
    }
    Ok(DigestPart {
        digest: digest.value(),
        position: digest.value().rows,
        done: left > 0,
        message_instructions: instructions(),
    })
}
