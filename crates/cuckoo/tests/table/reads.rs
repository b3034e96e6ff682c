//! How many reads a lookup takes.

use crate::support::{Counted, items};
use stablebench_cuckoo::{Builder, Cuckoo, Plan};

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
