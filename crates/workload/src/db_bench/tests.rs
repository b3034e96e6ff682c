//! The model and the script against each other: a table that knows nothing but the
//! script's statements holds and answers what the model says.

use super::{DROP, Model, create, script};
use crate::sql::{Value, ValueRef, add_row};
use crate::{ContentDigest, Expected, Rng, Tables};
use stablebench_protocol::{DbBench, DbBenchTask, DbBenchWrite, Digest, Engine, Job, Part};
use std::collections::BTreeMap;

/// Rows as they were written.
#[derive(Default)]
struct Table(BTreeMap<Vec<u8>, Vec<u8>>);

impl Table {
    fn perform(&mut self, part: &Part) -> Expected {
        let Job::DbBench(job) = &part.job else { panic!("another suite") };
        if let DbBenchTask::Ready { fresh, .. } = job.task {
            if fresh {
                self.0.clear();
            }
            return Expected::default();
        }
        let script = script(job, part);
        let (mut rows, mut bytes, mut digest) = (0, 0, ContentDigest::default());
        for call in script.operations.iter().flatten() {
            let statement = script.statements[call.statement].as_str();
            let found: Vec<(&Vec<u8>, &Vec<u8>)> = match (statement, &call.parameters[..]) {
                (
                    "REPLACE INTO test (key, value) VALUES (?, ?)",
                    [Value::Blob(key), Value::Blob(value)],
                ) => {
                    assert_eq!(key.len(), 16);
                    self.0.insert(key.clone(), value.clone());
                    rows += 1;
                    bytes += (key.len() + value.len()) as u64;
                    continue;
                }
                ("SELECT * FROM test WHERE key = ?", [Value::Blob(key)]) => {
                    self.0.get_key_value(key).into_iter().collect()
                }
                ("SELECT * FROM test ORDER BY key", []) => self.0.iter().collect(),
                (
                    "SELECT * FROM test ORDER BY key LIMIT ? OFFSET ?",
                    [Value::Integer(limit), Value::Integer(offset)],
                ) => self.0.iter().skip(*offset as usize).take(*limit as usize).collect(),
                other => panic!("{other:?} is no statement of the suite"),
            };
            for (key, value) in found {
                add_row(&mut digest, rows, [ValueRef::Blob(key), ValueRef::Blob(value)]);
                rows += 1;
                bytes += (key.len() + value.len()) as u64;
            }
        }
        Expected { rows, bytes, results: (!script.writes).then(|| digest.value()) }
    }

    fn content(&self) -> Digest {
        let mut digest = ContentDigest::default();
        for (key, value) in &self.0 {
            add_row(&mut digest, 0, [ValueRef::Blob(key), ValueRef::Blob(value)]);
        }
        digest.value()
    }
}

fn part(task: DbBenchTask, seed: u64, from: u64, count: u64) -> Part {
    let job = Job::DbBench(DbBench { engine: Engine::Sqlite, rowids: false, task });
    Part { job, seed, from, count, each: false }
}

fn ready(fresh: bool) -> DbBenchTask {
    DbBenchTask::Ready { fresh, sync: false }
}

/// Tasks as they could come, with so many operations each.
fn tasks(seed: u64) -> Vec<(DbBenchTask, u64)> {
    let mut rng = Rng::new(seed);
    let mut tasks = vec![(ready(true), 1)];
    for stream in 0..30 {
        let count = 1 + rng.below(60);
        tasks.push(match rng.below(8) {
            0 => (ready(rng.below(2) == 0), 1),
            1 | 2 => (DbBenchTask::ReadRandom { keys: count, stream }, count),
            // All of them, or fewer.
            3 => (DbBenchTask::ReadSequential { rows: 60 }, 60.min(count * 2)),
            _ => {
                let (random, value_bytes) = (rng.below(2) == 0, rng.below(300) as u32);
                let batch = 1 + rng.below(20);
                let write =
                    DbBenchWrite { random, keys: 1 + rng.below(60), value_bytes, batch, stream };
                (DbBenchTask::Write(write), count)
            }
        });
    }
    tasks
}

#[test]
fn the_model_is_the_table() {
    for seed in 0..100 {
        let (mut table, mut model) = (Table::default(), Model::default());
        for (task, count) in tasks(seed) {
            let part = part(task, seed, 0, count);
            assert_eq!(model.perform(&part), table.perform(&part), "{seed}: {task:?}");
            assert_eq!(model.content(), table.content(), "{seed}: {task:?}");
        }
    }
}

#[test]
fn how_operations_are_cut_into_messages_does_not_matter() {
    for seed in 0..50 {
        let (mut whole, mut cut) = (Model::default(), Model::default());
        for (task, count) in tasks(seed) {
            let expected = whole.perform(&part(task, seed, 0, count));
            let size = 1 + seed % 7;
            let (mut rows, mut bytes) = (0, 0);
            for from in (0..count).step_by(size as usize) {
                let found = cut.perform(&part(task, seed, from, size.min(count - from)));
                rows += found.rows;
                bytes += found.bytes;
            }
            assert_eq!((rows, bytes), (expected.rows, expected.bytes), "{seed}: {task:?}");
            assert_eq!(whole.content(), cut.content(), "{seed}: {task:?}");
        }
    }
}

#[test]
fn a_fork_goes_its_own_way() {
    let mut model = Model::default();
    let write = DbBenchWrite { random: false, keys: 9, value_bytes: 9, batch: 1, stream: 0 };
    let write = part(DbBenchTask::Write(write), 1, 0, 9);
    assert_eq!(model.perform(&write), Expected { rows: 9, bytes: 9 * 25, results: None });
    let mut fork = model.fork();
    assert_eq!(fork.content(), model.content());
    fork.perform(&part(ready(true), 1, 0, 1));
    assert_eq!(fork.content(), Digest::default());
    assert_eq!(model.content().rows, 9);
    let read = part(DbBenchTask::ReadSequential { rows: 9 }, 1, 3, 4);
    assert_eq!((model.perform(&read).rows, fork.perform(&read).rows), (4, 0));
}

#[test]
fn a_table_is_created_with_and_without_row_ids() {
    let table = "CREATE TABLE test (key blob, value blob, PRIMARY KEY(key))";
    assert_eq!(create(true), table);
    assert_eq!(create(false), format!("{table} WITHOUT ROWID"));
    assert_eq!(DROP, "DROP TABLE IF EXISTS test");
}
