//! Tables: building, reading, upgrades, damage, and a `BTreeMap` as their model.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]

use ic_stable_structures::memory_manager::{MemoryId, MemoryManager};
use ic_stable_structures::{Memory, VectorMemory};
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use stablebench_cuckoo::{Builder, Cuckoo, Error, FirstHash, Plan};
use std::cell::Cell;
use std::collections::BTreeMap;
use std::rc::Rc;

/// A table of `u64` keys, and half of each as its value.
type Table<M = VectorMemory> = Cuckoo<u64, u32, M>;

fn items(keys: impl IntoIterator<Item = u64>) -> impl Iterator<Item = (u64, u32)> {
    keys.into_iter().map(|key| (key, (key / 2) as u32))
}

fn build(keys: impl IntoIterator<Item = u64>, plan: Plan) -> Result<Table, Error> {
    let mut builder = Builder::new(VectorMemory::default(), plan)?;
    builder.extend(items(keys))?;
    Ok(builder.finish())
}

/// All bytes of a memory.
fn bytes(memory: &VectorMemory) -> Vec<u8> {
    memory.borrow().clone()
}

/// A memory with these bytes.
fn memory(bytes: Vec<u8>) -> VectorMemory {
    Rc::new(bytes.into())
}

/// A memory that counts its reads and does not grow past a number of pages.
#[derive(Clone, Default)]
struct Counted {
    pub memory: VectorMemory,
    reads: Rc<Cell<u64>>,
    most: Option<u64>,
}

impl Memory for Counted {
    fn size(&self) -> u64 {
        self.memory.size()
    }

    fn grow(&self, pages: u64) -> i64 {
        match self.most {
            Some(most) if self.size() + pages > most => -1,
            _ => self.memory.grow(pages),
        }
    }

    fn read(&self, offset: u64, dst: &mut [u8]) {
        self.reads.set(self.reads.get() + 1);
        self.memory.read(offset, dst);
    }

