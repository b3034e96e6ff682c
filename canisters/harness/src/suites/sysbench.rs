//! The suite sysbench: scripts on the database of the job's storage.

use crate::sql::{self, Table};
use crate::{Canister, measure};
use stablebench_protocol::{
    DigestPart, Inspected, Part, Performed, Result, Sysbench, SysbenchTask,
};
use stablebench_workload::Amount;
use stablebench_workload::sysbench::{schema, script};

pub fn perform<C: Canister>(canister: &mut C, job: &Sysbench, part: &Part) -> Result<Performed> {
    let sql = canister.sql(job.storage)?;
    if job.task == SysbenchTask::Create {
        // Statements on tables that are not there yet cannot be prepared.
        let statements = schema::create(job.shape);
        let measurement = measure(|| sql.batch(&statements).map(|()| Amount::default()))?;
        return Ok(Performed { measurement, each: Vec::new(), results: None });
    }
    sql::perform(sql, &script(job, part), part.each)
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
