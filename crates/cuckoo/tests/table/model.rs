//! Any items, any plan: the table answers as the map does, or says that it cannot be built.

use ic_stable_structures::VectorMemory;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use stablebench_cuckoo::{Builder, Cuckoo, Error, FirstHash, Plan};
use std::collections::BTreeMap;

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
fn build(
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
        let memory = match build(&items, plan, &pieces) {
            Ok(memory) => memory,
            Err((memory, Error::CannotPlace { item, buckets, .. })) => {
                // What was placed is there; the one that was refused moved nothing away.
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
        let at_once = build(&items, plan, &[usize::MAX]).unwrap();
        prop_assert!(*at_once.borrow() == *table.into_memory().borrow());
    }

    #[test]
    fn walks_go_on_where_they_stopped(
        items in btree_map(keys(), any::<[u8; 3]>(), 0..100),
        piece in 1..20_usize,
    ) {
        let memory = build(&items, Plan::for_items(items.len() as u64 + 10), &[7]).unwrap();
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
