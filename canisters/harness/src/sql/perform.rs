use super::{Row, Sql, Statements, encoded};
use crate::{instructions, measure, phases, trap};
use stablebench_protocol::{Digest, OperationCost, PhaseCost, Result, Worked};
use stablebench_workload::sql::{Call, Script, Transaction, changes_rows, is_ordered};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;
use std::ops::ControlFlow;

/// A script to be measured: preparing its statements, its operations, and its transactions.
///
/// Rows are those answered and those changed; bytes are those of the columns answered and
/// of the parameters of statements that change rows. What is read is copied, column by
/// column.
#[derive(Clone, Debug)]
pub struct Measured {
    script: Script,
    /// True if the counter is also read around each operation.
    each: bool,
    /// Bytes of the parameters of statements that change rows.
    written: u64,
}

impl Measured {
    /// A script, of which each operation is measured as well where that is asked for.
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

    /// Does the script. One that fails after it may have changed rows ends the message, so
    /// that the system undoes it.
    ///
    /// # Errors
    ///
    /// The engine's, where nothing can have changed.
    pub fn run(&self, sql: &mut dyn Sql) -> Result<Worked> {
        let texts = texts(&self.script);
        let mut costs = Vec::new();
        if self.each {
            // Making room is no part of the work.
            costs.reserve_exact(self.script.operations.len());
        }
        let measured = measure(|| work(sql, &self.script, &texts, self.each.then_some(&mut costs)));
        let mut measurement = match measured {
            Err(error) if self.script.writes => trap(&error),
            measured => measured?,
        };
        measurement.bytes += self.written;
        Ok(Worked { measurement, each: costs })
    }
}

/// Does a script, and tells where its instructions go. One that fails ends the message
/// where it may have changed rows.
///
/// # Errors
///
/// The engine's, where nothing can have changed.
pub fn phases(sql: &mut dyn Sql, script: &Script) -> Result<Vec<PhaseCost>> {
    let texts = texts(script);
    match phases::measured(|| work(sql, script, &texts, None).map(drop)) {
        Err(error) if script.writes => trap(&error),
        measured => measured,
    }
}

fn texts(script: &Script) -> Vec<&str> {
    script.statements.iter().map(String::as_str).collect()
}

/// Work: all operations of a script in their transactions, and the cost of each where that
/// is asked for.
fn work(
    sql: &mut dyn Sql,
    script: &Script,
    texts: &[&str],
    mut costs: Option<&mut Vec<OperationCost>>,
) -> Result<Amount> {
    let operations = &script.operations;
    let mut done = Amount::default();
    let mut run = |statements: &mut dyn Statements, operations: &[Vec<Call>]| {
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
    calls: &[Call],
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

/// Copies the columns of a row, as who reads them would.
pub(crate) fn copy(row: &dyn Row) -> Result<u64> {
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

/// The digest of all rows that a script reads, in their order where they have one; nothing
/// where it writes.
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
