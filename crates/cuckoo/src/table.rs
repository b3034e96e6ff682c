//! Reading a table, whose keys and values have fixed lengths.

use crate::builder::lengths;
use crate::layout::{Buckets, HASHES, Header};
use crate::{Error, FirstHash};
use ic_stable_structures::Memory;
use std::cell::RefCell;
use std::marker::PhantomData;

/// A finished table.
pub struct Cuckoo<K, V, M> {
    header: Header,
    buckets: Buckets<M>,
    /// The buffer of blocks, so that no lookup has to allocate or clear it.
    block: RefCell<Vec<u8>>,
    types: PhantomData<fn(K) -> V>,
}

impl<K: Fixed, V: Fixed, M: Memory> Cuckoo<K, V, M> {
    /// Opens the table in a memory. Reads only its header.
    ///
    /// # Errors
    ///
    /// [`Error::Unfinished`], or the reason why the memory has no table of such keys and values.
    pub fn open(memory: M) -> Result<Self, Error> {
        let header = Header::read(&memory, lengths::<K, V>())?;
        if !header.finished {
            return Err(Error::Unfinished { items: header.items });
        }
        let buckets = Buckets::new(memory, &header);
        Ok(Self::new(header, buckets))
    }

    pub(crate) fn new(header: Header, buckets: Buckets<M>) -> Self {
        let block = RefCell::new(buckets.buffer());
        Self { header, buckets, block, types: PhantomData }
    }

    /// Returns the value of a key. Reads one block, and a second one if the first is full of other keys.
    #[inline]
    pub fn get(&self, key: &K) -> Option<V> {
        self.find(key, &mut self.block.borrow_mut())
    }

    /// Returns the values of keys in their order.
    ///
    /// Stable memory has no prefetching: this is [`get`](Self::get) in a loop.
    pub fn get_many(&self, keys: &[K]) -> Vec<Option<V>> {
        let mut block = self.block.borrow_mut();
        keys.iter().map(|key| self.find(key, &mut block)).collect()
    }

    /// Returns `true` if a key is in the table.
    pub fn contains_key(&self, key: &K) -> bool {
        self.get(key).is_some()
    }

    #[inline]
    fn find(&self, key: &K, block: &mut [u8]) -> Option<V> {
        let key = key.to_bytes();
        let (key, zero) = (key.as_ref(), K::Bytes::ZERO);
        if key == zero.as_ref() {
            return self.header.zero.as_deref().map(value);
        }
        for hash in 0..HASHES {
            self.buckets.read(self.buckets.shape.block_of(hash, key), block);
            for item in block.chunks_exact(K::Bytes::LENGTH + V::Bytes::LENGTH) {
                let (found, bytes) = item.split_at(K::Bytes::LENGTH);
                if found == key {
                    return Some(value(bytes));
                }
                if found == zero.as_ref() {
                    return None;
                }
            }
        }
        None
    }

    /// Returns the number of items.
    pub fn len(&self) -> u64 {
        self.header.items
    }

    /// Returns `true` if there are no items.
    pub fn is_empty(&self) -> bool {
        self.header.items == 0
    }

    /// Returns the number of buckets that hashes point to. Items per bucket are the utilisation.
    pub fn buckets(&self) -> u64 {
        self.header.shape.buckets
    }

    /// Returns the number of buckets of a block.
    pub fn block(&self) -> u8 {
        self.header.shape.block
    }

    /// Returns the first hash.
    pub fn first_hash(&self) -> FirstHash {
        self.header.shape.first_hash
    }

    /// Returns the bytes of memory that the table takes, including empty buckets and the header.
    pub fn bytes(&self) -> u64 {
        self.header.bytes().unwrap_or(u64::MAX)
    }

    /// Iterates over all items in an arbitrary but fixed order.
    pub fn iter(&self) -> Items<'_, K, V, M> {
        self.iter_from(0)
    }

    /// Iterates over the items, starting at a [position](Items::position); 0 is the beginning.
    pub fn iter_from(&self, position: u64) -> Items<'_, K, V, M> {
        let item = vec![0; self.header.lengths.bucket() as usize];
        Items { table: self, position, item }
    }

    /// Returns the memory.
    pub fn into_memory(self) -> M {
        self.buckets.memory
    }
}

