//! The suite keys in a canister: SQL on the database in stable memory.

use crate::job::{Keys, KeysTask};
use crate::work;
use stablebench_harness::sql::{self, ContentTable, MeasuredScript, Sql};
use stablebench_harness::{Canister, Staged, Suite, measure_step, trap};
use stablebench_protocol::{Digest, Error, Inspected, JobPart, PartCost, Result, Storage};
use stablebench_workload::ContentDigest;
use stablebench_workload::sql::Script;

impl<C: Canister> Suite<C> for Keys {
    fn stage(self, part: &JobPart) -> Result<Staged<C>> {
        let Some(script) = script(&self, part) else {
            return Ok(Staged::writing(move |canister: &mut C| {
                create(canister.sql(Storage::Stable)?, &self)
            }));
        };
        Ok(MeasuredScript::new(script, part.each).staged(Storage::Stable))
    }

    fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        match script(self, part) {
            Some(script) => sql::results(canister.sql(Storage::Stable)?, &script),
            None => Ok(None),
        }
    }

    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        let columns = work::link_columns(self.schema);
        let tables = [
            ContentTable { name: "witches", columns: "id, name", order: "id" },
            ContentTable { name: "movies", columns: "id, title, year", order: "id" },
            ContentTable {
                name: work::LINKS,
                columns: &columns,
                order: work::link_order(self.schema),
            },
        ];
        sql::content(canister.sql(Storage::Stable)?, &tables, position, limit, digest)
    }

    fn inspect(&self, canister: &mut C) -> Result<Inspected> {
        sql::inspect(canister.sql(Storage::Stable)?)
    }
}

/// The script of a part; nothing if it creates the tables.
fn script(job: &Keys, part: &JobPart) -> Option<Script> {
    match job.task {
        KeysTask::Create => None,
        KeysTask::Users
        | KeysTask::Movies
        | KeysTask::Links
        | KeysTask::Wants
        | KeysTask::Watchers => Some(work::script(job, part.seed, part.from, part.count)),
    }
}

/// Creates the tables on a connection that checks foreign keys or does not.
fn create(sql: &mut dyn Sql, job: &Keys) -> Result<PartCost> {
    let asked: i64 = if job.foreign_keys { 1 } else { 0 };
    sql.set("foreign_keys", &asked.to_string())?;
    let got: i64 = sql::number(sql, "foreign_keys")?;
    if got != asked {
        return Err(Error::SettingNotTaken {
            setting: "foreign_keys".to_owned(),
            asked: asked.to_string(),
            got: got.to_string(),
            reason: sql.fixed_because("foreign_keys").map(str::to_owned),
        });
    }
    match measure_step(|| sql.batch(&work::create(job))) {
        Ok(measurement) => Ok(measurement.into()),
        // Some of the tables may exist: the system undoes them.
        Err(error) => trap(&error),
    }
}
