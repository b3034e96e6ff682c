//! Scripts in SQL: measuring them, reading their results, and reading back tables.

use super::{Row, Sql, Statements, encoded, first_number};
use crate::{Canister, Staged, instructions, measure, phases as phase, trap};
use stablebench_protocol::{Digest, OperationCost, PartCost, PhaseCost, Result, Storage};
use stablebench_workload::sql::{
    Script, StatementCall, Transaction, Value, ValueRef, changes_rows, is_ordered,
};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;
use std::ops::ControlFlow;

/// A script to be measured: preparing its statements, its operations, and its transactions.
///
/// Rows are those of results and those changed. Bytes are those of the columns of results and of the
/// parameters of statements that change rows. Results are copied, column by column.
#[derive(Clone, Debug)]
pub struct MeasuredScript {
    script: Script,
    /// True if the counter is also read around each operation.
    each: bool,
    /// Bytes of the parameters of statements that change rows.
    written: u64,
}

impl MeasuredScript {
    /// A script; with `each`, its operations are also measured one by one.
    pub fn new(script: Script, each: bool) -> Self {
        let texts = texts(&script);
        let calls = script.operations.iter().flatten();
        let written = calls
            .filter(|call| changes_rows(texts[call.statement]))
            .flat_map(|call| &call.parameters)
            .map(|parameter| parameter.as_ref().bytes())
            .sum();
        Self { script, each, written }
    }

    /// Returns `true` if it changes rows.
    pub fn writes(&self) -> bool {
        self.script.writes
    }

    /// Prepares the script for a database of a canister.
    pub fn staged<C: Canister>(self, storage: Storage) -> Staged<C> {
        let writes = self.writes();
        Staged::new(writes, move |canister: &mut C| self.run(canister.sql(storage)?))
    }

    /// Does the script. A failure after it may have changed rows ends the message, so that the system
    /// undoes it.
    ///
    /// # Errors
    ///
    /// The engine's, if nothing can have changed.
    pub fn run(&self, sql: &mut dyn Sql) -> Result<PartCost> {
        let texts = texts(&self.script);
        let mut costs = Vec::new();
        if self.each {
            // Allocating is not part of the work.
            costs.reserve_exact(self.script.operations.len());
        }
        let measured = measure(|| work(sql, &self.script, &texts, self.each.then_some(&mut costs)));
        let mut measurement = match measured {
            Err(error) if self.script.writes => trap(&error),
            measured => measured?,
        };
        measurement.bytes += self.written;
        Ok(PartCost { measurement, each: costs })
    }
}

/// Does a script, and returns where its instructions go. A failure after it may have changed rows ends
/// the message.
///
/// # Errors
///
/// The engine's, if nothing can have changed.
pub fn phases(sql: &mut dyn Sql, script: &Script) -> Result<Vec<PhaseCost>> {
    let texts = texts(script);
    match phase::measured(|| work(sql, script, &texts, None).map(drop)) {
        Err(error) if script.writes => trap(&error),
        measured => measured,
    }
}

fn texts(script: &Script) -> Vec<&str> {
    script.statements.iter().map(String::as_str).collect()
}

/// Work: does all operations of a script in their transactions, and measures each if asked for.
fn work(
    sql: &mut dyn Sql,
    script: &Script,
    texts: &[&str],
    mut costs: Option<&mut Vec<OperationCost>>,
) -> Result<Amount> {
    let operations = &script.operations;
    let mut done = Amount::default();
    let mut run = |statements: &mut dyn Statements, operations: &[Vec<StatementCall>]| {
        for operation in operations {
            let Some(costs) = &mut costs else {
                calls(statements, operation, script.copies, &mut done)?;
                continue;
            };
            let before = instructions();
            calls(statements, operation, script.copies, &mut done)?;
            let after = instructions();
            costs.push(OperationCost { instructions: after - before, allocated: 0 });
        }
        Ok(())
    };
    let size = match script.transaction {
        Transaction::Operations(size) => usize::try_from(size).unwrap_or(usize::MAX).max(1),
        Transaction::Message => operations.len().max(1),
        Transaction::Statement => {
            sql.prepared(texts, &mut |statements| run(statements, operations))?;
            return Ok(done);
        }
    };
    let transactions = operations.len().div_ceil(size);
    sql.transactions(texts, transactions, script.writes, &mut |statements, number| {
        let first = number * size;
        run(statements, &operations[first..operations.len().min(first + size)])
    })?;
    Ok(done)
}

