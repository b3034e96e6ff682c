//! The suites db-bench and cuckoo: upgrades, the owner of stable memory, and refused parts.

use super::canister::Bench;
use stablebench_protocol::{
    Digest, Engine, Error, Executed, Inspected, Job, JobPart, Occupant, Result,
};
use stablebench_suite_cuckoo::work::CuckooModel;
use stablebench_suite_cuckoo::{Cuckoo, CuckooHash, CuckooKeys, CuckooTask, Lookups};
use stablebench_suite_db_bench::{DbBench, DbBenchTask, DbBenchWrite};
use stablebench_workload::Model;

fn db_bench(engine: Engine, task: DbBenchTask) -> Job {
    Job::new(&DbBench { engine, rowids: false, task })
}

fn execute(bench: &mut Bench, engine: Engine, task: DbBenchTask, count: u64) -> Result<Executed> {
    let job = db_bench(engine, task);
    bench.execute_part(&JobPart { job, seed: 1, from: 0, count, each: false })
}

const READY: DbBenchTask = DbBenchTask::Ready { fresh: true, sync: false };

fn fill(bench: &mut Bench, engine: Engine) {
    let write = DbBenchWrite { random: true, keys: 50, value_bytes: 70, batch: 7, stream: 0 };
    execute(bench, engine, READY, 1).unwrap();
    execute(bench, engine, DbBenchTask::Write(write), 50).unwrap();
}

fn content(bench: &Bench, engine: Engine) -> Digest {
    bench.content(&db_bench(engine, READY), 1_000)
}

const DB_BENCH: [Engine; 3] = [Engine::SQLITE, Engine::BTREE, Engine::ARRAY];

#[test]
fn keys_and_values_survive_an_upgrade() {
    let digests = DB_BENCH.map(|engine| {
        let mut bench = Bench::new();
        fill(&mut bench, engine);
        let before = content(&bench, engine);
        bench.upgrade();
        assert_eq!(content(&bench, engine), before, "{engine}");
        before
    });
    assert!(digests[0].rows > 20 && digests.iter().all(|digest| *digest == digests[0]));
}

#[test]
fn a_fresh_benchmark_has_no_keys() {
    for engine in DB_BENCH {
        let mut bench = Bench::new();
        fill(&mut bench, engine);
        execute(&mut bench, engine, READY, 1).unwrap();
        assert_eq!(content(&bench, engine), Digest::default(), "{engine}");
    }
}

#[test]
fn the_floor_does_not_share_stable_memory() {
    let mut bench = Bench::new();
    fill(&mut bench, Engine::BTREE);
    fill(&mut bench, Engine::SQLITE);
    let taken = Err(Error::StableMemoryTaken { occupant: Occupant::Manager });
    assert_eq!(execute(&mut bench, Engine::ARRAY, READY, 1), taken);
    let mut bench = Bench::new();
    fill(&mut bench, Engine::ARRAY);
    let taken = Error::StableMemoryTaken { occupant: Occupant::Floor(Engine::ARRAY) };
    for engine in [Engine::BTREE, Engine::SQLITE] {
        assert_eq!(execute(&mut bench, engine, READY, 1), Err(taken.clone()));
    }
    for engine in [Engine::APPEND, Engine::CUCKOO] {
        assert!(execute(&mut bench, engine, READY, 1).is_err(), "{engine}");
    }
}

/// The engines of the suite cuckoo, and first hashes of the table.
const CUCKOO: [(Engine, Option<CuckooHash>); 5] = [
    (Engine::CUCKOO, Some(CuckooHash::Murmur)),
    (Engine::CUCKOO, Some(CuckooHash::Identity)),
    (Engine::BTREE, None),
    (Engine::SQLITE, None),
    (Engine::ARRAY, None),
];
const SINGLE: Lookups = Lookups::Single;
const ITEMS: u64 = 240;

fn cuckoo((engine, first_hash): (Engine, Option<CuckooHash>), task: CuckooTask) -> Cuckoo {
    let (keys, buckets) = (CuckooKeys::Scattered, 256);
    Cuckoo { engine, first_hash, keys, buckets, items: ITEMS, task }
}

fn part(job: Cuckoo, from: u64, count: u64) -> JobPart {
    JobPart { job: Job::new(&job), seed: 5, from, count, each: false }
}

