//! The benchmarks on an engine of keys and values.

use crate::{Records, instructions, measure, trap};
use stablebench_protocol::{
    DbBenchTask, Digest, DigestPart, Inspected, OperationCost, Part, Result, Worked,
};
use stablebench_workload::db_bench::{self, Key, key, random_key};
use stablebench_workload::sql::{ValueRef, add_row};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;
use std::ops::ControlFlow;

/// A part of a job whose keys and values are made.
pub struct Staged {
    work: Work,
    each: bool,
}

enum Work {
    /// Makes the store ready, and empties it where that is asked for.
    Ready { fresh: bool },
    /// Writes rows, so many a transaction.
    Write { rows: Vec<(Key, Vec<u8>)>, batch: usize },
    /// Looks keys up.
    ReadRandom(Vec<Key>),
    /// Reads rows in the order of keys.
    ReadSequential { from: u64, count: u64 },
}

impl Staged {
    /// Of a part of a job.
    pub fn new(task: &DbBenchTask, part: &Part) -> Self {
        let operations = part.from..part.from + part.count;
        let work = match task {
            DbBenchTask::Ready { fresh, .. } => Work::Ready { fresh: *fresh },
            DbBenchTask::Write(benchmark) => {
                let row = |index| {
                    let (number, source) = db_bench::write(part.seed, benchmark, index);
                    (key(number), source.value(benchmark.value_bytes))
                };
                Work::Write {
                    rows: operations.map(row).collect(),
                    batch: usize::try_from(benchmark.batch).unwrap_or(usize::MAX).max(1),
                }
            }
            DbBenchTask::ReadRandom { keys, stream } => {
                let chosen = |index| key(random_key(part.seed, *keys, *stream, index));
                Work::ReadRandom(operations.map(chosen).collect())
            }
            DbBenchTask::ReadSequential { .. } => {
                Work::ReadSequential { from: part.from, count: part.count }
            }
        };
        Self { work, each: part.each }
    }

    /// Does the part, measured.
    pub fn run(&self, records: &mut dyn Records) -> Result<Worked> {
        records.prepare()?;
        match &self.work {
            Work::Ready { fresh } => {
                let measurement = measure(|| {
                    if *fresh {
                        records.clear()?;
                    }
                    Ok(Amount::default())
                })?;
                Ok(Worked { measurement, each: Vec::new() })
            }
            Work::Write { rows, batch } => write(records, rows, *batch, self.each),
            Work::ReadRandom(keys) => {
                read(self.each, keys.len(), |visit| look_up(records, keys, visit))
            }
            Work::ReadSequential { from, count } => {
                let rows = usize::try_from(*count).unwrap_or(usize::MAX);
                read(self.each, rows, |visit| scan(records, *from, *count, visit))
            }
        }
    }

    /// The digest of what the part reads; nothing where it writes.
    pub fn results(&self, records: &mut dyn Records) -> Result<Option<Digest>> {
        let mut digest = ContentDigest::default();
        let mut visit = |key: &[u8], value: Option<&[u8]>| {
            if let Some(value) = value {
                let place = digest.value().rows;
                add_row(&mut digest, place, [ValueRef::Blob(key), ValueRef::Blob(value)]);
            }
        };
        match &self.work {
            Work::Ready { .. } | Work::Write { .. } => return Ok(None),
            Work::ReadRandom(keys) => {
                records.prepare()?;
                look_up(records, keys, &mut visit)?;
            }
            Work::ReadSequential { from, count } => {
                records.prepare()?;
                scan(records, *from, *count, &mut visit)?;
            }
        }
        Ok(Some(digest.value()))
    }
}

/// Shown what is found, and then, without a value, that an operation is done.
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

/// Writes rows, so many a transaction. What fails ends the message, so that the system undoes
/// it.
fn write(
    records: &mut dyn Records,
    rows: &[(Key, Vec<u8>)],
    batch: usize,
    each: bool,
) -> Result<Worked> {
    let mut costs = room(each, rows.len());
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
        Ok(measurement) => Ok(Worked { measurement, each: costs }),
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

/// Measures what reads.
fn read(
    each: bool,
    operations: usize,
    work: impl FnOnce(&mut Visit<'_>) -> Result<()>,
) -> Result<Worked> {
    let mut costs = room(each, operations);
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
    Ok(Worked { measurement, each: costs })
}

/// For the cost of each operation: making room is no part of the work.
fn room(each: bool, operations: usize) -> Vec<OperationCost> {
    let mut costs = Vec::new();
    if each {
        costs.reserve_exact(operations);
    }
    costs
}

/// Carries the digest of all keys and values on; the position is the number of a key.
pub fn content(records: &mut dyn Records, part: DigestPart, limit: u64) -> Result<DigestPart> {
    records.prepare()?;
    let mut digest = ContentDigest::from(part.digest);
    let (mut left, mut next) = (limit, None);
    records.scan(&key(part.position), &mut |key, value| {
        if left == 0 {
            next = db_bench::number(key);
            return ControlFlow::Break(());
        }
        left -= 1;
        add_row(&mut digest, 0, [ValueRef::Blob(key), ValueRef::Blob(value)]);
        ControlFlow::Continue(())
    })?;
    Ok(DigestPart {
        digest: digest.value(),
        position: next.unwrap_or(0),
        done: next.is_none(),
        message_instructions: instructions(),
    })
}

/// What the engine takes.
pub fn inspect(records: &mut dyn Records) -> Result<Inspected> {
    records.prepare()?;
    Ok(Inspected {
        stored_bytes: records.stored_bytes()?,
        virtual_bytes: records.virtual_bytes(),
        cache_bytes: records.cache_bytes(),
        sqlite: None,
        objects: Vec::new(),
    })
}