#[inline]
fn calls(
    statements: &mut dyn Statements,
    calls: &[StatementCall],
    copies: bool,
    done: &mut Amount,
) -> Result<()> {
    for call in calls {
        let mut found = Amount::default();
        let changed = statements.run(call.statement, &call.parameters, &mut |row| {
            let bytes = if copies { copy(row)? } else { lengths(row)? };
            found += Amount { rows: 1, bytes };
            Ok(ControlFlow::Continue(()))
        })?;
        *done += found;
        *done += Amount { rows: changed, bytes: 0 };
    }
    Ok(())
}

/// Work: copies the columns of a row, like a reader of the row, and returns their bytes.
///
/// # Errors
///
/// The engine's.
pub fn copy(row: &dyn Row) -> Result<u64> {
    let mut bytes = 0;
    for column in 0..row.columns() {
        let value = black_box(row.copy(column)?);
        bytes += value.as_ref().bytes();
    }
    Ok(bytes)
}

/// The bytes of a row of texts, which are not copied.
fn lengths(row: &dyn Row) -> Result<u64> {
    (0..row.columns()).map(|column| row.text_bytes(column)).sum()
}

/// Returns the digest of all rows that a script reads, in their order if they have one; nothing if it
/// writes.
///
/// # Errors
///
/// The engine's.
pub fn results(sql: &mut dyn Sql, script: &Script) -> Result<Option<Digest>> {
    if script.writes {
        return Ok(None);
    }
    let texts = texts(script);
    let mut digest = ContentDigest::default();
    sql.prepared(&texts, &mut |statements| {
        for call in script.operations.iter().flatten() {
            let before = digest.value().rows;
            let ordered = is_ordered(texts[call.statement]);
            statements.run(call.statement, &call.parameters, &mut |row| {
                let place = if ordered { digest.value().rows } else { before };
                encoded(row)?.digest(&mut digest, place);
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    })?;
    Ok(Some(digest.value()))
}

/// A table whose rows are read back.
#[derive(Clone, Copy, Debug)]
pub struct ContentTable<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its columns, in the model's order.
    pub columns: &'a str,
    /// The columns that order its rows, so that they can be read in parts.
    pub order: &'a str,
}

/// Adds at most `limit` of the tables' rows to a digest, starting at `position`, which is the number
/// of rows before. A row's place in the digest is the number of its table. Returns the next position
/// unless all rows were read.
///
/// # Errors
///
/// The engine's.
pub fn content(
    sql: &mut dyn Sql,
    tables: &[ContentTable<'_>],
    position: u64,
    limit: u64,
    digest: &mut ContentDigest,
) -> Result<Option<u64>> {
    let (mut skip, mut left) = (position, limit);
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
                encoded(row)?.digest(digest, place);
                Ok(ControlFlow::Continue(()))
            })?;
            Ok(())
        })?;
    }
    Ok((left == 0).then_some(position + limit))
}

/// Adds at most `limit` rows of all tables to a digest, like [`content`]. Tables of extensions are read
/// through their virtual tables.
///
/// # Errors
///
/// The engine's.
pub fn all_content(
    sql: &mut dyn Sql,
    position: u64,
    limit: u64,
    digest: &mut ContentDigest,
) -> Result<Option<u64>> {
    const TABLES: &str = "SELECT name FROM pragma_table_list WHERE schema = 'main' \
                          AND type IN ('table', 'virtual') AND name NOT LIKE 'sqlite_%' ORDER BY name";
    let mut names = Vec::new();
    sql.prepared(&[TABLES], &mut |statements| {
        statements.run(0, &[], &mut |row| {
            row.visit(0, &mut |name| {
                if let ValueRef::Text(name) = name {
                    let name = String::from_utf8_lossy(name).replace('"', "\"\"");
                    names.push(format!("\"{name}\""));
                }
            })?;
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(())
    })?;
    let tables: Vec<ContentTable<'_>> =
        names.iter().map(|name| ContentTable { name, columns: "*", order: "1" }).collect();
    content(sql, &tables, position, limit, digest)
}
