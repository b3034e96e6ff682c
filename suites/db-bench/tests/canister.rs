//! Parts of jobs on canisters that need no wasm, against the model.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(missing_docs)]

#[path = "../../../canisters/harness/tests/heap/mod.rs"]
mod heap;
#[path = "../../users/tests/canister/memory.rs"]
mod memory;

use heap::HeapRecords;
use memory::HeapMemory;
use stablebench_harness::{Canister, Host, Records, SuiteEntry};
use stablebench_protocol::{
    CrateVersion, DigestPart, Engine, Error, Executed, Job, JobPart, Occupant, Result,
};
use stablebench_suite_db_bench::canister::RecordEngines;
use stablebench_suite_db_bench::work::DbBenchModel;
use stablebench_suite_db_bench::{DbBench, DbBenchTask, DbBenchWrite};
use stablebench_suite_users::canister::floor::Floor;
use stablebench_workload::{Expected, Model};

/// A canister with an engine of keys and values on the heap.
#[derive(Default)]
struct HeapCanister(HeapRecords);

impl Canister for HeapCanister {
    const SUITES: &'static [SuiteEntry<Self>] = &[SuiteEntry::of::<DbBench>()];

    fn occupant(&self) -> Occupant {
        Occupant::Manager
    }

    fn crates(&self) -> Vec<CrateVersion> {
        Vec::new()
    }

    fn save(&mut self) -> Result<()> {
        Ok(())
    }

    fn load(&mut self) {}
}

impl RecordEngines for HeapCanister {
    fn records(&mut self, job: &DbBench) -> Result<&mut dyn Records> {
        match job.engine {
            Engine::BTREE => Ok(&mut self.0),
            engine => Err(Error::EngineUnavailable { engine }),
        }
    }
}

/// A canister with the floor.
#[derive(Default)]
struct FloorCanister(Floor<HeapMemory>);

impl Canister for FloorCanister {
    const SUITES: &'static [SuiteEntry<Self>] = &[SuiteEntry::of::<DbBench>()];

    fn occupant(&self) -> Occupant {
        Occupant::Manager
    }

    fn crates(&self) -> Vec<CrateVersion> {
        Vec::new()
    }

    fn save(&mut self) -> Result<()> {
        Ok(())
    }

    fn load(&mut self) {}
}

impl RecordEngines for FloorCanister {
    fn records(&mut self, job: &DbBench) -> Result<&mut dyn Records> {
        self.0.records(job.engine)
    }
}

fn db_bench(engine: Engine, task: DbBenchTask) -> Job {
    Job::new(&DbBench { engine, rowids: false, task })
}

fn benchmark(engine: Engine, task: DbBenchTask, from: u64, count: u64) -> JobPart {
    JobPart { job: db_bench(engine, task), seed: 5, from, count, each: false }
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

fn check_benchmarks<C: RecordEngines + Default>(engine: Engine, cut: u64, each: bool) {
    let (mut host, mut model) = (Host::new(C::default()), DbBenchModel::default());
    for (task, count) in run() {
        for from in (0..count).step_by(cut as usize) {
            let part = JobPart { each, ..benchmark(engine, task, from, cut.min(count - from)) };
            let expected = model.execute(&part).unwrap();
            let Executed { measurement, results, each: costs } = host.execute(&part).unwrap();
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
            content = Some(host.content(&db_bench(engine, task), content, 9).unwrap());
        }
        assert_eq!(content.unwrap().digest, model.content(), "{task:?}");
    }
    let inspected = host.inspect(&db_bench(engine, ready(false))).unwrap();
    assert!(inspected.stored_bytes >= 7 * 1_016, "{inspected:?}");
    assert_eq!(inspected.sqlite, None);
}

#[test]
fn an_engine_of_keys_and_values_runs_every_benchmark() {
    for (cut, each) in [(u64::MAX, false), (u64::MAX, true), (30, false), (7, true)] {
        check_benchmarks::<HeapCanister>(Engine::BTREE, cut.min(1_000), each);
        check_benchmarks::<FloorCanister>(Engine::ARRAY, cut.min(1_000), each);
    }
}

#[test]
fn impossible_benchmarks_are_refused() {
    let mut host = Host::new(HeapCanister::default());
    for engine in [Engine::APPEND, Engine::ARRAY] {
        let refused = host.execute(&benchmark(engine, ready(true), 0, 1));
        assert_eq!(refused, Err(Error::EngineUnavailable { engine }));
    }
    let sqlite = Error::EngineUnavailable { engine: Engine::SQLITE };
    assert_eq!(host.execute(&benchmark(Engine::SQLITE, ready(true), 0, 1)), Err(sqlite));
    // More than a message may write is refused before it is expanded.
    let limit = (1 << 30) / 100_016;
    let many = benchmark(Engine::BTREE, write(false, 100_000, 1, 0), 0, limit + 1);
    assert_eq!(host.execute(&many), Err(Error::TooManyRows { limit }));
    let none = benchmark(Engine::BTREE, write(false, 1, 1, 0), 0, 0);
    assert_eq!(host.execute(&none), Err(Error::NoRows));
}