/// Does a part in the canister and in the model, which must agree.
fn both(bench: &mut Bench, model: &mut CuckooModel, part: &JobPart) {
    let executed = bench.run_part(part);
    let expected = model.execute(part).unwrap();
    let measured = executed.measurement;
    assert_eq!((measured.rows, measured.bytes), (expected.rows, expected.bytes), "{part:?}");
    assert_eq!(executed.results, expected.results, "{part:?}");
}

fn items(bench: &Bench, job: Cuckoo) -> Digest {
    bench.content(&Job::new(&job), 37)
}

#[test]
fn items_are_added_in_parts_and_over_upgrades() {
    for store in CUCKOO {
        let build = cuckoo(store, CuckooTask::Build);
        let (mut bench, mut model) = (Bench::new(), CuckooModel::default());
        for (from, count) in [(0, 100), (100, 1), (101, 139)] {
            both(&mut bench, &mut model, &part(build, from, count));
            assert_eq!(items(&bench, build), model.content(), "{store:?}");
            bench.upgrade();
        }
        for task in [CuckooTask::Hit(SINGLE), CuckooTask::Miss(SINGLE)] {
            both(&mut bench, &mut model, &part(cuckoo(store, task), 0, ITEMS));
            both(&mut bench, &mut model, &part(cuckoo(store, task), 200, 77));
        }
        assert_eq!(items(&bench, build), model.content(), "{store:?}");
        let inspected: Inspected = bench.query("inspect", (Job::new(&build),)).unwrap();
        assert!(inspected.stored_bytes >= ITEMS * 12 && inspected.virtual_bytes > 0);
        assert_eq!(inspected.sqlite.is_some(), store.0 == Engine::SQLITE);
    }
}

/// Blocks of 5 buckets of 12 bytes: 256 buckets, 4 more, and the header.
#[test]
fn a_table_has_its_buckets_and_a_header() {
    let build = cuckoo(CUCKOO[0], CuckooTask::Build);
    let mut bench = Bench::new();
    bench.run_part(&part(build, 0, ITEMS));
    let inspected: Inspected = bench.query("inspect", (Job::new(&build),)).unwrap();
    assert_eq!(inspected.stored_bytes, 64 + 260 * 12);
}

#[test]
fn a_batch_finds_what_single_lookups_find() {
    let store = CUCKOO[0];
    let (mut bench, mut model) = (Bench::new(), CuckooModel::default());
    both(&mut bench, &mut model, &part(cuckoo(store, CuckooTask::Build), 0, ITEMS));
    for size in [0, 1, 7, 1_000] {
        let batch = Lookups::Batch(size);
        both(&mut bench, &mut model, &part(cuckoo(store, CuckooTask::Hit(batch)), 0, 100));
        both(&mut bench, &mut model, &part(cuckoo(store, CuckooTask::Miss(batch)), 0, 100));
    }
    for store in &CUCKOO[2..] {
        let (engine, _) = *store;
        let lookups = cuckoo(*store, CuckooTask::Hit(Lookups::Batch(10)));
        let refused = bench.execute_part(&part(lookups, 0, 5));
        let operation = "look up in batches".to_owned();
        assert_eq!(refused, Err(Error::Unsupported { engine, operation }));
    }
}

#[test]
fn items_are_added_in_their_order() {
    let build = cuckoo(CUCKOO[0], CuckooTask::Build);
    let mut bench = Bench::new();
    bench.run_part(&part(build, 0, 10));
    for (from, count) in [(0, 5), (11, 5), (10, ITEMS)] {
        let refused = bench.execute_part(&part(build, from, count));
        let Err(Error::Unsupported { engine: Engine::CUCKOO, operation }) = refused else {
            panic!("{refused:?}")
        };
        assert!(operation.contains("it has 10"), "{operation}");
    }
    // A table that is not finished has no lookups.
    let hit = part(cuckoo(CUCKOO[0], CuckooTask::Hit(SINGLE)), 0, 1);
    let refused = bench.execute_part(&hit);
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    bench.run_part(&part(build, 10, ITEMS - 10));
}

/// Items without a place trap, so that the items before them are removed.
#[test]
fn a_table_that_cannot_be_built_changes_nothing() {
    let full = Cuckoo { buckets: 128, items: 200, ..cuckoo(CUCKOO[0], CuckooTask::Build) };
    let mut bench = Bench::new();
    bench.run_part(&part(full, 0, 50));
    let before = items(&bench, full);
    let reject = bench.trapped(&part(full, 50, 150));
    assert!(reject.contains("more buckets") && reject.contains("% full"), "{reject}");
    assert_eq!(items(&bench, full), before);
    bench.run_part(&part(full, 50, 1));
}
