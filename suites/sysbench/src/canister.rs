//! The suite sysbench in a canister: scripts on the database of the job's storage.

use crate::job::{Sysbench, SysbenchTask};
use crate::work::{CONTENT, content_columns, content_order, create, script, table_name};
use stablebench_harness::sql::{self, ContentTable, MeasuredScript};
use stablebench_harness::{Canister, Staged, Suite, measure_step};
use stablebench_protocol::{Digest, Inspected, JobPart, Result};
use stablebench_workload::ContentDigest;

impl<C: Canister> Suite<C> for Sysbench {
    fn stage(self, part: &JobPart) -> Result<Staged<C>> {
        if self.task == SysbenchTask::Create {
            // Statements on tables that do not exist yet cannot be prepared.
            let statements = create(self.shape);
            return Ok(Staged::writing(move |canister: &mut C| {
                let sql = canister.sql(self.storage)?;
                Ok(measure_step(|| sql.batch(&statements))?.into())
            }));
        }
        Ok(MeasuredScript::new(script(&self, part), part.each).staged(self.storage))
    }

    fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        match self.task {
            SysbenchTask::Create => Ok(None),
            _ => sql::results(canister.sql(self.storage)?, &script(self, part)),
        }
    }

    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let texts = CONTENT.map(|table| {
            let columns = content_columns(self.shape, table);
            (table_name(table), columns, content_order(self.shape, table))
        });
        let tables =
            texts.each_ref().map(|(name, columns, order)| ContentTable { name, columns, order });
        sql::content(canister.sql(self.storage)?, &tables, position, limit, digest)
    }

    fn inspect(&self, canister: &mut C) -> Result<Inspected> {
        sql::inspect(canister.sql(self.storage)?)
    }
}
