//! Building a table.

use crate::layout::{Buckets, HASHES, Header, Lengths, PAGE};
use crate::{Bytes, Cuckoo, Error, Fixed, Plan};
use ic_stable_structures::Memory;
use std::cmp::Ordering;
use std::collections::BTreeSet;
use std::marker::PhantomData;

/// The number of zeros that are written at a time.
const CLEARED: usize = 65_536;

/// Builds a table from items in the order of their keys.
///
/// Items are written to their buckets in the memory immediately; the heap contains no more than one
/// search for room. So a build can take as many messages as it needs, and items stay over an upgrade:
/// [`resume`](Self::resume) continues from there.
///
/// The table depends on the plan and on the items alone, not on how they are split into calls.
pub struct Builder<K, V, M> {
    header: Header,
    buckets: Buckets<M>,
    block: Vec<u8>,
    item: Vec<u8>,
    search: Search,
    types: PhantomData<fn(K, V)>,
}

impl<K: Fixed, V: Fixed, M: Memory> Builder<K, V, M> {
    /// Begins a table in a memory of size 0, which grows to what the plan needs.
    ///
    /// # Errors
    ///
    /// [`Error::NotEmpty`], [`Error::UnsoundPlan`] or [`Error::OutOfMemory`].
    pub fn new(memory: M, plan: Plan) -> Result<Self, Error> {
        if memory.size() > 0 {
            return Err(Error::NotEmpty);
        }
        Self::begin(memory, plan)
    }

    /// Begins a table in the place of an older one, finished or not, of any plan and version. The older
    /// one is lost.
    ///
    /// All buckets are cleared in this call: about 1.3 instructions per byte.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`], [`Error::UnsoundPlan`] or [`Error::OutOfMemory`]; then the older table is
    /// unchanged.
    pub fn replace(memory: M, plan: Plan) -> Result<Self, Error> {
        if memory.size() > 0 && !Header::is_there(&memory) {
            return Err(Error::Foreign);
        }
        Self::begin(memory, plan)
    }

    /// Continues a table that is not finished.
    ///
    /// # Errors
    ///
    /// [`Error::Finished`], or the reason why the memory has no such table.
    pub fn resume(memory: M) -> Result<Self, Error> {
        let header = Header::read(&memory, lengths::<K, V>())?;
        if header.finished {
            return Err(Error::Finished);
        }
        Ok(Self::of(memory, header))
    }

    fn begin(memory: M, plan: Plan) -> Result<Self, Error> {
        let header = Header::new(lengths::<K, V>(), plan)?;
        let bytes = header.bytes().ok_or(Error::UnsoundPlan)?;
        let (pages, existing) = (bytes.div_ceil(PAGE), memory.size());
        if pages > existing && memory.grow(pages - existing) < 0 {
            return Err(Error::OutOfMemory { pages });
        }
        // The new pages of the memory are already zero.
        clear(&memory, bytes.min(existing * PAGE));
        header.write(&memory);
        Ok(Self::of(memory, header))
    }

    fn of(memory: M, header: Header) -> Self {
        let buckets = Buckets::new(memory, &header);
        let (block, search) = (buckets.buffer(), Search::default());
        Self { header, buckets, block, item: Vec::new(), search, types: PhantomData }
    }

    /// Returns the number of items.
    pub fn items(&self) -> u64 {
        self.header.items
    }

    /// Adds items. Their keys are larger than those before, in the order of their bytes.
    ///
    /// # Errors
    ///
    /// [`Error::NotSorted`], [`Error::Duplicate`] or [`Error::CannotPlace`]. The items
    /// before the one that is refused are in the table, and others may follow.
    pub fn extend(&mut self, items: impl IntoIterator<Item = (K, V)>) -> Result<(), Error> {
        let added = items.into_iter().try_for_each(|(key, value)| self.add(&key, &value));
        self.header.write(&self.buckets.memory);
        added
    }

    /// Finishes the table for reading. Nothing can be added to it any more.
    pub fn finish(mut self) -> Cuckoo<K, V, M> {
        self.header.finished = true;
        self.header.write(&self.buckets.memory);
        Cuckoo::new(self.header, self.buckets)
    }

    /// Returns the memory with the unfinished table.
    pub fn into_memory(self) -> M {
        self.buckets.memory
    }

    fn add(&mut self, key: &K, value: &V) -> Result<(), Error> {
        let (key, value) = (key.to_bytes(), value.to_bytes());
        let (key, value) = (key.as_ref(), value.as_ref());
        if self.header.items > 0 {
            match key.cmp(self.header.largest.as_slice()) {
                Ordering::Greater => {}
                Ordering::Equal => return Err(Error::Duplicate { item: self.header.items }),
                Ordering::Less => return Err(Error::NotSorted { item: self.header.items }),
            }
        }
        if key == K::Bytes::ZERO.as_ref() {
            self.header.zero = Some(value.to_vec());
        } else {
            let bucket = self.room(key)?;
            self.item.clear();
            self.item.extend(key);
            self.item.extend(value);
            self.buckets.write(bucket, &self.item);
        }
        self.header.largest.copy_from_slice(key);
        self.header.items += 1;
        Ok(())
    }

