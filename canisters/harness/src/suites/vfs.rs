//! The suite vfs: one table, and the connection that the work will find.

use crate::host::Run;
use crate::sql::{self, Measured, Sql, Table};
use crate::{Canister, measure};
use stablebench_protocol::{
    Digest, DigestPart, Engine, Error, Inspected, Part, PhaseCost, Result, Storage, Vfs, VfsTask,
    VfsWork, Worked,
};
use stablebench_workload::Amount;
use stablebench_workload::sql::Script;
use stablebench_workload::vfs::{CREATE, READ_ALL, script};
use std::ops::ControlFlow;

const TABLE: Table<'_> = Table { name: "bench", columns: "key, value", order: "key" };

/// The most parameters of one statement: `SQLITE_MAX_VARIABLE_NUMBER`.
const MAX_LISTED: u64 = 32_766;

pub fn staged<C: Canister>(job: &Vfs, part: &Part) -> Result<Run<C>> {
    Ok(match job.task {
        VfsTask::Create => ready(|sql| sql.batch(CREATE)),
        VfsTask::Close => ready(|sql| {
            sql.close();
            Ok(())
        }),
        VfsTask::Prepare(work) => {
            let script = checked(part, job, work)?;
            ready(move |sql| open(sql, &script, false))
        }
        VfsTask::Warm(work) => {
            let script = checked(part, job, work)?;
            ready(move |sql| open(sql, &script, true))
        }
        VfsTask::Work(work) => {
            let measured = Measured::new(checked(part, job, work)?, part.each);
            Box::new(move |canister: &mut C| measured.run(canister.sql(Storage::Stable)?))
        }
    })
}

/// Work that is about no rows.
fn ready<C: Canister>(work: impl Fn(&mut dyn Sql) -> Result<()> + 'static) -> Run<C> {
    Box::new(move |canister: &mut C| {
        let sql = canister.sql(Storage::Stable)?;
        let measurement = measure(|| work(sql).map(|()| Amount::default()))?;
        Ok(Worked { measurement, each: Vec::new() })
    })
}

pub fn results<C: Canister>(canister: &mut C, job: &Vfs, part: &Part) -> Result<Option<Digest>> {
    match job.task {
        VfsTask::Work(work) => {
            sql::results(canister.sql(Storage::Stable)?, &checked(part, job, work)?)
        }
        VfsTask::Create | VfsTask::Close | VfsTask::Prepare(_) | VfsTask::Warm(_) => Ok(None),
    }
}

pub fn phases<C: Canister>(canister: &mut C, job: &Vfs, part: &Part) -> Result<Vec<PhaseCost>> {
    let VfsTask::Work(work) = job.task else {
        let operation = "tell the phases of anything but work".to_owned();
        return Err(Error::Unsupported { engine: Engine::Sqlite, operation });
    };
    sql::phases(canister.sql(Storage::Stable)?, &checked(part, job, work)?)
}

fn checked(part: &Part, job: &Vfs, work: VfsWork) -> Result<Script> {
    if work == VfsWork::List && part.count > MAX_LISTED {
        return Err(Error::TooManyRows { limit: MAX_LISTED });
    }
    Ok(script(part, job, work))
}

/// Opens the connection that the script will use, prepares its statement, and goes through
/// the table where that is wanted. In a transaction of the same kind, since a library may
/// have a connection for each.
fn open(sql: &mut dyn Sql, script: &Script, warm: bool) -> Result<()> {
    let statement = script.statements.iter().map(String::as_str);
    let texts: Vec<&str> = statement.chain([READ_ALL]).collect();
    sql.transactions(&texts, 1, script.writes, &mut |statements, _| {
        if warm {
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