/// The items of a table.
///
/// ```text
/// position 0: the key of zeros        position n: bucket n − 1
/// ```
pub struct Items<'a, K, V, M> {
    table: &'a Cuckoo<K, V, M>,
    position: u64,
    item: Vec<u8>,
}

impl<K, V, M> Items<'_, K, V, M> {
    /// Returns the position of the next item: an iteration over several messages continues there.
    pub fn position(&self) -> u64 {
        self.position
    }
}

impl<K: Fixed, V: Fixed, M: Memory> Iterator for Items<'_, K, V, M> {
    type Item = (K, V);

    fn next(&mut self) -> Option<(K, V)> {
        let Cuckoo { header, buckets, .. } = self.table;
        if self.position == 0 {
            self.position = 1;
            if let Some(zero) = &header.zero {
                return Some((K::from_bytes(K::Bytes::ZERO), value(zero)));
            }
        }
        while self.position <= header.shape.all_buckets() {
            buckets.read(self.position - 1, &mut self.item);
            self.position += 1;
            let (key, bytes) = self.item.split_at(K::Bytes::LENGTH);
            if key != K::Bytes::ZERO.as_ref() {
                return Some((K::from_bytes(K::Bytes::of(key)), value(bytes)));
            }
        }
        None
    }
}

impl<'a, K: Fixed, V: Fixed, M: Memory> IntoIterator for &'a Cuckoo<K, V, M> {
    type Item = (K, V);
    type IntoIter = Items<'a, K, V, M>;

    fn into_iter(self) -> Items<'a, K, V, M> {
        self.iter()
    }
}

#[inline]
fn value<V: Fixed>(bytes: &[u8]) -> V {
    V::from_bytes(V::Bytes::of(bytes))
}

/// A key or a value: a type with a fixed number of bytes.
///
/// Unsigned integers, in big-endian order, and arrays of bytes are such types. Keys are ordered by their
/// bytes.
///
/// ```
/// use stablebench_cuckoo::Fixed;
///
/// struct Account([u8; 32]);
///
/// impl Fixed for Account {
///     type Bytes = [u8; 32];
///
///     fn to_bytes(&self) -> [u8; 32] {
///         self.0
///     }
///
///     fn from_bytes(bytes: [u8; 32]) -> Self {
///         Self(bytes)
///     }
/// }
/// ```
pub trait Fixed {
    /// An array of bytes.
    type Bytes: Bytes;

    /// As bytes.
    fn to_bytes(&self) -> Self::Bytes;

    /// From bytes.
    fn from_bytes(bytes: Self::Bytes) -> Self;
}

/// An array of bytes: `[u8; N]`, and nothing else.
pub trait Bytes: AsRef<[u8]> + Array {
    /// The number of bytes.
    const LENGTH: usize;

    /// All of them zero.
    const ZERO: Self;
}

/// Only arrays are arrays of bytes, so that nothing here depends on other implementations.
mod private {
    pub trait Array {
        /// The first bytes of a slice; zeros if it is shorter.
        fn of(bytes: &[u8]) -> Self;
    }
}

use private::Array;

impl<const N: usize> Array for [u8; N] {
    #[inline]
    fn of(bytes: &[u8]) -> Self {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
}

impl<const N: usize> Bytes for [u8; N] {
    const LENGTH: usize = N;
    const ZERO: Self = [0; N];
}

impl<const N: usize> Fixed for [u8; N] {
    type Bytes = Self;

    #[inline]
    fn to_bytes(&self) -> Self {
        *self
    }

    #[inline]
    fn from_bytes(bytes: Self) -> Self {
        bytes
    }
}

macro_rules! big_endian {
    ($($number:ty),*) => {$(
        impl Fixed for $number {
            type Bytes = [u8; size_of::<$number>()];

            #[inline]
            fn to_bytes(&self) -> Self::Bytes {
                self.to_be_bytes()
            }

            #[inline]
            fn from_bytes(bytes: Self::Bytes) -> Self {
                Self::from_be_bytes(bytes)
            }
        }
    )*};
}

big_endian!(u8, u16, u32, u64, u128);
