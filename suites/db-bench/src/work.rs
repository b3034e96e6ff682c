//! The db-bench suite: LevelDB's `db_bench` on a table of keys and values.
//!
//! ```text
//!   key     16 digits: its number, padded with zeros
//!   value   pieces of 100 bytes; each contains 50 random bytes twice, so that it compresses to half
//! ```
//!
//! Operation i of a benchmark follows from the seed, the number of the benchmark in its run, and i,
//! so that it is the same however operations are split into messages.

use crate::job::{DbBench, DbBenchTask, DbBenchWrite};
use stablebench_protocol::{Digest, JobPart, Result};
use stablebench_workload::digits::{KEY_BYTES, key};
use stablebench_workload::sql::{Script, StatementCall, Transaction, Value, ValueRef, add_row};
use stablebench_workload::{Amount, ContentDigest, Expected, Model, Rng};
use std::collections::{BTreeMap, BTreeSet};

/// Bytes of a piece of a value.
const PIECE_BYTES: usize = 100;

/// The random source of a value.
#[derive(Clone, Debug)]
pub struct Source(Rng);

impl Source {
    /// The value with a number of bytes.
    pub fn value(&self, bytes: u32) -> Vec<u8> {
        let mut rng = self.0.clone();
        let bytes = bytes as usize;
        let mut value = Vec::with_capacity(bytes);
        while value.len() < bytes {
            let piece = PIECE_BYTES.min(bytes - value.len());
            let (start, half) = (value.len(), piece.div_ceil(2));
            while value.len() < start + half {
                let random = rng.next_u64().to_le_bytes();
                let wanted = random.len().min(start + half - value.len());
                value.extend_from_slice(&random[..wanted]);
            }
            value.extend_from_within(start..start + piece - half);
        }
        value
    }
}

/// The number of the key that operation `index` of a benchmark writes, and its value.
pub fn write(seed: u64, benchmark: &DbBenchWrite, index: u64) -> (u64, Source) {
    let mut rng = rng(seed, benchmark.stream, index);
    let random = rng.below(benchmark.keys);
    (if benchmark.random { random } else { index }, Source(rng))
}

/// The number of the key that operation `index` of a benchmark looks up.
pub fn random_key(seed: u64, keys: u64, stream: u64, index: u64) -> u64 {
    rng(seed, stream, index).below(keys)
}

/// The generator of an operation: seed, benchmark and operation are each mixed in by a draw.
fn rng(seed: u64, stream: u64, index: u64) -> Rng {
    let mixed = Rng::new(Rng::new(seed).next_u64() ^ stream).next_u64();
    Rng::new(Rng::new(mixed ^ index).next_u64())
}

/// A part of a job in SQL.
pub fn script(job: &DbBench, part: &JobPart) -> Script {
    let operations = part.from..part.from.saturating_add(part.count);
    match &job.task {
        // Its statements cannot be prepared before earlier ones are executed.
        DbBenchTask::Ready { .. } => Script { writes: true, ..Script::default() },
        DbBenchTask::Write(benchmark) => {
            let write = |index| {
                let (number, source) = write(part.seed, benchmark, index);
                let value = Value::Blob(source.value(benchmark.value_bytes));
                vec![call(vec![blob(number), value])]
            };
            Script {
                statements: vec!["REPLACE INTO test (key, value) VALUES (?, ?)".to_owned()],
                operations: operations.map(write).collect(),
                // A single row is its own transaction, which no statement begins or ends.
                transaction: match benchmark.batch {
                    0 | 1 => Transaction::Statement,
                    batch => Transaction::Operations(batch),
                },
                writes: true,
                ..Script::default()
            }
        }
        DbBenchTask::ReadRandom { keys, stream } => {
            let read = |index| vec![call(vec![blob(random_key(part.seed, *keys, *stream, index))])];
            reads("SELECT * FROM test WHERE key = ?", operations.map(read).collect())
        }
        DbBenchTask::ReadSequential { rows } => {
            let select = "SELECT * FROM test ORDER BY key";
            let whole = part.from == 0 && part.count >= *rows;
            if whole {
                return reads(select, vec![vec![call(Vec::new())]]);
            }
            let bounds = [part.count, part.from].map(|number| Value::Integer(number as i64));
            reads(&format!("{select} LIMIT ? OFFSET ?"), vec![vec![call(bounds.to_vec())]])
        }
    }
}

/// The statement that removes the table.
pub const DROP: &str = "DROP TABLE IF EXISTS test";

/// The statement that creates the table.
pub fn create(rowids: bool) -> String {
    let mut statement = "CREATE TABLE test (key blob, value blob, PRIMARY KEY(key))".to_owned();
    statement += if rowids { "" } else { " WITHOUT ROWID" };
    statement
}

fn reads(statement: &str, operations: Vec<Vec<StatementCall>>) -> Script {
    Script {
        statements: vec![statement.to_owned()],
        operations,
        transaction: Transaction::Statement,
        writes: false,
        ..Script::default()
    }
}

/// A call of the script's only statement.
fn call(parameters: Vec<Value>) -> StatementCall {
    StatementCall { statement: 0, parameters }
}

fn blob(number: u64) -> Value {
    Value::Blob(key(number).to_vec())
}

/// The keys that exist, without their values: the number of rows that a sequential read finds.
#[derive(Clone, Debug, Default)]
pub struct ExistingKeys(BTreeSet<u64>);

impl ExistingKeys {
    /// Does the first `count` operations of a task.
    pub fn execute(&mut self, seed: u64, task: &DbBenchTask, count: u64) {
        match task {
            DbBenchTask::Ready { fresh: true, .. } => self.0.clear(),
            DbBenchTask::Write(benchmark) => {
                self.0.extend((0..count).map(|index| write(seed, benchmark, index).0));
            }
            DbBenchTask::Ready { .. }
            | DbBenchTask::ReadRandom { .. }
            | DbBenchTask::ReadSequential { .. } => {}
        }
    }

    /// The number of keys.
    pub fn rows(&self) -> u64 {
        self.0.len() as u64
    }
}

/// The source and the length of each value, by the numbers of their keys.
#[derive(Clone, Debug, Default)]
pub struct DbBenchModel {
    rows: BTreeMap<u64, (Source, u32)>,
}

impl DbBenchModel {
    fn task(&mut self, task: &DbBenchTask, part: &JobPart) -> Expected {
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

impl Model for DbBenchModel {
    fn execute(&mut self, part: &JobPart) -> Result<Expected> {
        let job: DbBench = part.job.decode()?;
        Ok(self.task(&job.task, part))
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for (number, (source, bytes)) in &self.rows {
            add(&mut digest, 0, *number, source, *bytes);
        }
        digest.value()
    }

    fn fork(&self) -> Box<dyn Model> {
        Box::new(self.clone())
    }
}

#[cfg(test)]
mod tests;
