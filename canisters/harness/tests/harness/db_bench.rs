//! The benchmarks of db-bench on engines of keys and values, against the model.

use crate::heap::HeapCanister;
use crate::heap_records::RecordsCanister;
use stablebench_harness::{Canister, Host};
use stablebench_protocol::{
    DbBench, DbBenchTask, DbBenchWrite, DigestPart, Engine, Error, Job, Part, Performed,
};
use stablebench_workload::db_bench::Model;
use stablebench_workload::{Expected, Tables};

fn job(engine: Engine, task: DbBenchTask) -> Job {
    Job::DbBench(DbBench { engine, rowids: false, task })
}

fn part(engine: Engine, task: DbBenchTask, from: u64, count: u64) -> Part {
    Part { job: job(engine, task), seed: 5, from, count, each: false }
}

fn ready(fresh: bool) -> DbBenchTask {
    DbBenchTask::Ready { fresh, sync: true }
}

fn write(random: bool, value_bytes: u32, batch: u64, stream: u64) -> DbBenchTask {
    DbBenchTask::Write(DbBenchWrite { random, keys: 100, value_bytes, batch, stream })
}

/// A small run: tasks and their operations.
fn run() -> Vec<(DbBenchTask, u64)> {
    vec![
        (ready(true), 1),
        (write(true, 90, 1, 0), 100),
        (DbBenchTask::ReadSequential { rows: 60 }, 60),
        (ready(false), 1),
        (write(true, 80, 30, 1), 100),
        (DbBenchTask::ReadRandom { keys: 120, stream: 2 }, 50),
        (DbBenchTask::ReadSequential { rows: 90 }, 10),
        (ready(true), 1),
        (DbBenchTask::ReadRandom { keys: 100, stream: 3 }, 5),
        (write(false, 1_000, 1, 4), 7),
        (DbBenchTask::ReadSequential { rows: 7 }, 7),
    ]
}

fn check<C: Canister + Default>(engine: Engine, cut: u64, each: bool) {
    let (mut host, mut model) = (Host::new(C::default()), Model::default());
    for (task, count) in run() {
        for from in (0..count).step_by(cut as usize) {
            let part = Part { each, ..part(engine, task, from, cut.min(count - from)) };
            let expected = model.perform(&part);
            let performed = host.perform(&part).unwrap();
            let Performed { measurement, results, each: costs } = performed;
            let found = Expected { rows: measurement.rows, bytes: measurement.bytes, results };
            assert_eq!(found, expected, "{task:?}");
            let operations = match task {
                DbBenchTask::Ready { .. } => 0,
                DbBenchTask::ReadSequential { .. } => expected.rows,
                _ => part.count,
            };
            assert_eq!(costs.len() as u64, if each { operations } else { 0 }, "{task:?}");
        }
        let mut content: Option<DigestPart> = None;
        while content.is_none_or(|part| !part.done) {
            content = Some(host.content(&job(engine, task), content, 9).unwrap());
        }
        assert_eq!(content.unwrap().digest, model.content(), "{task:?}");
    }
    let inspected = host.inspect(&job(engine, ready(false))).unwrap();
    assert!(inspected.stored_bytes >= 7 * 1_016, "{inspected:?}");
    assert_eq!(inspected.sqlite, None);
}

#[test]
fn an_engine_of_keys_and_values_does_every_benchmark() {
    for (cut, each) in [(u64::MAX, false), (u64::MAX, true), (30, false), (7, true)] {
        check::<RecordsCanister>(Engine::Btree, cut.min(1_000), each);
        check::<HeapCanister>(Engine::Array, cut.min(1_000), each);
    }
}

#[test]
fn what_cannot_be_done_is_refused() {
    let mut host = Host::new(RecordsCanister::default());
    for engine in [Engine::Append, Engine::Array] {
        let refused = host.perform(&part(engine, ready(true), 0, 1));
        assert_eq!(refused, Err(Error::EngineUnavailable { engine }));
    }
    let sqlite = Error::EngineUnavailable { engine: Engine::Sqlite };
    assert_eq!(host.perform(&part(Engine::Sqlite, ready(true), 0, 1)), Err(sqlite));
    // More than a message may write, before any of it is made.
    let limit = (1 << 30) / 100_016;
    let many = part(Engine::Btree, write(false, 100_000, 1, 0), 0, limit + 1);
    assert_eq!(host.perform(&many), Err(Error::TooManyRows { limit }));
    let none = part(Engine::Btree, write(false, 1, 1, 0), 0, 0);
    assert_eq!(host.perform(&none), Err(Error::NoRows));
}
