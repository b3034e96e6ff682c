//! The suite db-bench in a canister: its benchmarks in SQL, or on an engine of keys and values.

use crate::job::{DbBench, DbBenchTask};
use crate::work::{self, DROP, create, random_key, script};
use stablebench_harness::sql::{self, ContentTable, MeasuredScript};
use stablebench_harness::{
    Canister, MAX_MESSAGE_BYTES, Records, Sql, Staged, Suite, instructions, measure, measure_step,
    trap,
};
use stablebench_protocol::{
    Digest, Engine, Error, Inspected, JobPart, Keyword, OperationCost, PartCost, Result, Storage,
    Synchronous,
};
use stablebench_workload::digits::{self, KEY_BYTES, Key, key};
use stablebench_workload::sql::{Script, ValueRef, add_row};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;
use std::ops::ControlFlow;

const TABLE: ContentTable<'_> = ContentTable { name: "test", columns: "key, value", order: "key" };

/// A canister with engines of keys and values.
pub trait RecordEngines: Canister {
    /// Returns the engine of a job; not SQLite.
    ///
    /// # Errors
    ///
    /// If the canister does not have it, or another engine owns the stable memory.
    fn records(&mut self, job: &DbBench) -> Result<&mut dyn Records> {
        Err(Error::EngineUnavailable { engine: job.engine })
    }
}

impl<C: RecordEngines> Suite<C> for DbBench {
    fn stage(self, part: &JobPart) -> Result<Staged<C>> {
        check(&self, part)?;
        if self.engine == Engine::SQLITE {
            return Ok(in_sql(&self, part));
        }
        let prepared = PreparedPart::new(&self.task, part);
        Ok(Staged::new(prepared.writes(), move |canister: &mut C| {
            prepared.run(canister.records(&self)?)
        }))
    }

    fn results(&self, canister: &mut C, part: &JobPart) -> Result<Option<Digest>> {
        match self.engine {
            Engine::SQLITE => sql::results(canister.sql(Storage::Stable)?, &script(self, part)),
            _ => PreparedPart::new(&self.task, part).results(canister.records(self)?),
        }
    }

    /// In an engine of keys and values, the position is the number of a key.
    fn content(
        &self,
        canister: &mut C,
        position: u64,
        limit: u64,
        digest: &mut ContentDigest,
    ) -> Result<Option<u64>> {
        if self.engine == Engine::SQLITE {
            let sql = canister.sql(Storage::Stable)?;
            return sql::content(sql, &[TABLE], position, limit, digest);
        }
        let records = canister.records(self)?;
        records.prepare()?;
        let (mut left, mut next) = (limit, None);
        records.scan(&key(position), &mut |key, value| {
            if left == 0 {
                next = digits::number(key);
                return ControlFlow::Break(());
            }
            left -= 1;
            add_row(digest, 0, [ValueRef::Blob(key), ValueRef::Blob(value)]);
            ControlFlow::Continue(())
        })?;
        Ok(next)
    }

    fn inspect(&self, canister: &mut C) -> Result<Inspected> {
        if self.engine != Engine::SQLITE {
            let records = canister.records(self)?;
            records.prepare()?;
            return Ok(Inspected {
                stored_bytes: records.stored_bytes()?,
                virtual_bytes: records.virtual_bytes(),
                cache_bytes: records.cache_bytes(),
                sqlite: None,
                objects: Vec::new(),
            });
        }
        let mut inspected = sql::inspect(canister.sql(Storage::Stable)?)?;
        // The canister has another table, which does not belong to this suite.
        let schema = |name: &str| matches!(name, "sqlite_schema" | "sqlite_master");
        let others = inspected
            .objects
            .extract_if(.., |object| object.table != TABLE.name && !schema(&object.name));
        let others: u64 = others.map(|object| object.bytes).sum();
        inspected.stored_bytes = inspected.stored_bytes.saturating_sub(others);
        Ok(inspected)
    }
}

/// Refuses more writes than fit on the heap before they are written.
fn check(job: &DbBench, part: &JobPart) -> Result<()> {
    if let DbBenchTask::Write(benchmark) = &job.task {
        let row_bytes = KEY_BYTES as u64 + u64::from(benchmark.value_bytes);
        let limit = MAX_MESSAGE_BYTES / row_bytes;
        if part.count > limit {
            return Err(Error::TooManyRows { limit });
        }
    }
    Ok(())
}

