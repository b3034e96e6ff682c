//! The suite keys: SQL alone, on the database in stable memory.

use crate::host::Run;
use crate::sql::{self, Measured, Sql, Table};
use crate::{Canister, measure, trap};
use stablebench_protocol::{
    Digest, DigestPart, Error, Inspected, Keys, KeysTask, Part, Result, Storage, Worked,
};
use stablebench_workload::sql::Script;
use stablebench_workload::{Amount, keys};

pub fn staged<C: Canister>(job: &Keys, part: &Part) -> Result<Run<C>> {
    let job = *job;
    let Some(script) = script(&job, part) else {
        return Ok(Box::new(move |canister: &mut C| create(canister.sql(Storage::Stable)?, &job)));
    };
    let measured = Measured::new(script, part.each);
    Ok(Box::new(move |canister: &mut C| measured.run(canister.sql(Storage::Stable)?)))
}

pub fn results<C: Canister>(canister: &mut C, job: &Keys, part: &Part) -> Result<Option<Digest>> {
    match script(job, part) {
        Some(script) => sql::results(canister.sql(Storage::Stable)?, &script),
        None => Ok(None),
    }
}

/// Nothing where tables are created.
fn script(job: &Keys, part: &Part) -> Option<Script> {
    match job.task {
        KeysTask::Create => None,
        KeysTask::Users
        | KeysTask::Movies
        | KeysTask::Links
        | KeysTask::Wants
        | KeysTask::Watchers => Some(keys::script(job, part.seed, part.from, part.count)),
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
fn create(sql: &mut dyn Sql, job: &Keys) -> Result<Worked> {
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
        Ok(measurement) => Ok(Worked { measurement, each: Vec::new() }),
        // Some of the tables may be there: the system undoes them.
        Err(error) => trap(&error),
    }
}
