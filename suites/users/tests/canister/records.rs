//! Engines of keys and values against a map, over seeded streams of operations.

use crate::heap::HeapRecords;
use crate::memory::HeapMemory;
use stablebench_harness::Records;
use stablebench_protocol::{Engine, Error, Occupant};
use stablebench_suite_users::canister::floor::Floor;
use stablebench_workload::Rng;
use stablebench_workload::digits::key;
use std::collections::BTreeMap;
use std::ops::ControlFlow;

type Map = BTreeMap<Vec<u8>, Vec<u8>>;

/// The longest value, which comes first: slots of the array hold what the first one does.
const LONGEST: u64 = 50;

fn all(engine: &mut dyn Records, from: &[u8], limit: usize) -> Map {
    let mut rows = Map::new();
    let mut last = None;
    engine
        .scan(from, &mut |key, value| {
            assert!(last.as_deref() < Some(key), "keys ascend");
            last = Some(key.to_vec());
            rows.insert(key.to_vec(), value.to_vec());
            if rows.len() < limit { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        })
        .unwrap();
    rows
}

fn check(engine: &mut dyn Records, seed: u64) {
    let (mut rng, mut map) = (Rng::new(seed), Map::new());
    engine.prepare().unwrap();
    let mut first = Some(LONGEST);
    for step in 0..300u64 {
        let key = key(rng.below(40)).to_vec();
        match rng.below(20) {
            _ if first.is_some() => {
                let value = vec![7; first.take().unwrap() as usize];
                engine.begin().unwrap();
                engine.put(&key, &value).unwrap();
                engine.commit().unwrap();
                map.insert(key, value);
            }
            0 => {
                engine.clear().unwrap();
                map.clear();
                first = Some(LONGEST);
            }
            1..12 => {
                engine.begin().unwrap();
                for nth in 0..rng.below(4) {
                    let key = stablebench_workload::digits::key(rng.below(40));
                    let value = vec![step as u8 ^ nth as u8; rng.below(LONGEST + 1) as usize];
                    engine.put(&key, &value).unwrap();
                    map.insert(key.to_vec(), value);
                }
                engine.commit().unwrap();
            }
            12..14 => {
                engine.begin().unwrap();
                engine.delete(&key).unwrap();
                engine.commit().unwrap();
                map.remove(&key);
            }
            14..17 => {
                let mut found = None;
                let there = engine.get(&key, &mut |value| found = Some(value.to_vec())).unwrap();
                assert_eq!((there, &found), (map.contains_key(&key), &map.get(&key).cloned()));
            }
            _ => {
                let limit = 1 + rng.below(10) as usize;
                let expected = map.range(key.clone()..).take(limit);
                let expected: Map = expected.map(|(k, v)| (k.clone(), v.clone())).collect();
                assert_eq!(all(engine, &key, limit), expected);
            }
        }
        assert_eq!(engine.rows().unwrap(), map.len() as u64);
        assert_eq!(engine.last_key().unwrap(), map.last_key_value().map(|(key, _)| key.clone()));
    }
    assert_eq!(all(engine, &key(0), usize::MAX), map);
}

#[test]
fn a_map_on_the_heap_holds_what_was_put() {
    (0..30).for_each(|seed| check(&mut HeapRecords::default(), seed));
}

#[test]
fn the_array_of_slots_holds_what_was_put() {
    for seed in 0..30 {
        let mut floor = Floor::new(HeapMemory::default());
        check(floor.records(Engine::ARRAY).unwrap(), seed);
    }
}

#[test]
fn the_array_has_keys_of_digits_and_slots_of_one_length() {
    let mut floor = Floor::new(HeapMemory::default());
    for engine in [Engine::BTREE, Engine::SQLITE, Engine::APPEND] {
        let refused = floor.records(engine).err();
        assert_eq!(refused, Some(Error::EngineUnavailable { engine }));
    }
    let array = floor.records(Engine::ARRAY).unwrap();
    for key in [&b"1"[..], b"000000000000000x"] {
        assert!(matches!(array.put(key, b""), Err(Error::Unsupported { .. })));
    }
    assert!(matches!(array.put(&key(9_999_999_999_999_999), b""), Err(Error::IdOverflow { .. })));
    assert!(matches!(array.put(&key(10_000_000), &[0; 100]), Err(Error::OutOfStableMemory { .. })));
    array.put(&key(5), b"longest").unwrap();
    assert_eq!(array.put(&key(5), b"too long"), Err(Error::PayloadTooLong { limit: 7 }));
    // Six slots of a length, a key and a value.
    assert_eq!(array.stored_bytes(), Ok(6 * (4 + 16 + 7)));
    assert_eq!(floor.owner(), Some(Engine::ARRAY));
    floor.records(Engine::ARRAY).unwrap().clear().unwrap();
    assert_eq!(floor.owner(), None);
    // The log of rows and the array do not share the memory.
    let mut floor = Floor::new(HeapMemory::default());
    let rows = stablebench_suite_users::work::Ids::new(0, 10, 1).unwrap();
    let log = floor.engine(Engine::APPEND).unwrap();
    log.transaction(&mut |log| log.insert(rows.into(), "a")).unwrap();
    let refused = floor.records(Engine::ARRAY).err();
    let occupant = Occupant::Floor(Engine::APPEND);
    assert_eq!(refused, Some(Error::StableMemoryTaken { occupant }));
}

#[test]
fn keys_and_values_survive_an_upgrade() {
    let memory = HeapMemory::default();
    let mut floor = Floor::new(memory.clone());
    floor.records(Engine::ARRAY).unwrap().put(&key(3), b"three").unwrap();
    floor.save(stablebench_harness::State::default()).unwrap();
    let mut floor = Floor::new(memory);
    floor.load().unwrap();
    let array = floor.records(Engine::ARRAY).unwrap();
    assert_eq!(all(array, &key(0), 9), Map::from([(key(3).to_vec(), b"three".to_vec())]));
}