fn in_sql<C: Canister>(job: &DbBench, part: &JobPart) -> Staged<C> {
    match job.task {
        DbBenchTask::Ready { fresh, sync } => {
            let rowids = job.rowids;
            Staged::writing(move |canister: &mut C| {
                ready(canister.sql(Storage::Stable)?, fresh.then_some(rowids), sync)
            })
        }
        // The rows of one statement are the operations.
        DbBenchTask::ReadSequential { .. } if part.each => {
            let script = script(job, part);
            Staged::new(false, move |canister: &mut C| {
                read_each(canister.sql(Storage::Stable)?, &script)
            })
        }
        _ => MeasuredScript::new(script(job, part), part.each).staged(Storage::Stable),
    }
}

/// Sets the level of syncing, and creates the table again if asked for, with or without row ids.
fn ready(sql: &mut dyn Sql, fresh: Option<bool>, sync: bool) -> Result<PartCost> {
    sql.set("synchronous", if sync { "FULL" } else { "OFF" })?;
    check_synchronous(sql, sync)?;
    let measurement = measure_step(|| {
        if let Some(rowids) = fresh {
            sql.batch(DROP)?;
            // Without the pages of an older table, the database is like a new one.
            sql.vacuum()?;
            sql.batch(&create(rowids))?;
        }
        Ok(())
    })?;
    Ok(measurement.into())
}

fn check_synchronous(sql: &mut dyn Sql, sync: bool) -> Result<()> {
    let asked = if sync { Synchronous::Full } else { Synchronous::Off };
    let got = sql.settings()?.synchronous;
    if got == asked {
        return Ok(());
    }
    Err(Error::SettingNotTaken {
        setting: Synchronous::PRAGMA.to_owned(),
        asked: asked.word().to_owned(),
        got: got.word().to_owned(),
        reason: sql.fixed_because(Synchronous::PRAGMA).map(str::to_owned),
    })
}

/// Measures a script of one statement that reads, and then again each row of its result.
fn read_each(sql: &mut dyn Sql, script: &Script) -> Result<PartCost> {
    let mut cost = MeasuredScript::new(script.clone(), false).run(sql)?;
    let mut each = Vec::new();
    each.reserve_exact(cost.measurement.rows as usize);
    let texts: Vec<&str> = script.statements.iter().map(String::as_str).collect();
    sql.prepared(&texts, &mut |statements| {
        for call in script.operations.iter().flatten() {
            let mut before = instructions();
            statements.run(call.statement, &call.parameters, &mut |row| {
                sql::copy(row)?;
                let after = instructions();
                each.push(OperationCost { instructions: after - before, allocated: 0 });
                before = instructions();
                Ok(ControlFlow::Continue(()))
            })?;
        }
        Ok(())
    })?;
    cost.each = each;
    Ok(cost)
}

/// A part of a job on an engine of keys and values, with its keys and values.
struct PreparedPart {
    task: PreparedTask,
    each: bool,
}

/// A task with the keys and values that it needs.
enum PreparedTask {
    /// Prepares the engine, and removes all keys if asked for.
    Ready { fresh: bool },
    /// Writes rows in transactions of `batch`.
    Write { rows: Vec<(Key, Vec<u8>)>, batch: usize },
    /// Looks keys up.
    ReadRandom(Vec<Key>),
    /// Reads rows in the order of keys.
    ReadSequential { from: u64, count: u64 },
}

impl PreparedPart {
    fn new(task: &DbBenchTask, part: &JobPart) -> Self {
        let operations = part.from..part.from + part.count;
        let task = match task {
            DbBenchTask::Ready { fresh, .. } => PreparedTask::Ready { fresh: *fresh },
            DbBenchTask::Write(benchmark) => {
                let row = |index| {
                    let (number, source) = work::write(part.seed, benchmark, index);
                    (key(number), source.value(benchmark.value_bytes))
                };
                PreparedTask::Write {
                    rows: operations.map(row).collect(),
                    batch: usize::try_from(benchmark.batch).unwrap_or(usize::MAX).max(1),
                }
            }
            DbBenchTask::ReadRandom { keys, stream } => {
                let chosen = |index| key(random_key(part.seed, *keys, *stream, index));
                PreparedTask::ReadRandom(operations.map(chosen).collect())
            }
            DbBenchTask::ReadSequential { .. } => {
                PreparedTask::ReadSequential { from: part.from, count: part.count }
            }
        };
        Self { task, each: part.each }
    }

    fn writes(&self) -> bool {
        matches!(self.task, PreparedTask::Ready { .. } | PreparedTask::Write { .. })
    }

    /// Does the part, measured.
    fn run(&self, records: &mut dyn Records) -> Result<PartCost> {
        records.prepare()?;
        match &self.task {
            PreparedTask::Ready { fresh } => {
                let clear = || if *fresh { records.clear() } else { Ok(()) };
                Ok(measure_step(clear)?.into())
            }
            PreparedTask::Write { rows, batch } => write(records, rows, *batch, self.each),
            PreparedTask::ReadRandom(keys) => {
                read(self.each, keys.len(), |visit| look_up(records, keys, visit))
            }
            PreparedTask::ReadSequential { from, count } => {
                let rows = usize::try_from(*count).unwrap_or(usize::MAX);
                read(self.each, rows, |visit| scan(records, *from, *count, visit))
            }
        }
    }

