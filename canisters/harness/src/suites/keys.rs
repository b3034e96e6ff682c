//! The suite keys: SQL alone, on the database in stable memory.

use crate::sql::{self, Sql, Table};
use crate::{Canister, measure, trap};
use stablebench_protocol::{
    DigestPart, Error, Inspected, Keys, KeysTask, Part, Performed, Result, Storage,
};
use stablebench_workload::{Amount, keys};

pub fn perform<C: Canister>(canister: &mut C, job: &Keys, part: &Part) -> Result<Performed> {
    let sql = canister.sql(Storage::Stable)?;
    match job.task {
        KeysTask::Create => create(sql, job),
        KeysTask::Users
        | KeysTask::Movies
        | KeysTask::Links
        | KeysTask::Wants
        | KeysTask::Watchers => {
            let script = keys::script(job, part.seed, part.from, part.count);
            sql::perform(sql, &script, part.each)
        }
    }
}

pub fn content<C: Canister>(
    canister: &mut C,
    job: &Keys,
    part: Option<DigestPart>,
    limit: u64,
) -> Result<DigestPart> {
    let columns = keys::link_columns(job.schema);
    let tables = [
        Table { name: "witches", columns: "id, name", order: "id" },
        Table { name: "movies", columns: "id, title, year", order: "id" },
        Table { name: keys::LINKS, columns: &columns, order: keys::link_order(job.schema) },
    ];
    sql::content(canister.sql(Storage::Stable)?, &tables, part, limit)
}

pub fn inspect<C: Canister>(canister: &mut C, _: &Keys) -> Result<Inspected> {
    sql::inspect(canister.sql(Storage::Stable)?)
}

/// Creates the tables, on a connection that checks foreign keys or does not.
fn create(sql: &mut dyn Sql, job: &Keys) -> Result<Performed> {
    let asked: i64 = if job.foreign_keys { 1 } else { 0 };
    sql.set("foreign_keys", &asked.to_string())?;
    let got: i64 = sql::number(sql, "foreign_keys")?;
    if got != asked {
        return Err(Error::SettingNotTaken {
            setting: "foreign_keys".to_owned(),
            asked: asked.to_string(),
            got: got.to_string(),
            reason: sql.fixes("foreign_keys").map(str::to_owned),
        });
    }
    let created = measure(|| sql.batch(&keys::create(job)).map(|()| Amount::default()));
    match created {
        Ok(measurement) => Ok(Performed { measurement, each: Vec::new(), results: None }),
        // Some of the tables may be there: the system undoes them.
        Err(error) => trap(&error),
    }
}
