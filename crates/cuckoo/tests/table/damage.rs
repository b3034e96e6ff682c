//! Bytes that are no table, or no longer one.

use crate::support::{Table, build, bytes, memory};
use ic_stable_structures::VectorMemory;
use stablebench_cuckoo::{Builder, Cuckoo, Error, Plan};

/// 48 bytes, the largest key and the value of key 0, up to a multiple of 8.
const HEADER: usize = 64;

fn table() -> Vec<u8> {
    bytes(&build(0..50, Plan::for_items(50)).unwrap().into_memory())
}

#[test]
fn a_flipped_bit_of_the_header_is_refused() {
    let table = table();
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
    let table = table();
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