    /// Returns the digest of what the part reads; nothing if it writes.
    fn results(&self, records: &mut dyn Records) -> Result<Option<Digest>> {
        let mut digest = ContentDigest::default();
        let mut visit = |key: &[u8], value: Option<&[u8]>| {
            if let Some(value) = value {
                let place = digest.value().rows;
                add_row(&mut digest, place, [ValueRef::Blob(key), ValueRef::Blob(value)]);
            }
        };
        match &self.task {
            PreparedTask::Ready { .. } | PreparedTask::Write { .. } => return Ok(None),
            PreparedTask::ReadRandom(keys) => {
                records.prepare()?;
                look_up(records, keys, &mut visit)?;
            }
            PreparedTask::ReadSequential { from, count } => {
                records.prepare()?;
                scan(records, *from, *count, &mut visit)?;
            }
        }
        Ok(Some(digest.value()))
    }
}

/// Visits what is found and then, without a value, the end of an operation.
type Visit<'a> = dyn FnMut(&[u8], Option<&[u8]>) + 'a;

/// Work: looks keys up one by one.
fn look_up(records: &mut dyn Records, keys: &[Key], visit: &mut Visit<'_>) -> Result<()> {
    for key in keys {
        records.get(key, &mut |value| {
            visit(key, Some(value));
        })?;
        visit(key, None);
    }
    Ok(())
}

/// Work: reads rows in the order of keys.
fn scan(records: &mut dyn Records, from: u64, count: u64, visit: &mut Visit<'_>) -> Result<()> {
    let (mut skip, mut left) = (from, count);
    records.scan(&key(0), &mut |key, value| {
        if skip > 0 {
            skip -= 1;
            return ControlFlow::Continue(());
        }
        visit(key, Some(value));
        visit(key, None);
        left -= 1;
        if left > 0 { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
    })
}

/// Writes rows in transactions of `batch`. A failure ends the message, so that the system undoes it.
fn write(
    records: &mut dyn Records,
    rows: &[(Key, Vec<u8>)],
    batch: usize,
    each: bool,
) -> Result<PartCost> {
    let mut costs = allocated(each, rows.len());
    let outcome = measure(|| {
        let mut done = Amount::default();
        for transaction in rows.chunks(batch) {
            records.begin()?;
            if each {
                put_each(records, transaction, &mut costs)?;
            } else {
                transaction.iter().try_for_each(|(key, value)| records.put(key, value))?;
            }
            records.commit()?;
            for (key, value) in transaction {
                done += Amount { rows: 1, bytes: (key.len() + value.len()) as u64 };
            }
        }
        Ok(done)
    });
    match outcome {
        Ok(measurement) => Ok(PartCost { measurement, each: costs }),
        Err(error) => trap(&error),
    }
}

fn put_each(
    records: &mut dyn Records,
    rows: &[(Key, Vec<u8>)],
    costs: &mut Vec<OperationCost>,
) -> Result<()> {
    let mut units = records.allocated_units()?;
    for (key, value) in rows {
        let before = instructions();
        records.put(key, value)?;
        let after = instructions();
        let units_now = records.allocated_units()?;
        let allocated = units_now.wrapping_sub(units) as i64;
        costs.push(OperationCost { instructions: after - before, allocated });
        units = units_now;
    }
    Ok(())
}

/// Measures reads.
fn read(
    each: bool,
    operations: usize,
    work: impl FnOnce(&mut Visit<'_>) -> Result<()>,
) -> Result<PartCost> {
    let mut costs = allocated(each, operations);
    let measurement = measure(|| {
        let mut found = Amount::default();
        let mut before = if each { instructions() } else { 0 };
        work(&mut |key, value| match value {
            Some(value) => {
                black_box((key, value));
                found += Amount { rows: 1, bytes: (key.len() + value.len()) as u64 };
            }
            None if each => {
                let after = instructions();
                costs.push(OperationCost { instructions: after - before, allocated: 0 });
                before = instructions();
            }
            None => {}
        })?;
        Ok(found)
    })?;
    Ok(PartCost { measurement, each: costs })
}

/// The list for the cost of each operation: allocating it is not part of the work.
fn allocated(each: bool, operations: usize) -> Vec<OperationCost> {
    let mut costs = Vec::new();
    if each {
        costs.reserve_exact(operations);
    }
    costs
}
