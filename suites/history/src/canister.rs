//! The suite history in a canister: work on a table and its commits.

use crate::job::History;
use crate::work::{SqlPart, sql_part};
use stablebench_harness::sql::{self, ContentTable, MeasuredScript};
use stablebench_harness::{Canister, Staged, Suite, measure_step, trap};
use stablebench_protocol::{Digest, Inspected, JobPart, Result, Storage};
use stablebench_workload::ContentDigest;

const TABLE: ContentTable<'_> = ContentTable { name: "history", columns: "id, value", order: "id" };

impl<C: Canister> Suite<C> for History {
    fn stage(self, part: &JobPart) -> Result<Staged<C>> {
        Ok(match sql_part(&self, part) {
            SqlPart::Script(script) => {
                MeasuredScript::new(script, part.each).staged(Storage::Stable)
            }
            SqlPart::Batch(statements) => Staged::writing(move |canister: &mut C| {
                let sql = canister.sql(Storage::Stable)?;
                // Some of the statements may be done: the system undoes them.
                let measured = measure_step(|| sql.batch(&statements));
                Ok(measured.unwrap_or_else(|error| trap(&error)).into())
            }),
        })
    }

    fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        match sql_part(self, part) {
            SqlPart::Script(script) => sql::results(canister.sql(Storage::Stable)?, &script),
            SqlPart::Batch(_) => Ok(None),
        }
    }

    /// All rows of the table on the current branch.
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
