//! The benchmarks on an engine of keys and values.

use crate::{Records, instructions, measure, trap};
use stablebench_protocol::{
    DbBenchTask, DbBenchWrite, DigestPart, Inspected, OperationCost, Part, Performed, Result,
};
use stablebench_workload::db_bench::{self, Key, key, random_key};
use stablebench_workload::sql::{ValueRef, add_row};
use stablebench_workload::{Amount, ContentDigest};
use std::hint::black_box;
use std::ops::ControlFlow;

/// Does a part of a job, measured.
pub fn perform(records: &mut dyn Records, task: &DbBenchTask, part: &Part) -> Result<Performed> {
    records.prepare()?;
    match task {
        DbBenchTask::Ready { fresh, .. } => {
            let measurement = measure(|| {
                if *fresh {
                    records.clear()?;
                }
                Ok(Amount::default())
            })?;
            Ok(Performed { measurement, each: Vec::new(), results: None })
        }
        DbBenchTask::Write(benchmark) => write(records, benchmark, part),
        DbBenchTask::ReadRandom { keys, stream } => {
            let chosen = |index| key(random_key(part.seed, *keys, *stream, index));
            let keys: Vec<Key> = (part.from..part.from + part.count).map(chosen).collect();
            read(part, |visit| {
                for key in &keys {
                    records.get(key, &mut |value| {
                        visit(key, Some(value));
                    })?;
                    visit(key, None);
                }
                Ok(())
            })
        }
        DbBenchTask::ReadSequential { .. } => read(part, |visit| {
            let (mut skip, mut left) = (part.from, part.count);
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
        }),
    }
}

/// Writes keys and values that are made before, so many a transaction. What fails ends the
/// message, so that the system undoes it.
fn write(records: &mut dyn Records, benchmark: &DbBenchWrite, part: &Part) -> Result<Performed> {
    let rows = (part.from..part.from + part.count).map(|index| {
        let (number, source) = db_bench::write(part.seed, benchmark, index);
        (key(number), source.value(benchmark.value_bytes))
    });
    let rows: Vec<(Key, Vec<u8>)> = rows.collect();
    let batch = usize::try_from(benchmark.batch).unwrap_or(usize::MAX).max(1);
    let mut each = room(part);
    let outcome = measure(|| {
        let mut done = Amount::default();
        for transaction in rows.chunks(batch) {
            records.begin()?;
            if part.each {
                put_each(records, transaction, &mut each)?;
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
        Ok(measurement) => Ok(Performed { measurement, each, results: None }),
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

/// Shown what is found, and then, without a value, that an operation is done.
type Visit<'a> = dyn FnMut(&[u8], Option<&[u8]>) + 'a;

/// Measures what reads, and does it once more for the digest of what it finds.
fn read(part: &Part, mut work: impl FnMut(&mut Visit<'_>) -> Result<()>) -> Result<Performed> {
    let mut each = room(part);
    let measurement = measure(|| {
        let mut found = Amount::default();
        let mut before = if part.each { instructions() } else { 0 };
        work(&mut |key, value| match value {
            Some(value) => {
                black_box((key, value));
                found += Amount { rows: 1, bytes: (key.len() + value.len()) as u64 };
            }
            None if part.each => {
                let after = instructions();
                each.push(OperationCost { instructions: after - before, allocated: 0 });
                before = instructions();
            }
            None => {}
        })?;
        Ok(found)
    })?;
    let mut digest = ContentDigest::default();
    work(&mut |key, value| {
        if let Some(value) = value {
            let place = digest.value().rows;
            add_row(&mut digest, place, [ValueRef::Blob(key), ValueRef::Blob(value)]);
        }
    })?;
    Ok(Performed { measurement, each, results: Some(digest.value()) })
}

/// For the cost of each operation: making room is no part of the work.
fn room(part: &Part) -> Vec<OperationCost> {
    let mut each = Vec::new();
    if part.each {
        each.reserve_exact(part.count as usize);
    }
    each
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
