//! A table through upgrades, and through tables that follow it.

use crate::support::{Table, build, bytes, items, memory};
use ic_stable_structures::memory_manager::{MemoryId, MemoryManager};
use ic_stable_structures::{Memory, VectorMemory};
use stablebench_cuckoo::{Builder, Cuckoo, Error, Plan};

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
