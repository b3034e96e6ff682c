//! The suite vfs: one table, and what the connection is like before the work begins.

use crate::sql::{self, Sql, Table};
use crate::{Canister, measure};
use stablebench_protocol::{
    DigestPart, Error, Inspected, Part, Performed, PhaseCost, Result, Storage, Vfs, VfsStart,
    VfsTask,
};
use stablebench_workload::Amount;
use stablebench_workload::sql::Script;
use stablebench_workload::vfs::{CREATE, READ_ALL, script};
use std::ops::ControlFlow;

const TABLE: Table<'_> = Table { name: "bench", columns: "key, value", order: "key" };

/// The most parameters of one statement: `SQLITE_MAX_VARIABLE_NUMBER`.
const MAX_LISTED: u64 = 32_766;

pub fn perform<C: Canister>(canister: &mut C, job: &Vfs, part: &Part) -> Result<Performed> {
    check(job, part)?;
    let sql = canister.sql(Storage::Stable)?;
    if job.task == VfsTask::Create {
        let measurement = measure(|| sql.batch(CREATE).map(|()| Amount::default()))?;
        return Ok(Performed { measurement, each: Vec::new(), results: None });
    }
    let script = script(part, job);
    start(sql, job.start, &script)?;
    sql::perform(sql, &script, part.each)
}

pub fn phases<C: Canister>(canister: &mut C, job: &Vfs, part: &Part) -> Result<Vec<PhaseCost>> {
    check(job, part)?;
    let sql = canister.sql(Storage::Stable)?;
    let script = script(part, job);
    start(sql, job.start, &script)?;
    sql::phases(sql, &script)
}

fn check(job: &Vfs, part: &Part) -> Result<()> {
    if job.task == VfsTask::List && part.count > MAX_LISTED {
        return Err(Error::TooManyRows { limit: MAX_LISTED });
    }
    Ok(())
}

/// Brings the connection that the work will use into its state.
fn start(sql: &mut dyn Sql, start: VfsStart, script: &Script) -> Result<()> {
    let mut texts: Vec<&str> = script.statements.iter().map(String::as_str).collect();
    let mut run_last = false;
    match start {
        VfsStart::AsIs => return Ok(()),
        VfsStart::Cold => {
            sql.close();
            return Ok(());
        }
        VfsStart::Prepared => {}
        VfsStart::Warm => {
            texts.push(READ_ALL);
            run_last = true;
        }
    }
    // In a transaction of the same kind, since a library may have a connection for each.
    sql.transactions(&texts, 1, script.writes, &mut |statements, _| {
        if run_last {
            statements.run(texts.len() - 1, &[], &mut |_| Ok(ControlFlow::Continue(())))?;
        }
        Ok(())
    })
}

pub fn content<C: Canister>(
    canister: &mut C,
    part: Option<DigestPart>,
    limit: u64,
) -> Result<DigestPart> {
    sql::content(canister.sql(Storage::Stable)?, &[TABLE], part, limit)
}

pub fn inspect<C: Canister>(canister: &mut C) -> Result<Inspected> {
    sql::inspect(canister.sql(Storage::Stable)?)
}
