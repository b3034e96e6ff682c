//! Keys and values.
//!
//! ```text
//! key of item i   sequential: 2i      as RocksDB's benchmark has it
//!                 scattered:  i · span + a random even number below span
//! a key that is not there: one more than a key that is
//! value           the key's lowest four bytes, little-endian, as there
//! ```
//!
//! Keys are even, ascending with i, and below 2⁶², so that every store takes them as
//! they are. The span is a power of two and depends on the number of buckets, not on that
//! of items: a fuller store holds the items of a less full one, and more.

use crate::Rng;
use stablebench_protocol::{Cuckoo, CuckooKeys};

/// Bytes of an item.
pub const ITEM_BYTES: u64 = 12;

const LARGEST_BITS: u32 = 62;

/// The items of a job, whichever store they are in.
#[derive(Clone, Copy, Debug)]
pub struct Items {
    /// The bits that tell the keys of one span apart.
    bits: u32,
    scattered: bool,
    seed: u64,
}

impl Items {
    /// The items of a job.
    pub fn new(job: &Cuckoo, seed: u64) -> Self {
        let scattered = job.keys == CuckooKeys::Scattered;
        let bits = if scattered {
            LARGEST_BITS.saturating_sub(job.buckets.max(1).ilog2()).max(1)
        } else {
            1
        };
        Self { bits, scattered, seed }
    }

    /// The key of an item.
    pub fn key(&self, index: u64) -> u64 {
        let random = match self.scattered {
            true => Rng::new(self.seed.wrapping_add(index)).next_u64(),
            false => 0,
        };
        index << self.bits | random & ((1 << self.bits) - 2)
    }

    /// A key that no item has, next to that of one.
    pub fn absent(&self, index: u64) -> u64 {
        self.key(index) | 1
    }

    /// The item that a key is of, or is next to.
    #[inline]
    pub fn index(&self, key: u64) -> u64 {
        key >> self.bits
    }
}

/// The value of a key.
#[inline]
pub fn value(key: u64) -> [u8; 4] {
    (key as u32).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stablebench_protocol::{CuckooTask, PointStore};

    fn items(keys: CuckooKeys, seed: u64) -> Items {
        let (store, task) = (PointStore::Btree, CuckooTask::Build);
        Items::new(&Cuckoo { store, keys, buckets: 1 << 20, items: 1 << 20, task }, seed)
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
}
