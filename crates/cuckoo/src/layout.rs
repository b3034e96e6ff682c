//! The layout of a table: a header, written whenever items were added, and the buckets in which a key
//! can be. Numbers are little-endian.
//!
//! ```text
//!   0  3  "CKO"
//!   3  1  version: 1
//!   4  4  bytes of a key, k
//!   8  4  bytes of a value, v
//!  12  1  buckets of a block
//!  13  1  the first hash: 0 MurmurHash, 1 the identity
//!  14  1  1 if the table is finished
//!  15  1  1 if the key of zeros is in the table
//!  16  8  buckets
//!  24  8  items
//!  32  4  the maximum number of buckets searched for an item
//!  36  4  0
//!  40  8  checksum: MurmurHash64A, seed 0, of the whole header with zeros here
//!  48  k  the largest key
//!   …  v  the value of the key of zeros
//!   …  …  zeros up to a multiple of 8: the first bucket
//! ```
//!
//! MurmurHash64A chooses the blocks of a key. It is by Austin Appleby, who gave it to the public domain:
//!
//! ```text
//! h = seed ^ (length * M)                        all arithmetic modulo 2⁶⁴
//! for each word w of 8 bytes, little-endian:
//!     w = w * M;  w = w ^ (w >> 47);  w = w * M;  h = (h ^ w) * M
//! if bytes are left, r of them as a little-endian number:  h = (h ^ r) * M
//! h = h ^ (h >> 47);  h = h * M;  h = h ^ (h >> 47)
//! ```

use crate::Error;
use ic_stable_structures::Memory;

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

const MAGIC: &[u8; 3] = b"CKO";
const VERSION: u8 = 1;
/// Bytes up to the largest key.
const FIXED: usize = 48;
const CHECKSUM: usize = 40;

pub(crate) const PAGE: u64 = 65_536;

/// The header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    pub lengths: Lengths,
    pub shape: Shape,
    pub search: u32,
    pub finished: bool,
    pub items: u64,
    /// The largest key, if there are items.
    pub largest: Vec<u8>,
    /// The value of the key of zeros, if it is in the table.
    pub zero: Option<Vec<u8>>,
}

/// Bytes of keys and of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Lengths {
    pub key: u32,
    pub value: u32,
}

impl Lengths {
    /// Bytes of a bucket.
    pub fn bucket(self) -> u64 {
        u64::from(self.key) + u64::from(self.value)
    }

    /// The offset of the first bucket.
    pub fn header(self) -> u64 {
        (FIXED as u64 + self.bucket()).next_multiple_of(8)
    }
}

impl Header {
    /// The header of an empty table.
    pub fn new(lengths: Lengths, plan: Plan) -> Result<Self, Error> {
        let shape = Shape::new(plan.buckets, plan.block, plan.first_hash)?;
        let largest = vec![0; lengths.key as usize];
        let header = Self {
            lengths,
            shape,
            search: plan.search,
            finished: false,
            items: 0,
            largest,
            zero: None,
        };
        header.bytes().map(|_| header).ok_or(Error::UnsoundPlan)
    }

    /// Bytes of the whole table; nothing if the number overflows.
    pub fn bytes(&self) -> Option<u64> {
        let buckets = self.shape.all_buckets().checked_mul(self.lengths.bucket())?;
        buckets.checked_add(self.lengths.header())?.checked_next_multiple_of(PAGE)?;
        buckets.checked_add(self.lengths.header())
    }

    /// Returns `true` if a memory begins like a table of any version or kind.
    pub fn is_there(memory: &impl Memory) -> bool {
        let mut magic = [0; MAGIC.len()];
        if memory.size() > 0 {
            memory.read(0, &mut magic);
        }
        magic == *MAGIC
    }

    pub fn write(&self, memory: &impl Memory) {
        memory.write(0, &self.encode());
    }

