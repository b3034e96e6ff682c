//! The suite db-bench: its benchmarks as SQL, or on an engine of keys and values.

mod rows;
mod values;

use crate::sql::{self, Table};
use crate::{Canister, MAX_MESSAGE_BYTES, Sql, measure};
use stablebench_protocol::{
    DbBench, DbBenchTask, DigestPart, Engine, Error, Inspected, Part, Performed, Result, Storage,
    Synchronous,
};
use stablebench_workload::Amount;
use stablebench_workload::db_bench::{DROP, KEY_BYTES, create, script};

const TABLE: Table<'_> = Table { name: "test", columns: "key, value", order: "key" };

pub fn perform<C: Canister>(canister: &mut C, job: &DbBench, part: &Part) -> Result<Performed> {
    check(job, part)?;
    match job.engine {
        Engine::Sqlite => in_sql(canister.sql(Storage::Stable)?, job, part),
        #[cfg(feature = "leveldb")]
        Engine::Leveldb => values::perform(canister.records_for(job)?, &job.task, part),
        engine => values::perform(canister.records(engine)?, &job.task, part),
    }
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

fn in_sql(sql: &mut dyn Sql, job: &DbBench, part: &Part) -> Result<Performed> {
    match job.task {
        DbBenchTask::Ready { fresh, sync } => {
            sql.set("synchronous", if sync { "FULL" } else { "OFF" })?;
            check_synchronous(sql, sync)?;
            let measurement = measure(|| {
                if fresh {
                    sql.batch(DROP)?;
                    // Without pages that a table left behind, the database is as a new one.
                    sql.vacuum()?;
                    sql.batch(&create(job.rowids))?;
                }
                Ok(Amount::default())
            })?;
            Ok(Performed { measurement, each: Vec::new(), results: None })
        }
        // The rows of one statement are the operations.
        DbBenchTask::ReadSequential { .. } if part.each => rows::each(sql, &script(job, part)),
        _ => sql::perform(sql, &script(job, part), part.each),
    }
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
