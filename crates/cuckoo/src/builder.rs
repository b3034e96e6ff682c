use crate::buckets::Buckets;
use crate::displace::Search;
use crate::fixed::Bytes;
use crate::header::{Header, Lengths, PAGE};
use crate::shape::HASHES;
use crate::{Cuckoo, Error, Fixed, Plan};
use ic_stable_structures::Memory;
use std::cmp::Ordering;
use std::marker::PhantomData;

/// Zeros are written so many bytes at a time.
const CLEARED: usize = 65_536;

/// Builds a table from items in the order of their keys.
///
/// Items go to their buckets in the memory as they come; the heap holds no more than
/// one search for room. So a build can take as many messages as it needs, and what was
/// added stays over an upgrade: [`resume`](Self::resume) goes on from there.
///
/// The table depends on the plan and on the items alone, not on how they are cut into
/// calls.
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

    /// Begins a table where there is an older one, finished or not, of whatever plan and
    /// version. That one is lost.
    ///
    /// All buckets are cleared in this call: about 1.3 instructions a byte.
    ///
    /// # Errors
    ///
    /// [`Error::Foreign`], [`Error::UnsoundPlan`] or [`Error::OutOfMemory`]; then the
    /// older table is as it was.
    pub fn replace(memory: M, plan: Plan) -> Result<Self, Error> {
        if memory.size() > 0 && !Header::is_there(&memory) {
            return Err(Error::Foreign);
        }
        Self::begin(memory, plan)
    }

    /// Goes on with a table that is not finished.
    ///
    /// # Errors
    ///
    /// [`Error::Finished`], or why the memory holds no such table.
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
        let (pages, there) = (bytes.div_ceil(PAGE), memory.size());
        if pages > there && memory.grow(pages - there) < 0 {
            return Err(Error::OutOfMemory { pages });
        }
        // What the memory grew by is zero already.
        clear(&memory, bytes.min(there * PAGE));
        header.write(&memory);
        Ok(Self::of(memory, header))
    }

    fn of(memory: M, header: Header) -> Self {
        let buckets = Buckets::new(memory, &header);
        let (block, search) = (buckets.buffer(), Search::default());
        Self { header, buckets, block, item: Vec::new(), search, types: PhantomData }
    }

    /// How many items there are.
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

    /// Makes the table one to be read. Nothing can be added from then on.
    pub fn finish(mut self) -> Cuckoo<K, V, M> {
        self.header.finished = true;
        self.header.write(&self.buckets.memory);
        Cuckoo::new(self.header, self.buckets)
    }

    /// Gives the memory back, with what was built so far.
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
            searched: search.looked_into(),
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
