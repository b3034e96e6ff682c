//! The stores of the suite cuckoo: items in parts, over upgrades, and what is refused.

use stablebench_protocol::{
    Cuckoo, CuckooHash, CuckooKeys, CuckooTask, Digest, DigestPart, Engine, Error, Inspected, Job,
    Lookups, Part, Performed, PointStore, Result,
};
use stablebench_workload::Tables;
use stablebench_workload::cuckoo::CuckooModel;

use super::canister::{Bench, CONTROLLER};

const STORES: [PointStore; 5] = [
    PointStore::Cuckoo(CuckooHash::Murmur),
    PointStore::Cuckoo(CuckooHash::Identity),
    PointStore::Btree,
    PointStore::Sqlite,
    PointStore::Array,
];
const SINGLE: Lookups = Lookups::Single;
const ITEMS: u64 = 240;

fn job(store: PointStore, task: CuckooTask) -> Cuckoo {
    Cuckoo { store, keys: CuckooKeys::Scattered, buckets: 256, items: ITEMS, task }
}

fn part(job: Cuckoo, from: u64, count: u64) -> Part {
    Part { job: Job::Cuckoo(job), seed: 5, from, count, each: false }
}

/// Does a part on both sides, which must agree.
fn both(bench: &mut Bench, model: &mut CuckooModel, part: &Part) {
    let performed: Performed = bench.update("perform", (part,)).unwrap();
    let expected = model.perform(part);
    let measured = performed.measurement;
    assert_eq!((measured.rows, measured.bytes), (expected.rows, expected.bytes), "{part:?}");
    assert_eq!(performed.results, expected.results, "{part:?}");
}

fn content(bench: &Bench, job: Cuckoo) -> Digest {
    let mut part: Option<DigestPart> = None;
    loop {
        let next: DigestPart = bench.query("content", (Job::Cuckoo(job), part, 37_u64)).unwrap();
        if next.done {
            return next.digest;
        }
        part = Some(next);
    }
}

#[test]
fn a_store_is_built_in_parts_and_over_upgrades() {
    for store in STORES {
        let build = job(store, CuckooTask::Build);
        let (mut bench, mut model) = (Bench::new(), CuckooModel::default());
        for (from, count) in [(0, 100), (100, 1), (101, 139)] {
            both(&mut bench, &mut model, &part(build, from, count));
            assert_eq!(content(&bench, build), model.content(), "{store:?}");
            bench.upgrade();
        }
        for task in [CuckooTask::Hit(SINGLE), CuckooTask::Miss(SINGLE)] {
            both(&mut bench, &mut model, &part(job(store, task), 0, ITEMS));
            both(&mut bench, &mut model, &part(job(store, task), 200, 77));
        }
        assert_eq!(content(&bench, build), model.content(), "{store:?}");
        let inspected: Inspected = bench.query("inspect", (Job::Cuckoo(build),)).unwrap();
        assert!(inspected.stored_bytes >= ITEMS * 12 && inspected.virtual_bytes > 0);
        assert_eq!(inspected.sqlite.is_some(), store == PointStore::Sqlite);
    }
}

/// Blocks of 5 buckets of 12 bytes: 256 buckets, 4 more, and the header.
#[test]
fn a_table_takes_its_buckets_and_a_header() {
    let build = job(STORES[0], CuckooTask::Build);
    let mut bench = Bench::new();
    bench.update::<Performed>("perform", (part(build, 0, ITEMS),)).unwrap();
    let inspected: Inspected = bench.query("inspect", (Job::Cuckoo(build),)).unwrap();
    assert_eq!(inspected.stored_bytes, 64 + 260 * 12);
}

#[test]
fn a_batch_finds_what_single_lookups_find() {
    let store = STORES[0];
    let (mut bench, mut model) = (Bench::new(), CuckooModel::default());
    both(&mut bench, &mut model, &part(job(store, CuckooTask::Build), 0, ITEMS));
    for size in [0, 1, 7, 1_000] {
        let batch = Lookups::Batch(size);
        both(&mut bench, &mut model, &part(job(store, CuckooTask::Hit(batch)), 0, 100));
        both(&mut bench, &mut model, &part(job(store, CuckooTask::Miss(batch)), 0, 100));
    }
    for (store, engine) in [
        (PointStore::Btree, Engine::Btree),
        (PointStore::Sqlite, Engine::Sqlite),
        (PointStore::Array, Engine::Array),
    ] {
        let lookups = job(store, CuckooTask::Hit(Lookups::Batch(10)));
        let refused: Result<Performed> = bench.update("perform", (part(lookups, 0, 5),));
        let operation = "look up in batches".to_owned();
        assert_eq!(refused, Err(Error::Unsupported { engine, operation }));
    }
}

#[test]
fn items_come_one_after_the_other() {
    let build = job(STORES[0], CuckooTask::Build);
    let mut bench = Bench::new();
    bench.update::<Performed>("perform", (part(build, 0, 10),)).unwrap();
    for (from, count) in [(0, 5), (11, 5), (10, ITEMS)] {
        let refused: Result<Performed> = bench.update("perform", (part(build, from, count),));
        let Err(Error::Unsupported { engine: Engine::Cuckoo, operation }) = refused else {
            panic!("{refused:?}")
        };
        assert!(operation.contains("it has 10"), "{operation}");
    }
    // Nothing can be looked up in a table that is not finished.
    let hit = part(job(STORES[0], CuckooTask::Hit(SINGLE)), 0, 1);
    let refused: Result<Performed> = bench.update("perform", (hit,));
    assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    bench.update::<Performed>("perform", (part(build, 10, ITEMS - 10),)).unwrap();
}

/// Items that find no place end the message: those before them are taken away again.
#[test]
fn a_table_that_cannot_be_built_says_so_and_changes_nothing() {
    let full = Cuckoo { buckets: 128, items: 200, ..job(STORES[0], CuckooTask::Build) };
    let mut bench = Bench::new();
    bench.update::<Performed>("perform", (part(full, 0, 50),)).unwrap();
    let before = content(&bench, full);
    let arguments = candid::encode_args((part(full, 50, 150),)).unwrap();
    let execution = bench.0.update(CONTROLLER, "perform", &arguments).unwrap();
    let reject = execution.outcome.unwrap_err().to_string();
    assert!(reject.contains("more buckets") && reject.contains("% full"), "{reject}");
    assert_eq!(content(&bench, full), before);
    bench.update::<Performed>("perform", (part(full, 50, 1),)).unwrap();
}
