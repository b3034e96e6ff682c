use crate::Error;
use crate::murmur::murmur;

/// What the first of a key's two hashes is. The second is always MurmurHash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FirstHash {
    /// MurmurHash of the key: good for keys of any kind.
    #[default]
    Murmur,
    /// The last eight bytes of the key as a number: nothing to compute, and good for
    /// keys that are spread evenly already, such as consecutive or random ids.
    Identity,
}

/// How a table is to be built.
///
/// ```
/// use stablebench_cuckoo::{FirstHash, Plan};
///
/// let plan = Plan { first_hash: FirstHash::Identity, ..Plan::for_items(1_000_000) };
/// assert_eq!(plan.buckets, 1_111_112);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Plan {
    /// Buckets that hashes point to. Items a bucket is the table's *utilisation*.
    pub buckets: u64,
    /// Buckets of a block, which one read fetches.
    pub block: u8,
    /// What the first hash is.
    pub first_hash: FirstHash,
    /// How many buckets are looked into for one that can be emptied, before an item is
    /// refused. It bounds the work of an item: two reads for each.
    pub search: u32,
}

impl Plan {
    /// A table that is 90 % full with so many items: two hashes, blocks of 5, and a
    /// search of 1 000.
    pub fn for_items(items: u64) -> Self {
        let buckets = items.saturating_add(items / 9).saturating_add(1);
        Self { buckets, block: 5, first_hash: FirstHash::Murmur, search: 1_000 }
    }
}

/// Which buckets a key can be in.
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

    /// Buckets there are: the last block has its neighbours too.
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
    fn plans_that_cannot_be() {
        let shape = |buckets, block| Shape::new(buckets, block, FirstHash::Murmur);
        assert_eq!(shape(0, 5), Err(Error::UnsoundPlan));
        assert_eq!(shape(5, 0), Err(Error::UnsoundPlan));
        assert_eq!(shape(u64::MAX, 1), Err(Error::UnsoundPlan));
        assert_eq!(shape(1, 1).map(|shape| shape.all_buckets()), Ok(1));
        assert_eq!(shape(10, 5).map(|shape| shape.all_buckets()), Ok(14));
    }
}
