use super::*;
use stablebench_protocol::{Engine, Job};

fn benchmark(random: bool, stream: u64) -> DbBenchWrite {
    DbBenchWrite { random, keys: 1_000, value_bytes: 100, batch: 1, stream }
}

#[test]
fn a_value_is_a_half_twice() {
    let (_, source) = write(1, &benchmark(false, 0), 0);
    for bytes in [0, 1, 2, 7, 99, 100, 101, 250, 100_000] {
        let value = source.value(bytes);
        assert_eq!(value.len(), bytes as usize);
        for piece in value.chunks(100) {
            let half = piece.len().div_ceil(2);
            assert_eq!(piece[half..], piece[..piece.len() - half], "{bytes}");
        }
        // And its pieces differ.
        let pieces: BTreeSet<&[u8]> = value.chunks(100).collect();
        assert_eq!(pieces.len(), value.len().div_ceil(100));
    }
}

#[test]
fn every_operation_has_a_key_and_a_value_of_its_own() {
    let mut values = BTreeSet::new();
    for seed in 0..3 {
        for stream in 0..3 {
            for index in 0..100 {
                let (sequential, source) = write(seed, &benchmark(false, stream), index);
                let (random, _) = write(seed, &benchmark(true, stream), index);
                assert_eq!(sequential, index);
                assert!(random < 1_000);
                assert!(values.insert(source.value(100)), "{seed} {stream} {index}");
            }
        }
    }
}

/// With as many draws as keys, 1 - 1/e of the keys are drawn.
#[test]
fn random_keys_are_even() {
    let drawn: BTreeSet<u64> = (0..100_000).map(|i| random_key(7, 100_000, 3, i)).collect();
    assert!((62_800..63_600).contains(&drawn.len()), "{}", drawn.len());
    assert_eq!(drawn.last().map(|last| *last < 100_000), Some(true));
}

#[test]
fn a_key_is_there_once() {
    let mut keys = ExistingKeys::default();
    let mut write = DbBenchWrite { random: true, keys: 100, value_bytes: 1, batch: 1, stream: 0 };
    keys.execute(1, &DbBenchTask::Write(write), 100);
    // An equal number of draws and keys leaves 1/e of the keys out.
    assert!((50..80).contains(&keys.rows()), "{}", keys.rows());
    write.random = false;
    keys.execute(1, &DbBenchTask::Write(write), 100);
    keys.execute(1, &DbBenchTask::Ready { fresh: false, sync: true }, 1);
    assert_eq!(keys.rows(), 100);
    keys.execute(1, &DbBenchTask::Ready { fresh: true, sync: false }, 1);
    assert_eq!(keys.rows(), 0);
}

/// Rows as they were written.
#[derive(Default)]
struct Table(BTreeMap<Vec<u8>, Vec<u8>>);

impl Table {
    fn execute(&mut self, part: &JobPart) -> Expected {
        let job: DbBench = part.job.decode().unwrap();
        if let DbBenchTask::Ready { fresh, .. } = job.task {
            if fresh {
                self.0.clear();
            }
            return Expected::default();
        }
        let script = script(&job, part);
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

fn part(task: DbBenchTask, seed: u64, from: u64, count: u64) -> JobPart {
    let job = Job::new(&DbBench { engine: Engine::SQLITE, rowids: false, task });
    JobPart { job, seed, from, count, each: false }
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
        let (mut table, mut model) = (Table::default(), DbBenchModel::default());
        for (task, count) in tasks(seed) {
            let part = part(task, seed, 0, count);
            assert_eq!(model.execute(&part).unwrap(), table.execute(&part), "{seed}: {task:?}");
            assert_eq!(model.content(), table.content(), "{seed}: {task:?}");
        }
    }
}

#[test]
fn how_operations_are_cut_into_messages_does_not_matter() {
    for seed in 0..50 {
        let (mut whole, mut cut) = (DbBenchModel::default(), DbBenchModel::default());
        for (task, count) in tasks(seed) {
            let expected = whole.execute(&part(task, seed, 0, count)).unwrap();
            let size = 1 + seed % 7;
            let (mut rows, mut bytes) = (0, 0);
            for from in (0..count).step_by(size as usize) {
                let found = cut.execute(&part(task, seed, from, size.min(count - from))).unwrap();
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
    let mut model = DbBenchModel::default();
    let write = DbBenchWrite { random: false, keys: 9, value_bytes: 9, batch: 1, stream: 0 };
    let write = part(DbBenchTask::Write(write), 1, 0, 9);
    assert_eq!(model.execute(&write).unwrap(), Expected { rows: 9, bytes: 9 * 25, results: None });
    let mut fork = model.fork();
    assert_eq!(fork.content(), model.content());
    fork.execute(&part(ready(true), 1, 0, 1)).unwrap();
    assert_eq!(fork.content(), Digest::default());
    assert_eq!(model.content().rows, 9);
    let read = part(DbBenchTask::ReadSequential { rows: 9 }, 1, 3, 4);
    assert_eq!((model.execute(&read).unwrap().rows, fork.execute(&read).unwrap().rows), (4, 0));
}

#[test]
fn a_table_is_created_with_and_without_row_ids() {
    let table = "CREATE TABLE test (key blob, value blob, PRIMARY KEY(key))";
    assert_eq!(create(true), table);
    assert_eq!(create(false), format!("{table} WITHOUT ROWID"));
    assert_eq!(DROP, "DROP TABLE IF EXISTS test");
}
