use super::*;
use crate::job::Lookups;
use stablebench_protocol::{Engine, Job};

fn items(keys: CuckooKeys, seed: u64) -> Items {
    let (engine, task) = (Engine::BTREE, CuckooTask::Build);
    let items = 1 << 20;
    Items::new(&Cuckoo { engine, first_hash: None, keys, buckets: 1 << 20, items, task }, seed)
}

#[test]
fn sequential_keys_are_the_published_ones() {
    let items = items(CuckooKeys::Sequential, 7);
    assert_eq!([0, 1, 2, 1_000].map(|index| items.key(index)), [0, 2, 4, 2_000]);
    assert_eq!([0, 1, 2].map(|index| items.absent(index)), [1, 3, 5]);
    assert_eq!(value(0x0102_0304_0506_0708), [8, 7, 6, 5]);
}

#[test]
fn scattered_keys_ascend_and_are_even() {
    let items = items(CuckooKeys::Scattered, 7);
    let keys: Vec<u64> = (0..1 << 20).map(|index| items.key(index)).collect();
    assert!(keys.is_sorted_by(|one, next| one < next));
    assert!(keys.iter().all(|key| key % 2 == 0 && *key < 1 << 62));
    let low: std::collections::BTreeSet<u64> = keys.iter().map(|key| key % 4_096).collect();
    assert_eq!(low.len(), 2_048, "every even remainder is there");
    let other = Items { seed: 8, ..items };
    assert_ne!(keys[5], other.key(5));
}

#[test]
fn an_index_follows_from_its_key() {
    for keys in [CuckooKeys::Sequential, CuckooKeys::Scattered] {
        let items = items(keys, 3);
        for index in (0..1 << 20).step_by(997) {
            assert_eq!(items.index(items.key(index)), index);
            assert_eq!(items.index(items.absent(index)), index);
        }
    }
}

#[test]
fn each_number_once() {
    for limit in [1, 2, 3, 7, 64, 65, 1_000, 4_096] {
        let order = Order::new(limit, 5);
        let mut numbers: Vec<u64> = (0..limit).map(|position| order.place(position)).collect();
        let again: Vec<u64> = (limit..2 * limit).map(|position| order.place(position)).collect();
        assert_eq!(numbers, again);
        numbers.sort_unstable();
        assert_eq!(numbers, (0..limit).collect::<Vec<_>>());
    }
    assert_eq!(Order::new(0, 5).place(3), 0);
}

#[test]
fn the_order_looks_random_and_follows_from_the_seed() {
    let numbers = |seed| {
        let order = Order::new(1_000, seed);
        (0..1_000).map(|position| order.place(position)).collect::<Vec<_>>()
    };
    assert_eq!(numbers(1), numbers(1));
    assert_ne!(numbers(1), numbers(2));
    let ascents = numbers(1).windows(2).filter(|pair| pair[0] < pair[1]).count();
    assert!((450..550).contains(&ascents), "{ascents}");
    let distances: Vec<u64> = numbers(1).windows(2).map(|pair| pair[0].abs_diff(pair[1])).collect();
    let mean = distances.iter().sum::<u64>() / 999;
    assert!((300..366).contains(&mean), "a third of the limit: {mean}");
}

fn part(keys: CuckooKeys, task: CuckooTask, from: u64, count: u64) -> JobPart {
    let (engine, buckets, items) = (Engine::BTREE, 1 << 10, 700);
    let job = Cuckoo { engine, first_hash: None, keys, buckets, items, task };
    JobPart { job: Job::new(&job), seed: 9, from, count, each: false }
}

const HIT: CuckooTask = CuckooTask::Hit(Lookups::Single);
const MISS: CuckooTask = CuckooTask::Miss(Lookups::Single);

#[test]
fn the_content_does_not_depend_on_how_it_was_cut() {
    for keys in [CuckooKeys::Sequential, CuckooKeys::Scattered] {
        let mut at_once = CuckooModel::default();
        at_once.execute(&part(keys, CuckooTask::Build, 0, 700)).unwrap();
        let mut in_parts = CuckooModel::default();
        for from in (0..700).step_by(70) {
            in_parts.execute(&part(keys, CuckooTask::Build, from, 70)).unwrap();
        }
        assert_eq!(at_once.content(), in_parts.content());
        assert_eq!(at_once.content().rows, 700);
    }
}

#[test]
fn hits_are_found_and_misses_are_not() {
    for keys in [CuckooKeys::Sequential, CuckooKeys::Scattered] {
        let mut model = CuckooModel::default();
        let built = model.execute(&part(keys, CuckooTask::Build, 0, 700)).unwrap();
        assert_eq!(built, Expected { rows: 700, bytes: 8_400, results: None });
        let hit = model.execute(&part(keys, HIT, 0, 700)).unwrap();
        assert_eq!((hit.rows, hit.bytes), (700, 2_800));
        assert_ne!(hit.results, model.execute(&part(keys, HIT, 1, 700)).unwrap().results);
        let miss = model.execute(&part(keys, MISS, 0, 700)).unwrap();
        assert_eq!(miss, Expected { results: Some(Digest::default()), ..miss });
        assert_eq!((miss.rows, miss.bytes), (0, 0));
    }
}

#[test]
fn what_is_not_built_yet_is_not_found() {
    let mut model = CuckooModel::default();
    model.execute(&part(CuckooKeys::Scattered, CuckooTask::Build, 0, 350)).unwrap();
    let found = model.execute(&part(CuckooKeys::Scattered, HIT, 0, 700)).unwrap();
    assert_eq!(found.rows, 350);
}

/// The script of a part has its operations, and no others.
#[test]
fn a_script_says_the_same() {
    let build = part(CuckooKeys::Sequential, CuckooTask::Build, 3, 2);
    let build_script = script(&build, &build.job.decode().unwrap());
    assert!(build_script.writes);
    assert_eq!(build_script.statements.len(), 1);
    let keys: Vec<_> = build_script
        .operations
        .iter()
        .map(|calls| (calls.len(), calls[0].statement, calls[0].parameters.clone()))
        .collect();
    let row = |key: i64| {
        (1, 0, vec![Value::Integer(key), Value::Blob((key as u32).to_le_bytes().to_vec())])
    };
    assert_eq!(keys, [row(6), row(8)]);
    let miss = part(CuckooKeys::Sequential, MISS, 0, 5);
    let miss_script = script(&miss, &miss.job.decode().unwrap());
    assert!(!miss_script.writes);
    assert!(miss_script.operations.iter().all(|calls| calls[0].parameters.len() == 1));
}