    /// # Errors
    ///
    /// If the bytes are no header, or a damaged one.
    pub fn read(memory: &impl Memory, lengths: Lengths) -> Result<Self, Error> {
        if !Self::is_there(memory) {
            return Err(Error::Foreign);
        }
        // The lengths are checked before any other byte is read.
        let mut fixed = [0; 12];
        memory.read(0, &mut fixed);
        let [_, _, _, version, key @ .., _, _, _, _] = fixed;
        let [.., v0, v1, v2, v3] = fixed;
        if version != VERSION {
            return Err(Error::Version { found: version, known: VERSION });
        }
        let found =
            Lengths { key: u32::from_le_bytes(key), value: u32::from_le_bytes([v0, v1, v2, v3]) };
        if found != lengths {
            let (key_asked, value_asked) = (lengths.key, lengths.value);
            return Err(Error::Lengths {
                key: found.key,
                value: found.value,
                key_asked,
                value_asked,
            });
        }
        let existing = memory.size().saturating_mul(PAGE);
        if existing < lengths.header() {
            return Err(Error::Truncated { needed: lengths.header(), found: existing });
        }
        let mut bytes = vec![0; lengths.header() as usize];
        memory.read(0, &mut bytes);
        let header = Self::decode(&bytes, lengths).ok_or(Error::Damaged)?;
        let needed = header.bytes().ok_or(Error::Damaged)?;
        if existing < needed {
            return Err(Error::Truncated { needed, found: existing });
        }
        Ok(header)
    }

    fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(self.lengths.header() as usize);
        bytes.extend(MAGIC);
        bytes.push(VERSION);
        bytes.extend(self.lengths.key.to_le_bytes());
        bytes.extend(self.lengths.value.to_le_bytes());
        bytes.push(self.shape.block);
        bytes.push(match self.shape.first_hash {
            FirstHash::Murmur => 0,
            FirstHash::Identity => 1,
        });
        bytes.push(self.finished.into());
        bytes.push(self.zero.is_some().into());
        bytes.extend(self.shape.buckets.to_le_bytes());
        bytes.extend(self.items.to_le_bytes());
        bytes.extend(self.search.to_le_bytes());
        bytes.resize(FIXED, 0);
        bytes.extend(&self.largest);
        bytes.extend(self.zero.as_deref().unwrap_or_default());
        bytes.resize(self.lengths.header() as usize, 0);
        let checksum = murmur(&bytes, 0).to_le_bytes();
        bytes[CHECKSUM..FIXED].copy_from_slice(&checksum);
        bytes
    }

    fn decode(bytes: &[u8], lengths: Lengths) -> Option<Self> {
        let mut reader = Reader(bytes.get(12..)?);
        let [block, first_hash, finished, zero] = reader.array()?;
        let header = Self {
            lengths,
            shape: Shape {
                block,
                first_hash: match first_hash {
                    0 => FirstHash::Murmur,
                    1 => FirstHash::Identity,
                    _ => return None,
                },
                buckets: u64::from_le_bytes(reader.array()?),
            },
            finished: finished == 1,
            items: u64::from_le_bytes(reader.array()?),
            search: u32::from_le_bytes(reader.array()?),
            largest: bytes.get(FIXED..)?.get(..lengths.key as usize)?.to_vec(),
            zero: match zero {
                0 => None,
                _ => {
                    let from = FIXED + lengths.key as usize;
                    Some(bytes.get(from..)?.get(..lengths.value as usize)?.to_vec())
                }
            },
        };
        Shape::new(header.shape.buckets, block, header.shape.first_hash).ok()?;
        // Encoding the header again must give the same bytes, including the checksum.
        (header.encode() == bytes).then_some(header)
    }
}

/// The buckets of a table in its memory.
pub(crate) struct Buckets<M> {
    pub memory: M,
    pub shape: Shape,
    start: u64,
    bucket_bytes: u64,
}

impl<M: Memory> Buckets<M> {
    /// The caller has checked that the memory is as large as the header requires.
    pub fn new(memory: M, header: &Header) -> Self {
        let Header { lengths, shape, .. } = header;
        Self { memory, shape: *shape, start: lengths.header(), bucket_bytes: lengths.bucket() }
    }

    /// Returns a buffer of the length of a block.
    pub fn buffer(&self) -> Vec<u8> {
        vec![0; usize::from(self.shape.block) * self.bucket_bytes as usize]
    }

    /// Reads the buckets that fill `bytes`, starting at `first`.
    #[inline]
    pub fn read(&self, first: u64, bytes: &mut [u8]) {
        self.memory.read(self.start + first * self.bucket_bytes, bytes);
    }

    /// Writes one bucket.
    pub fn write(&self, bucket: u64, item: &[u8]) {
        self.memory.write(self.start + bucket * self.bucket_bytes, item);
    }
}

struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (array, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*array)
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
