//! The plan of a table, and the blocks of a key, which MurmurHash64A chooses.
//!
//! The hash, by Austin Appleby, who gave it to the public domain:
//!
//! ```text
//! h = seed ^ (length * M)                        all arithmetic modulo 2⁶⁴
//! for each word w of 8 bytes, little-endian:
//!     w = w * M;  w = w ^ (w >> 47);  w = w * M;  h = (h ^ w) * M
//! if bytes are left, r of them as a little-endian number:  h = (h ^ r) * M
//! h = h ^ (h >> 47);  h = h * M;  h = h ^ (h >> 47)
//! ```

use crate::Error;

/// The first of a key's two hashes. The second is always MurmurHash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstHash {
    /// MurmurHash of the key: good for keys of any kind.
    #[default]
    Murmur,
    /// The last eight bytes of the key as a number: without any computation, and good for keys that are
    /// already spread evenly, such as consecutive or random ids.
    Identity,
}

/// The plan of a table.
///
/// ```
/// use stablebench_cuckoo::{FirstHash, Plan};
///
/// let plan = Plan { first_hash: FirstHash::Identity, ..Plan::for_items(1_000_000) };
/// assert_eq!(plan.buckets, 1_111_112);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The number of buckets that hashes point to. Items per bucket are the table's *utilisation*.
    pub buckets: u64,
    /// The number of buckets of a block, which one read fetches.
    pub block: u8,
    /// The first hash.
    pub first_hash: FirstHash,
    /// The maximum number of buckets that are searched for one that can be emptied, before an item is
    /// refused. It bounds the work for an item: two reads for each.
    pub search: u32,
}

impl Plan {
    /// The plan of a table that is 90 % full with a number of items: two hashes, blocks of 5, and a search
    /// of 1 000.
    pub fn for_items(items: u64) -> Self {
        let buckets = items.saturating_add(items / 9).saturating_add(1);
        Self { buckets, block: 5, first_hash: FirstHash::Murmur, search: 1_000 }
    }
}

/// The buckets in which a key can be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Shape {
    pub buckets: u64,
    pub block: u8,
    pub first_hash: FirstHash,
}

/// The number of hashes, and so of blocks that a key can be in.
pub(crate) const HASHES: u8 = 2;

/// RocksDB's seed of its second hash; that of the first is 0.
const SEED: u64 = 816_922_183;

impl Shape {
    /// # Errors
    ///
    /// [`Error::UnsoundPlan`].
    pub fn new(buckets: u64, block: u8, first_hash: FirstHash) -> Result<Self, Error> {
        if buckets == 0 || block == 0 || buckets.checked_add(u64::from(block)).is_none() {
            return Err(Error::UnsoundPlan);
        }
        Ok(Self { buckets, block, first_hash })
    }

    /// The number of all buckets, including the neighbours of the last block.
    pub fn all_buckets(&self) -> u64 {
        self.buckets + u64::from(self.block) - 1
    }

    /// The first bucket of the block that a hash, 0 or 1, points to.
    #[inline]
    pub fn block_of(&self, hash: u8, key: &[u8]) -> u64 {
        let hash = match (hash, self.first_hash) {
            (0, FirstHash::Identity) => identity(key),
            (0, FirstHash::Murmur) => murmur(key, 0),
            _ => murmur(key, SEED),
        };
        hash % self.buckets
    }
}

/// The last eight bytes, or as many as there are, as a big-endian number.
#[inline]
fn identity(key: &[u8]) -> u64 {
    match key.last_chunk() {
        Some(bytes) => u64::from_be_bytes(*bytes),
        None => key.iter().fold(0, |number, byte| number << 8 | u64::from(*byte)),
    }
}

const M: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The hash of bytes under a seed.
#[inline]
pub(crate) fn murmur(bytes: &[u8], seed: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    for word in words {
        let word = shift(u64::from_le_bytes(*word).wrapping_mul(M)).wrapping_mul(M);
        hash = (hash ^ word).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    shift(shift(hash).wrapping_mul(M))
}

#[inline]
fn shift(word: u64) -> u64 {
    word ^ (word >> SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_identity_is_the_number_that_a_key_is() {
        assert_eq!(identity(&7_u16.to_be_bytes()), 7);
        assert_eq!(identity(&u64::MAX.to_be_bytes()), u64::MAX);
        assert_eq!(identity(&(1_u128 << 90 | 5).to_be_bytes()), 5);
        assert_eq!(identity(&[]), 0);
    }

    /// With a power of two the remainder is what a mask would leave.
    #[test]
    fn blocks_begin_below_the_number_of_buckets() {
        for first_hash in [FirstHash::Murmur, FirstHash::Identity] {
            for buckets in [1, 7, 64] {
                let shape = Shape { buckets, block: 5, first_hash };
                for key in 0..1_000_u64 {
                    let key = key.to_be_bytes();
                    assert!((0..HASHES).all(|hash| shape.block_of(hash, &key) < buckets));
                }
            }
        }
    }

    #[test]
    fn unsound_plans_are_refused() {
        let shape = |buckets, block| Shape::new(buckets, block, FirstHash::Murmur);
        assert_eq!(shape(0, 5), Err(Error::UnsoundPlan));
        assert_eq!(shape(5, 0), Err(Error::UnsoundPlan));
        assert_eq!(shape(u64::MAX, 1), Err(Error::UnsoundPlan));
        assert_eq!(shape(1, 1).map(|shape| shape.all_buckets()), Ok(1));
        assert_eq!(shape(10, 5).map(|shape| shape.all_buckets()), Ok(14));
    }

    /// The verification value of SMHasher, the test suite of the hash's author: the hashes of 0, 1, …,
    /// 255 bytes, each with its own seed, hashed again.
    #[test]
    fn it_is_the_published_hash() {
        let key: Vec<u8> = (0..=255).collect();
        let hashes: Vec<u8> = (0..256_usize)
            .flat_map(|length| murmur(&key[..length], 256 - length as u64).to_le_bytes())
            .collect();
        assert_eq!(murmur(&hashes, 0) as u32, 0x1f0d_3804);
    }
}
