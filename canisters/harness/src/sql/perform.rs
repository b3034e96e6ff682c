use super::{Row, Sql, Statements};
use crate::{instructions, measure, trap};
use stablebench_protocol::{OperationCost, Performed, Result};
use stablebench_workload::sql::{Call, Script, Transaction, ValueRef, add_row, is_ordered};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;
use std::ops::ControlFlow;

/// Measures a script: preparing its statements, its operations, and its transactions.
///
/// Rows are those answered and those changed; bytes are those of the columns answered and
/// of the parameters of statements that change rows. What is read is copied, column by
/// column. After the measurement, a script that only reads is executed once more for the
/// digest of its results.
///
/// A script that fails after it may have changed rows ends the message, so that the system
/// undoes it.
///
/// # Errors
///
/// The engine's, where nothing can have changed.
pub fn perform(sql: &mut dyn Sql, script: &Script, each: bool) -> Result<Performed> {
    let mut texts: Vec<&str> = script.statements.iter().map(String::as_str).collect();
    let begin = texts.len();
    if script.transaction != Transaction::Statement {
        texts.extend(["BEGIN", "COMMIT"]);
    }
    let mut costs = Vec::new();
    if each {
        // Making room is no part of the work.
        costs.reserve_exact(script.operations.len());
    }
    let mut writes = vec![false; begin];
    let measured = measure(|| {
        let mut done = Amount::default();
        sql.prepared(&texts, &mut |statements| {
            done = transactions(statements, script, begin, each.then_some(&mut costs))?;
            Ok(())
        })?;
        Ok(done)
    });
    let mut measurement = match measured {
        Err(error) if script.writes => trap(&error),
        measured => measured?,
    };
    sql.prepared(&texts, &mut |statements| {
        for (statement, writes) in writes.iter_mut().enumerate() {
            *writes = statements.writes(statement);
        }
        Ok(())
    })?;
    let written = script.operations.iter().flatten().filter(|call| writes[call.statement]);
    measurement.bytes += written
        .flat_map(|call| &call.parameters)
        .map(|parameter| parameter.as_ref().bytes())
        .sum::<u64>();
    let results = match script.writes {
        true => None,
        false => Some(results(sql, &texts[..begin], script)?),
    };
    Ok(Performed { measurement, each: costs, results })
}

/// All operations, so many a transaction.
fn transactions(
    statements: &mut dyn Statements,
    script: &Script,
    begin: usize,
    mut costs: Option<&mut Vec<OperationCost>>,
) -> Result<Amount> {
    let size = match script.transaction {
        Transaction::Operations(size) => usize::try_from(size).unwrap_or(usize::MAX).max(1),
        Transaction::Message | Transaction::Statement => script.operations.len().max(1),
    };
    let bounded = script.transaction != Transaction::Statement;
    let mut done = Amount::default();
    for transaction in script.operations.chunks(size) {
        if bounded {
            statements.run(begin, &[], &mut |_| Ok(ControlFlow::Continue(())))?;
        }
        for operation in transaction {
            let Some(costs) = &mut costs else {
                calls(statements, operation, &mut done)?;
                continue;
            };
            let before = instructions();
            calls(statements, operation, &mut done)?;
            let after = instructions();
            costs.push(OperationCost { instructions: after - before, allocated: 0 });
        }
        if bounded {
            statements.run(begin + 1, &[], &mut |_| Ok(ControlFlow::Continue(())))?;
        }
    }
    Ok(done)
}

#[inline]
fn calls(statements: &mut dyn Statements, calls: &[Call], done: &mut Amount) -> Result<()> {
    for call in calls {
        let mut found = Amount::default();
        let changed = statements.run(call.statement, &call.parameters, &mut |row| {
            found += Amount { rows: 1, bytes: copy(row)? };
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
        let value = row.get(column)?;
        bytes += value.bytes();
        match value {
            ValueRef::Text(text) | ValueRef::Blob(text) => drop(black_box(text.to_vec())),
            ValueRef::Integer(_) | ValueRef::Null => drop(black_box(value)),
        }
    }
    Ok(bytes)
}

/// The digest of all rows that a script reads, in their order where they have one.
fn results(
    sql: &mut dyn Sql,
    texts: &[&str],
    script: &Script,
) -> Result<stablebench_protocol::Digest> {
    let mut digest = ContentDigest::default();
    sql.prepared(texts, &mut |statements| {
        for call in script.operations.iter().flatten() {
            let before = digest.value().rows;
            let ordered = is_ordered(texts[call.statement]);
            statements.run(call.statement, &call.parameters, &mut |row| {
                let place = if ordered { digest.value().rows } else { before };
                let mut columns = Vec::with_capacity(row.columns());
                for column in 0..row.columns() {
                    columns.push(row.get(column)?);
                }
                add_row(&mut digest, place, columns);
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    })?;
    Ok(digest.value())
}
