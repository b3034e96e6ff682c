//! The suite sysbench: scripts on the database of the job's storage.

use crate::host::Run;
use crate::sql::{self, Measured, Table};
use crate::{Canister, measure};
use stablebench_protocol::{
    Digest, DigestPart, Inspected, Part, Result, Sysbench, SysbenchTask, Worked,
};
use stablebench_workload::Amount;
use stablebench_workload::sysbench::{schema, script};

pub fn staged<C: Canister>(job: &Sysbench, part: &Part) -> Run<C> {
    let job = *job;
    if job.task == SysbenchTask::Create {
        // Statements on tables that are not there yet cannot be prepared.
        let statements = schema::create(job.shape);
        return Box::new(move |canister: &mut C| {
            let sql = canister.sql(job.storage)?;
            let measurement = measure(|| sql.batch(&statements).map(|()| Amount::default()))?;
            Ok(Worked { measurement, each: Vec::new() })
        });
    }
    let measured = Measured::new(script(&job, part), part.each);
    Box::new(move |canister: &mut C| measured.run(canister.sql(job.storage)?))
}

pub fn results<C: Canister>(
    canister: &mut C,
    job: &Sysbench,
    part: &Part,
) -> Result<Option<Digest>> {
    match job.task {
        SysbenchTask::Create => Ok(None),
        _ => sql::results(canister.sql(job.storage)?, &script(job, part)),
    }
}

pub fn content<C: Canister>(
    canister: &mut C,
    job: &Sysbench,
    part: Option<DigestPart>,
    limit: u64,
) -> Result<DigestPart> {
    let texts = schema::CONTENT.map(|table| {
        let columns = schema::content_columns(job.shape, table);
        (schema::name(table), columns, schema::content_order(job.shape, table))
    });
    let tables = texts.each_ref().map(|(name, columns, order)| Table { name, columns, order });
    sql::content(canister.sql(job.storage)?, &tables, part, limit)
}

pub fn inspect<C: Canister>(canister: &mut C, job: &Sysbench) -> Result<Inspected> {
    sql::inspect(canister.sql(job.storage)?)
}
