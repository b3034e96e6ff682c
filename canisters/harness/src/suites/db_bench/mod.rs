//! The suite db-bench: its benchmarks as SQL, or on an engine of keys and values.

mod rows;
mod values;

use crate::host::Run;
use crate::sql::{self, Measured, Table};
use crate::{Canister, MAX_MESSAGE_BYTES, Records, Sql, measure};
use stablebench_protocol::{
    DbBench, DbBenchTask, Digest, DigestPart, Engine, Error, Inspected, Part, Result, Storage,
    Synchronous, Worked,
};
use stablebench_workload::Amount;
use stablebench_workload::db_bench::{DROP, KEY_BYTES, create, script};

const TABLE: Table<'_> = Table { name: "test", columns: "key, value", order: "key" };

pub fn staged<C: Canister>(job: &DbBench, part: &Part) -> Result<Run<C>> {
    check(job, part)?;
    if job.engine == Engine::Sqlite {
        return Ok(in_sql(job, part));
    }
    let (job, staged) = (job.clone(), values::Staged::new(&job.task, part));
    Ok(Box::new(move |canister: &mut C| staged.run(records(canister, &job)?)))
}

pub fn results<C: Canister>(
    canister: &mut C,
    job: &DbBench,
    part: &Part,
) -> Result<Option<Digest>> {
    match job.engine {
        Engine::Sqlite => sql::results(canister.sql(Storage::Stable)?, &script(job, part)),
        _ => values::Staged::new(&job.task, part).results(records(canister, job)?),
    }
}

fn records<'a, C: Canister>(canister: &'a mut C, job: &DbBench) -> Result<&'a mut dyn Records> {
    #[cfg(feature = "leveldb")]
    if job.engine == Engine::Leveldb {
        return canister.records_for(job);
    }
    canister.records(job.engine)
}

pub fn content<C: Canister>(
    canister: &mut C,
    job: &DbBench,
    part: Option<DigestPart>,
    limit: u64,
) -> Result<DigestPart> {
    match job.engine {
        Engine::Sqlite => sql::content(canister.sql(Storage::Stable)?, &[TABLE], part, limit),
        engine => values::content(canister.records(engine)?, part.unwrap_or_default(), limit),
    }
}

pub fn inspect<C: Canister>(canister: &mut C, job: &DbBench) -> Result<Inspected> {
    if job.engine != Engine::Sqlite {
        return values::inspect(canister.records(job.engine)?);
    }
    let mut inspected = sql::inspect(canister.sql(Storage::Stable)?)?;
    // The canister has another table, which is not this suite's.
    let schema = |name: &str| matches!(name, "sqlite_schema" | "sqlite_master");
    let others = inspected
        .objects
        .extract_if(.., |object| object.table != TABLE.name && !schema(&object.name));
    let others: u64 = others.map(|object| object.bytes).sum();
    inspected.stored_bytes = inspected.stored_bytes.saturating_sub(others);
    Ok(inspected)
}

/// All that is written is on the heap before it is.
fn check(job: &DbBench, part: &Part) -> Result<()> {
    if let DbBenchTask::Write(benchmark) = &job.task {
        let row_bytes = KEY_BYTES as u64 + u64::from(benchmark.value_bytes);
        let limit = MAX_MESSAGE_BYTES / row_bytes;
        if part.count > limit {
            return Err(Error::TooManyRows { limit });
        }
    }
    Ok(())
}

fn in_sql<C: Canister>(job: &DbBench, part: &Part) -> Run<C> {
    match job.task {
        DbBenchTask::Ready { fresh, sync } => {
            let rowids = job.rowids;
            Box::new(move |canister: &mut C| {
                ready(canister.sql(Storage::Stable)?, fresh.then_some(rowids), sync)
            })
        }
        // The rows of one statement are the operations.
        DbBenchTask::ReadSequential { .. } if part.each => {
            let script = script(job, part);
            Box::new(move |canister: &mut C| rows::each(canister.sql(Storage::Stable)?, &script))
        }
        _ => {
            let measured = Measured::new(script(job, part), part.each);
            Box::new(move |canister: &mut C| measured.run(canister.sql(Storage::Stable)?))
        }
    }
}

/// Sets the level, and recreates the table if asked, with or without row ids.
fn ready(sql: &mut dyn Sql, fresh: Option<bool>, sync: bool) -> Result<Worked> {
    sql.set("synchronous", if sync { "FULL" } else { "OFF" })?;
    check_synchronous(sql, sync)?;
    let measurement = measure(|| {
        if let Some(rowids) = fresh {
            sql.batch(DROP)?;
            // Without pages that a table left behind, the database is as a new one.
            sql.vacuum()?;
            sql.batch(&create(rowids))?;
        }
        Ok(Amount::default())
    })?;
    Ok(Worked { measurement, each: Vec::new() })
}

/// SQLite must have taken what it was told.
fn check_synchronous(sql: &mut dyn Sql, sync: bool) -> Result<()> {
    let asked = if sync { Synchronous::Full } else { Synchronous::Off };
    let got = sql.settings()?.synchronous;
    if got == asked {
        return Ok(());
    }
    let text = |level: Synchronous| format!("{level:?}").to_lowercase();
    Err(Error::SettingNotTaken {
        setting: "synchronous".to_owned(),
        asked: text(asked),
        got: text(got),
        reason: sql.fixes("synchronous").map(str::to_owned),
    })
}
