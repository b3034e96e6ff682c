//! The suite vfs in a canister: one table, and the connection that the work uses.

use crate::job::{Vfs, VfsTask, VfsWork};
use crate::work::{CREATE, READ_ALL, script};
use stablebench_harness::sql::{self, ContentTable, MeasuredScript, Sql};
use stablebench_harness::{Canister, Staged, Suite, measure_step};
use stablebench_protocol::{Digest, Engine, Error, Inspected, JobPart, PhaseCost, Result, Storage};
use stablebench_workload::ContentDigest;
use stablebench_workload::sql::Script;
use std::ops::ControlFlow;

const TABLE: ContentTable<'_> = ContentTable { name: "bench", columns: "key, value", order: "key" };

/// The maximum number of parameters of a statement: `SQLITE_MAX_VARIABLE_NUMBER`.
const MAX_LISTED: u64 = 32_766;

impl<C: Canister> Suite<C> for Vfs {
    fn stage(self, part: &JobPart) -> Result<Staged<C>> {
        Ok(match self.task {
            VfsTask::Create => step(|sql| sql.batch(CREATE)),
            VfsTask::Close => step(|sql| {
                sql.close();
                Ok(())
            }),
            VfsTask::Prepare(work) => {
                let script = checked(part, &self, work)?;
                step(move |sql| open(sql, &script, false))
            }
            VfsTask::Warm(work) => {
                let script = checked(part, &self, work)?;
                step(move |sql| open(sql, &script, true))
            }
            VfsTask::Work(work) => {
                MeasuredScript::new(checked(part, &self, work)?, part.each).staged(Storage::Stable)
            }
        })
    }

    fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        match self.task {
            VfsTask::Work(work) => {
                sql::results(canister.sql(Storage::Stable)?, &checked(part, self, work)?)
            }
            VfsTask::Create | VfsTask::Close | VfsTask::Prepare(_) | VfsTask::Warm(_) => Ok(None),
        }
    }

    fn phases(&self, canister: &mut C, part: &JobPart) -> Result<Vec<PhaseCost>> {
        let VfsTask::Work(work) = self.task else {
            let operation = "report phases of anything except work".to_owned();
            return Err(Error::Unsupported { engine: Engine::SQLITE, operation });
        };
        sql::phases(canister.sql(Storage::Stable)?, &checked(part, self, work)?)
    }

    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        sql::content(canister.sql(Storage::Stable)?, &[TABLE], position, limit, digest)
    }

    fn inspect(&self, canister: &mut C) -> Result<Inspected> {
        sql::inspect(canister.sql(Storage::Stable)?)
    }
}

/// Work that is not about rows.
fn step<C: Canister>(work: impl Fn(&mut dyn Sql) -> Result<()> + 'static) -> Staged<C> {
    Staged::writing(move |canister: &mut C| {
        let sql = canister.sql(Storage::Stable)?;
        Ok(measure_step(|| work(sql))?.into())
    })
}

fn checked(part: &JobPart, job: &Vfs, work: VfsWork) -> Result<Script> {
    if work == VfsWork::List && part.count > MAX_LISTED {
        return Err(Error::TooManyRows { limit: MAX_LISTED });
    }
    Ok(script(part, job, work))
}

/// Opens the connection that the script will use, prepares its statement, and reads the table if
/// asked for. Uses a transaction of the same kind, since a library may have a connection for each.
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
