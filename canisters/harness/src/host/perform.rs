//! Does a task: its transactions, and the costs of each operation where they are asked for.
//!
//! ```text
//! begin │ operations … │ commit │ begin │ …      all of it is measured as a whole
//!         └ counter, operation, counter          each of them, where asked for;
//!                              units of storage   between two of them
//! ```

use super::task::{Look, Task, Write};
use crate::system::{instructions, trap};
use crate::{Failed, KeyValue, Writes, measure};
use stablebench_protocol::{OperationCost, Result, Worked};
use stablebench_workload::{Amount, Selected};

/// How a task is done.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    /// Operations a transaction; all in one without it.
    pub transaction: Option<u64>,
    /// Whether each operation is measured as well.
    pub each: bool,
}

/// Does a task that was checked.
pub fn perform(
    engine: &mut dyn KeyValue,
    task: &Task<'_>,
    payload: &str,
    manner: Manner,
) -> Result<Worked> {
    let mut each = Vec::new();
    if manner.each {
        // Making room is no part of the work.
        each.reserve_exact(task.operations() as usize);
    }
    let measurement = measure(|| match *task {
        Task::Write(write, rows) => {
            let transaction = manner.transaction.unwrap_or(u64::MAX);
            let costs = manner.each.then_some(&mut each);
            write_rows(engine, write, rows, payload, transaction, costs)
        }
        Task::Look(look, rows) if manner.each => look_each(engine, look, rows, &mut each),
        Task::Look(look, rows) => look.run(engine, rows),
        Task::Scan(limit) if manner.each => timed(&mut each, || engine.scan(limit)),
        Task::Scan(limit) => engine.scan(limit),
        Task::Count if manner.each => timed(&mut each, || count(engine)),
        Task::Count => count(engine),
    })?;
    Ok(Worked { measurement, each })
}

fn count(engine: &mut dyn KeyValue) -> Result<Amount> {
    engine.count().map(|rows| Amount { rows, bytes: 0 })
}

/// Changes rows, so many a transaction.
fn write_rows(
    engine: &mut dyn KeyValue,
    write: Write,
    rows: Selected<'_>,
    payload: &str,
    transaction: u64,
    mut costs: Option<&mut Vec<OperationCost>>,
) -> Result<Amount> {
    let mut done = Amount::default();
    while let Some(part) = rows.part(done.rows, transaction) {
        let mut in_part = Amount::default();
        let outcome = engine.transaction(&mut |engine| match &mut costs {
            None => {
                in_part = write.run(engine, part, payload)?;
                Ok(())
            }
            Some(costs) => write_each(engine, write, part, payload, costs, &mut in_part),
        });
        if let Err(Failed { because, undone }) = outcome {
            if done.rows > 0 || (in_part.rows > 0 && !undone) {
                // A call that is refused has changed nothing: the system undoes the rest.
                trap(&because);
            }
            return Err(because);
        }
        done += in_part;
    }
    Ok(done)
}

/// Changes rows one by one; `done` is how much succeeded.
fn write_each(
    engine: &mut dyn Writes,
    write: Write,
    rows: Selected<'_>,
    payload: &str,
    costs: &mut Vec<OperationCost>,
    done: &mut Amount,
) -> Result<()> {
    let mut units = engine.allocated_units()?;
    while let Some(row) = rows.part(done.rows, 1) {
        let before = instructions();
        let outcome = write.run(engine, row, payload);
        let after = instructions();
        *done += outcome?;
        let units_now = engine.allocated_units()?;
        let allocated = units_now.wrapping_sub(units) as i64;
        costs.push(OperationCost { instructions: after - before, allocated });
        units = units_now;
    }
    Ok(())
}

/// Looks ids up one by one.
fn look_each(
    engine: &mut dyn KeyValue,
    look: Look,
    rows: Selected<'_>,
    costs: &mut Vec<OperationCost>,
) -> Result<Amount> {
    let mut found = Amount::default();
    let mut looked_up = 0;
    while let Some(row) = rows.part(looked_up, 1) {
        found += timed(costs, || look.run(engine, row))?;
        looked_up += 1;
    }
    Ok(found)
}

/// One operation that takes no storage.
fn timed(
    costs: &mut Vec<OperationCost>,
    operation: impl FnOnce() -> Result<Amount>,
) -> Result<Amount> {
    let before = instructions();
    let outcome = operation();
    let after = instructions();
    costs.push(OperationCost { instructions: after - before, allocated: 0 });
    outcome
}