    /// An empty bucket for the key.
    fn room(&mut self, key: &[u8]) -> Result<u64, Error> {
        let Self { header, buckets, block, search, .. } = self;
        for hash in 0..HASHES {
            let first = buckets.shape.block_of(hash, key);
            buckets.read(first, block);
            let items = block.chunks_exact(header.lengths.bucket() as usize);
            for (bucket, item) in (first..).zip(items) {
                if item.starts_with(K::Bytes::ZERO.as_ref()) {
                    return Ok(bucket);
                }
            }
        }
        search.make_room(buckets, key, header.search).ok_or(Error::CannotPlace {
            item: header.items,
            buckets: header.shape.buckets,
            searched: search.searched(),
        })
    }
}

/// The lengths of the types. An array of bytes on the heap of a canister is shorter than
/// 2³² bytes.
pub(crate) fn lengths<K: Fixed, V: Fixed>() -> Lengths {
    const { assert!(K::Bytes::LENGTH > 0, "keys have one byte or more") };
    Lengths { key: K::Bytes::LENGTH as u32, value: V::Bytes::LENGTH as u32 }
}

fn clear(memory: &impl Memory, bytes: u64) {
    let zeros = vec![0; CLEARED];
    let mut from = 0;
    while from < bytes {
        let length = (bytes - from).min(CLEARED as u64);
        memory.write(from, &zeros[..length as usize]);
        from += length;
    }
}

/// A search for room for an item whose blocks are full: the buckets that were read. It is on the heap,
/// and the plan bounds its size.
///
/// Every item can be in two blocks. So one of the items in the way can move to its other block, or to
/// another bucket of the same, if one there is empty. If not, one of those in *its* way can move, and so
/// on. The shortest such chain is found by reading buckets in the order of their distance:
///
/// ```text
///   the new item's blocks:  A B C D E   F G H I J        all full
///   A's blocks:             K L M …                      the search reads these,
///   B's blocks:             N O _                        then finds an empty one:
///                                                        B moves there, the item to B
/// ```
///
/// No filled bucket becomes empty again, and an item never moves past an empty bucket of its blocks. So
/// a lookup may stop at the first empty bucket.
#[derive(Default)]
struct Search {
    nodes: Vec<Node>,
    items: Vec<u8>,
    seen: BTreeSet<u64>,
    block: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Node {
    bucket: u64,
    /// The node whose item could move here; nothing for the buckets of the new item itself.
    parent: Option<usize>,
}

/// An empty bucket, and the node whose item can move there, if it is not for the new
/// item itself.
struct Empty {
    bucket: u64,
    parent: Option<usize>,
}

impl Search {
    /// Moves items so that a bucket of the key is empty, and returns it. Returns nothing, and moves
    /// nothing, if none was found among at most `limit` buckets.
    fn make_room<M: Memory>(
        &mut self,
        buckets: &Buckets<M>,
        key: &[u8],
        limit: u32,
    ) -> Option<u64> {
        self.nodes.clear();
        self.items.clear();
        self.seen.clear();
        self.block = buckets.buffer();
        let item_bytes = self.block.len() / usize::from(buckets.shape.block);

        let mut empty = self.read_blocks(buckets, key, None);
        let mut next = 0;
        while empty.is_none() && next < self.nodes.len() && self.nodes.len() < limit as usize {
            let key = self.items.get(next * item_bytes..)?.get(..key.len())?.to_vec();
            empty = self.read_blocks(buckets, &key, Some(next));
            next += 1;
        }
        let Empty { mut bucket, mut parent } = empty?;
        while let Some(node) = parent {
            buckets.write(bucket, self.items.get(node * item_bytes..)?.get(..item_bytes)?);
            Node { bucket, parent } = *self.nodes.get(node)?;
        }
        Some(bucket)
    }

    /// Returns the number of buckets that the last search has read.
    fn searched(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// Reads the blocks of a key in the order of its hashes.
    fn read_blocks<M: Memory>(
        &mut self,
        buckets: &Buckets<M>,
        key: &[u8],
        parent: Option<usize>,
    ) -> Option<Empty> {
        let item_bytes = self.block.len() / usize::from(buckets.shape.block);
        for hash in 0..HASHES {
            let first = buckets.shape.block_of(hash, key);
            buckets.read(first, &mut self.block);
            for (bucket, item) in (first..).zip(self.block.chunks_exact(item_bytes)) {
                if !self.seen.insert(bucket) {
                    continue;
                }
                if item.iter().take(key.len()).all(|byte| *byte == 0) {
                    return Some(Empty { bucket, parent });
                }
                self.nodes.push(Node { bucket, parent });
                self.items.extend(item);
            }
        }
        None
    }
}
