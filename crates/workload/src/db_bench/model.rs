//! What a store must hold, and what must be read of it.

use super::operation::{KEY_BYTES, Source, key, random_key, write};
use crate::expected::{Expected, Tables};
use crate::sql::{ValueRef, add_row};
use crate::{Amount, ContentDigest};
use stablebench_protocol::{DbBenchTask, Digest, Job, Part};
use std::collections::BTreeMap;

/// Under each key's number, what its value is made from and how long it is.
#[derive(Clone, Debug, Default)]
pub struct Model {
    rows: BTreeMap<u64, (Source, u32)>,
}

impl Model {
    fn task(&mut self, task: &DbBenchTask, part: &Part) -> Expected {
        let operations = part.from..part.from.saturating_add(part.count);
        match task {
            DbBenchTask::Ready { fresh, .. } => {
                if *fresh {
                    self.rows.clear();
                }
                Expected::default()
            }
            DbBenchTask::Write(benchmark) => {
                for index in operations {
                    let (number, source) = write(part.seed, benchmark, index);
                    self.rows.insert(number, (source, benchmark.value_bytes));
                }
                let row_bytes = KEY_BYTES as u64 + u64::from(benchmark.value_bytes);
                Expected { rows: part.count, bytes: part.count * row_bytes, results: None }
            }
            DbBenchTask::ReadRandom { keys, stream } => {
                let numbers = operations.map(|index| random_key(part.seed, *keys, *stream, index));
                read(numbers.filter_map(|number| Some((number, self.rows.get(&number)?))))
            }
            DbBenchTask::ReadSequential { .. } => {
                let place = |number| usize::try_from(number).unwrap_or(usize::MAX);
                let rows = self.rows.iter().skip(place(part.from)).take(place(part.count));
                read(rows.map(|(number, row)| (*number, row)))
            }
        }
    }
}

/// The rows in their order.
fn read<'a>(rows: impl Iterator<Item = (u64, &'a (Source, u32))>) -> Expected {
    let mut found = Amount::default();
    let mut digest = ContentDigest::default();
    for (number, (source, bytes)) in rows {
        add(&mut digest, found.rows, number, source, *bytes);
        found += Amount { rows: 1, bytes: KEY_BYTES as u64 + u64::from(*bytes) };
    }
    Expected { rows: found.rows, bytes: found.bytes, results: Some(digest.value()) }
}

fn add(digest: &mut ContentDigest, place: u64, number: u64, source: &Source, bytes: u32) {
    let (key, value) = (key(number), source.value(bytes));
    add_row(digest, place, [ValueRef::Blob(&key), ValueRef::Blob(&value)]);
}

impl Tables for Model {
    fn perform(&mut self, part: &Part) -> Expected {
        match &part.job {
            Job::DbBench(job) => self.task(&job.task, part),
            // Work of other suites is on other tables.
            _ => Expected::default(),
        }
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for (number, (source, bytes)) in &self.rows {
            add(&mut digest, 0, *number, source, *bytes);
        }
        digest.value()
    }

    fn fork(&self) -> Box<dyn Tables> {
        Box::new(self.clone())
    }
}