    fn write(&self, offset: u64, src: &[u8]) {
        self.memory.write(offset, src);
    }
}

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
fn unsound_plans_are_refused() {
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

const BUCKETS: u64 = 1 << 14;

fn table(items_of_128: u64) -> (Cuckoo<u64, u32, Counted>, u64) {
    let number = BUCKETS * items_of_128 / 128;
    let plan = Plan { buckets: BUCKETS, ..Plan::for_items(0) };
    let mut builder = Builder::new(Counted::default(), plan).unwrap();
    builder.extend(items((0..number).map(|index| 2 * index))).unwrap();
    (builder.finish(), number)
}

fn reads(keys: impl Iterator<Item = u64>, items_of_128: u64) -> f64 {
    let (table, number) = table(items_of_128);
    let memory = table.into_memory();
    let count = memory.reads.clone();
    let table = Cuckoo::<u64, u32, _>::open(memory).unwrap();
    // Magic, lengths, and the whole header.
    let opened = count.replace(0);
    assert!(opened > 0);
    let mut looked_up = 0;
    for key in keys.take(number as usize) {
        let before = count.get();
        let found = table.get(&key).is_some();
        assert_eq!(found, key % 2 == 0);
        assert!(count.get() - before <= 2, "{key}");
        looked_up += 1;
    }
    count.get() as f64 / f64::from(looked_up)
}

#[test]
fn a_lookup_is_one_read_or_two() {
    let (hits, misses) = (|| (0..).map(|key| 2 * key), || (0..).map(|key| 2 * key + 1));
    let full = (reads(hits(), 120), reads(misses(), 120));
    let sparse = (reads(hits(), 70), reads(misses(), 70));
    assert!(1.0 < sparse.0 && sparse.0 < full.0 && full.0 < 1.5, "{sparse:?} {full:?}");
    assert!(1.0 < sparse.1 && sparse.1 < full.1 && full.1 < 2.0, "{sparse:?} {full:?}");
    // In the sparse table nearly every block has an empty bucket.
    assert!(sparse.1 < 1.25, "{sparse:?}");
}

#[test]
fn the_key_of_zeros_takes_no_read() {
    let (table, _) = table(70);
    let memory = table.into_memory();
    let count = memory.reads.clone();
    let table = Cuckoo::<u64, u32, _>::open(memory).unwrap();
    count.set(0);
    assert_eq!(table.get(&0), Some(0));
    assert_eq!(count.get(), 0);
}

#[test]
fn many_lookups_are_as_many_reads() {
    let (table, _) = table(120);
    let memory = table.into_memory();
    let count = memory.reads.clone();
    let table = Cuckoo::<u64, u32, _>::open(memory).unwrap();
    let keys: Vec<u64> = (0..100).map(|key| key * 7).collect();
    count.set(0);
    let many = table.get_many(&keys);
    let reads = count.replace(0);
    let each: Vec<_> = keys.iter().map(|key| table.get(key)).collect();
    assert_eq!(many, each);
    assert_eq!(reads, count.get());
}

/// After an upgrade only the bytes are left.
fn upgrade(before: &VectorMemory) -> VectorMemory {
    memory(bytes(before))
}

#[test]
fn a_table_survives_an_upgrade() {
    let table = build((0..1_000).map(|key| key * 5), Plan::for_items(1_000)).unwrap();
    let after = Table::open(upgrade(&table.into_memory())).unwrap();
    assert!(
        items((0..1_000).map(|key| key * 5)).all(|(key, value)| after.get(&key) == Some(value))
    );
    assert_eq!(after.len(), 1_000);
}

#[test]
fn a_build_survives_an_upgrade() {
    let mut builder = Builder::new(VectorMemory::default(), Plan::for_items(1_000)).unwrap();
    builder.extend(items(0..400)).unwrap();
    let halfway = upgrade(&builder.into_memory());
    let opened = Table::open(halfway.clone()).map(|_| ());
    assert_eq!(opened, Err(Error::Unfinished { items: 400 }));
    let mut builder = Builder::<u64, u32, _>::resume(halfway).unwrap();
    builder.extend(items(400..1_000)).unwrap();
    let table = builder.finish();
    let at_once = build(0..1_000, Plan::for_items(1_000)).unwrap();
    assert!(bytes(&table.into_memory()) == bytes(&at_once.into_memory()));
}

#[test]
fn a_finished_table_is_not_added_to() {
    let memory = build(0..10, Plan::for_items(10)).unwrap().into_memory();
    let resumed = Builder::<u64, u32, _>::resume(memory.clone()).map(|_| ());
    assert_eq!(resumed.unwrap_err(), Error::Finished);
    let begun = Builder::<u64, u32, _>::new(memory, Plan::for_items(10)).map(|_| ());
    assert_eq!(begun.unwrap_err(), Error::NotEmpty);
}

/// A later table, larger or smaller and of other types, shows nothing of the one before.
#[test]
fn a_table_can_take_the_place_of_another() {
    for buckets in [1, 100, 30_000] {
        let plan = Plan { buckets, ..Plan::for_items(0) };
        let older = build(0..9_000, Plan::for_items(9_000)).unwrap().into_memory();
        let table: Cuckoo<[u8; 5], [u8; 2], _> =
            Builder::replace(older.clone(), plan).unwrap().finish();
        assert_eq!(table.iter().next(), None);
        assert_eq!(Table::open(older).map(|_| ()).unwrap_err().to_string(), OTHER_LENGTHS);
    }
    let first = Builder::<u64, u32, _>::replace(VectorMemory::default(), Plan::for_items(1));
    assert!(first.is_ok());
}

const OTHER_LENGTHS: &str = "the table has keys of 5 and values of 2 bytes, not 8 and 4";

#[test]
fn foreign_bytes_are_not_replaced() {
    let foreign = memory(vec![7; 65_536]);
    let replaced = Builder::<u64, u32, _>::replace(foreign.clone(), Plan::for_items(1));
    assert_eq!(replaced.map(|_| ()).unwrap_err(), Error::Foreign);
    assert!(bytes(&foreign) == vec![7; 65_536]);
}

/// Tables in memories of one manager, as in a canister.
#[test]
fn tables_in_a_memory_manager() {
    let manager = MemoryManager::init(VectorMemory::default());
    let build = |id, keys: std::ops::Range<u64>| {
        let plan = Plan::for_items(keys.end - keys.start);
        let mut builder = Builder::new(manager.get(MemoryId::new(id)), plan).unwrap();
        builder.extend(items(keys)).unwrap();
        builder.finish()
    };
    // More than the 8 MiB that the manager gives out at a time: blocks cross the border.
    let (one, other) = (build(3, 0..700_000), build(9, 500..600));
    assert!(one.into_memory().size() > 128);
    let one = Cuckoo::<u64, u32, _>::open(manager.get(MemoryId::new(3))).unwrap();
    assert!((0..700_000).all(|key| one.get(&key) == Some((key / 2) as u32)));
    assert_eq!(other.get(&555), Some(277));
    assert_eq!(other.get(&499), None);
}

/// 48 bytes, the largest key and the value of key 0, up to a multiple of 8.
const HEADER: usize = 64;

fn finished_table() -> Vec<u8> {
    bytes(&build(0..50, Plan::for_items(50)).unwrap().into_memory())
}

#[test]
fn a_flipped_bit_of_the_header_is_refused() {
    let table = finished_table();
    for bit in 0..HEADER * 8 {
        let mut damaged = table.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let error = Table::open(memory(damaged.clone())).map(|_| ()).unwrap_err();
        match bit / 8 {
            0..3 => assert_eq!(error, Error::Foreign),
            3 => assert!(matches!(error, Error::Version { known: 1, .. })),
            4..12 => assert!(matches!(error, Error::Lengths { key_asked: 8, .. })),
            _ => assert_eq!(error, Error::Damaged, "bit {bit}"),
        }
        assert!(Builder::<u64, u32, _>::resume(memory(damaged)).is_err());
    }
}

/// Bytes of buckets are not checked: whatever is there, lookups and walks end.
#[test]
fn damaged_buckets_do_no_harm_beyond_their_items() {
    let table = finished_table();
    let end = Table::open(memory(table.clone())).unwrap().bytes() as usize;
    for byte in HEADER..end {
        let mut damaged = table.clone();
        damaged[byte] ^= 0xff;
        let damaged = Table::open(memory(damaged)).unwrap();
        let lost = (0..50).filter(|key| damaged.get(key) != Some((key / 2) as u32)).count();
        assert!(lost <= 1, "{lost} items for one byte");
        assert!(damaged.iter().count() <= 65);
    }
}

#[test]
fn a_memory_that_ends_early_is_refused() {
    let table = build(0..20_000, Plan::for_items(20_000)).unwrap();
    let needed = table.bytes();
    let all = bytes(&table.into_memory());
    let pages = needed.div_ceil(65_536);
    assert_eq!(all.len() as u64, pages * 65_536);
    for there in 1..pages {
        let found = there * 65_536;
        let cut = memory(all[..found as usize].to_vec());
        let opened = Table::open(cut).map(|_| ());
        assert_eq!(opened.unwrap_err(), Error::Truncated { needed, found });
    }
    assert!(Table::open(memory(all)).is_ok());
}

/// A header can be longer than the first page.
#[test]
fn long_keys_and_a_memory_that_ends_in_the_header() {
    type Long = [u8; 70_000];
    let mut builder = Builder::new(VectorMemory::default(), Plan::for_items(2)).unwrap();
    builder.extend([([1; 70_000], 1_u8), ([2; 70_000], 2)]).unwrap();
    let table: Cuckoo<Long, u8, _> = builder.finish();
    assert_eq!(table.get(&[2; 70_000]), Some(2));
    let first = bytes(&table.into_memory())[..65_536].to_vec();
    let opened = Cuckoo::<Long, u8, _>::open(memory(first)).map(|_| ());
    assert!(matches!(opened, Err(Error::Truncated { found: 65_536, .. })));
}

#[test]
fn memories_that_hold_something_else() {
    for foreign in [vec![], vec![0; 65_536], vec![0xff; 65_536], b"BTR\x01".repeat(16_384)] {
        let opened = Table::open(memory(foreign.clone())).map(|_| ());
        assert_eq!(opened.unwrap_err(), Error::Foreign);
        let resumed = Builder::<u64, u32, _>::resume(memory(foreign)).map(|_| ());
        assert_eq!(resumed.unwrap_err(), Error::Foreign);
    }
}

fn plans() -> impl Strategy<Value = Plan> {
    let first_hash = prop_oneof![Just(FirstHash::Murmur), Just(FirstHash::Identity)];
    (1..400_u64, 1..9_u8, first_hash, 0..300_u32).prop_map(
        |(buckets, block, first_hash, search)| Plan { buckets, block, first_hash, search },
    )
}

/// Keys that are near each other, far apart, zero and the largest.
fn keys() -> impl Strategy<Value = u64> {
    prop_oneof![0..600_u64, any::<u64>(), Just(0), Just(u64::MAX)]
}

/// Builds in pieces of the lengths that are given, resumed in between.
fn build_in_parts(
    items: &BTreeMap<u64, [u8; 3]>,
    plan: Plan,
    pieces: &[usize],
) -> Result<VectorMemory, (VectorMemory, Error)> {
    let memory = VectorMemory::default();
    let mut builder = Builder::<u64, [u8; 3], _>::new(memory.clone(), plan).unwrap();
    let mut items = items.iter().map(|(key, value)| (*key, *value)).peekable();
    let mut pieces = pieces.iter().cycle();
    while items.peek().is_some() {
        let piece = pieces.next().copied().unwrap_or(1);
        let added = builder.extend(items.by_ref().take(piece));
        added.map_err(|error| (memory.clone(), error))?;
        builder = Builder::resume(builder.into_memory()).unwrap();
    }
    builder.finish();
    Ok(memory)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn the_table_answers_as_the_map_does(
        items in btree_map(keys(), any::<[u8; 3]>(), 0..350),
        others in vec(keys(), 0..100),
        plan in plans(),
        pieces in vec(1..50_usize, 1..5),
    ) {
        let memory = match build_in_parts(&items, plan, &pieces) {
            Ok(memory) => memory,
            Err((memory, Error::CannotPlace { item, buckets, .. })) => {
                // All earlier items exist; the one that was refused has moved none away.
                prop_assert_eq!(buckets, plan.buckets);
                let builder = Builder::<u64, [u8; 3], _>::resume(memory.clone()).unwrap();
                prop_assert_eq!(builder.items(), item);
                builder.finish();
                let table = Cuckoo::<u64, [u8; 3], _>::open(memory).unwrap();
                for (key, value) in items.iter().take(item as usize) {
                    prop_assert_eq!(table.get(key), Some(*value));
                }
                return Ok(());
            }
            Err((_, error)) => return Err(TestCaseError::fail(error.to_string())),
        };

        let table = Cuckoo::<u64, [u8; 3], _>::open(memory).unwrap();
        prop_assert_eq!(table.len(), items.len() as u64);
        prop_assert_eq!(table.is_empty(), items.is_empty());
        let keys: Vec<u64> = items.keys().copied().chain(others).collect();
        for key in &keys {
            prop_assert_eq!(table.get(key), items.get(key).copied());
            prop_assert_eq!(table.contains_key(key), items.contains_key(key));
        }
        let expected: Vec<_> = keys.iter().map(|key| items.get(key).copied()).collect();
        prop_assert_eq!(table.get_many(&keys), expected);
        prop_assert_eq!(&table.iter().collect::<BTreeMap<_, _>>(), &items);
        prop_assert_eq!(table.iter().count(), items.len());

        // Cut elsewhere, the same items make the same bytes.
        let at_once = build_in_parts(&items, plan, &[usize::MAX]).unwrap();
        prop_assert!(*at_once.borrow() == *table.into_memory().borrow());
    }

    #[test]
    fn walks_go_on_where_they_stopped(
        items in btree_map(keys(), any::<[u8; 3]>(), 0..100),
        piece in 1..20_usize,
    ) {
        let memory = build_in_parts(&items, Plan::for_items(items.len() as u64 + 10), &[7]).unwrap();
        let table = Cuckoo::<u64, [u8; 3], _>::open(memory).unwrap();
        let (mut walked, mut position) = (Vec::new(), 0);
        loop {
            let mut walk = table.iter_from(position);
            let before = walked.len();
            walked.extend(walk.by_ref().take(piece));
            position = walk.position();
            if walked.len() - before < piece {
                break;
            }
        }
        prop_assert_eq!(walked, table.iter().collect::<Vec<_>>());
    }
}
