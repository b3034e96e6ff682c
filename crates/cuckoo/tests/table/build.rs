//! What can be built, and how what cannot is refused.

use crate::support::{Counted, Table, build, items};
use ic_stable_structures::{Memory, VectorMemory};
use stablebench_cuckoo::{Builder, Cuckoo, Error, FirstHash, Plan};

fn plan(buckets: u64, first_hash: FirstHash) -> Plan {
    Plan { buckets, first_hash, ..Plan::for_items(0) }
}

#[test]
fn an_empty_table() {
    let table = build([], Plan::for_items(0)).unwrap();
    assert!(table.is_empty());
    assert_eq!(table.get(&0), None);
    assert_eq!(table.get(&1), None);
    assert_eq!(table.iter().next(), None);
}

#[test]
fn one_item() {
    for key in [0, 1, u64::MAX] {
        let table = build([key], Plan { block: 1, ..plan(1, FirstHash::Murmur) }).unwrap();
        assert_eq!(table.len(), 1);
        assert_eq!(table.get(&key), Some((key / 2) as u32));
        assert_eq!(table.get(&(key ^ 5)), None);
    }
}

/// The utilisations that RocksDB published, with its blocks of 5 and both of its first hashes,
/// for consecutive even keys as there and for keys that are spread.
#[test]
fn published_utilisations_can_be_built() {
    const BUCKETS: u64 = 1 << 14;
    let spread = |index: u64| (index << 40) | (index.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 24);
    for share in [120, 100, 80, 70] {
        let number = BUCKETS * share / 128;
        for first_hash in [FirstHash::Murmur, FirstHash::Identity] {
            for keys in [(|index| 2 * index) as fn(u64) -> u64, spread] {
                let table = build((0..number).map(keys), plan(BUCKETS, first_hash)).unwrap();
                assert_eq!(table.len(), number);
                for (key, value) in items((0..number).map(keys)) {
                    assert_eq!(table.get(&key), Some(value), "{share} {first_hash:?}");
                }
            }
        }
    }
}

/// A table with room for the last bucket is full; one item more is refused, and says of what.
#[test]
fn a_full_table_refuses_what_does_not_fit() {
    let full = plan(64, FirstHash::Identity);
    // The last block has four neighbours, and key 0 needs no bucket.
    let error = build(0..70, full).map(|_| ()).unwrap_err();
    let Error::CannotPlace { item, buckets: 64, searched } = error else { panic!("{error}") };
    assert!((64..=69).contains(&item), "{item}");
    assert!(searched <= 68, "{searched}");
    let text = error.to_string();
    assert!(text.contains("more buckets") && text.contains("% full"), "{text}");
}

/// Without a search, items are refused earlier: the bound is kept.
#[test]
fn the_search_is_bounded() {
    let refused = |search| {
        let plan = Plan { search, ..plan(4_096, FirstHash::Murmur) };
        match build((1..5_000).map(|key| key * 3), plan).map(|_| ()) {
            Err(Error::CannotPlace { item, searched, .. }) => (item, searched),
            other => panic!("{other:?}"),
        }
    };
    let (without, searched) = refused(0);
    // Two blocks of five, which may overlap.
    assert!(searched <= 10, "{searched}");
    let (with, searched) = refused(100);
    assert!(with > without, "{with} {without}");
    // The last item whose blocks were looked into may go over the bound by its two blocks.
    assert!((100..110).contains(&searched), "{searched}");
}

#[test]
fn keys_come_in_order_and_once() {
    let mut builder = Builder::new(VectorMemory::default(), Plan::for_items(10)).unwrap();
    builder.extend(items([0, 3, 5])).unwrap();
    assert_eq!(builder.extend(items([5])), Err(Error::Duplicate { item: 3 }));
    assert_eq!(builder.extend(items([7, 6])), Err(Error::NotSorted { item: 4 }));
    assert_eq!(builder.extend(items([0])), Err(Error::NotSorted { item: 4 }));
    let mut builder = Builder::<u64, u32, _>::resume(builder.into_memory()).unwrap();
    assert_eq!(builder.extend(items([7])), Err(Error::Duplicate { item: 4 }));
    builder.extend(items([8])).unwrap();
    let table: Table = builder.finish();
    assert_eq!(table.iter().map(|(key, _)| key).max(), Some(8));
    assert_eq!(table.len(), 5);
    // The first key of all may be zero, and comes once.
    let mut builder = Builder::new(VectorMemory::default(), Plan::for_items(10)).unwrap();
    assert_eq!(builder.extend(items([0, 0])), Err(Error::Duplicate { item: 1 }));
}

#[test]
fn plans_that_cannot_be_followed() {
    for plan in [
        Plan { buckets: 0, ..Plan::for_items(1) },
        Plan { block: 0, ..Plan::for_items(1) },
        Plan { buckets: u64::MAX / 12, ..Plan::for_items(1) },
        Plan::for_items(u64::MAX),
    ] {
        assert_eq!(build([], plan).map(|_| ()), Err(Error::UnsoundPlan));
    }
    let memory = Counted { most: Some(2), ..Counted::default() };
    let built = Builder::<u64, u32, _>::new(memory.clone(), plan(20_000, FirstHash::Murmur));
    // 20 004 buckets of 12 bytes and the header are 240 112 bytes.
    assert_eq!(built.map(|_| ()).unwrap_err(), Error::OutOfMemory { pages: 4 });
    assert_eq!(memory.size(), 0);
}

/// Keys of one byte can be all there are; values can be nothing at all.
#[test]
fn short_keys_and_no_values() {
    let mut builder = Builder::new(VectorMemory::default(), Plan::for_items(256)).unwrap();
    builder.extend((0..=255).map(|key: u8| (key, []))).unwrap();
    let table: Cuckoo<u8, [u8; 0], _> = builder.finish();
    assert!((0..=255).all(|key| table.contains_key(&key)));
    assert_eq!(table.iter().count(), 256);
}
