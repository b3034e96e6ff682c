//! Making room for an item whose blocks are full.
//!
//! Every item can be in two blocks. So one of the items that are in the way can move
//! to its other block, or to another bucket of the same, if one there is empty; if not,
//! one of those in *its* way can move, and so on. The shortest such chain is found by
//! looking at buckets in the order of their distance:
//!
//! ```text
//!   the new item's blocks:  A B C D E   F G H I J        all full
//!   A's blocks:             K L M …                      the search looks into these,
//!   B's blocks:             N O _                        then finds an empty one:
//!                                                        B moves there, the item to B
//! ```
//!
//! No bucket becomes empty again once it was filled, and an item never moves past an
//! empty bucket of its blocks. So whoever looks for a key may stop at the first empty
//! bucket.

use crate::buckets::Buckets;
use crate::shape::HASHES;
use ic_stable_structures::Memory;
use std::collections::BTreeSet;

/// The buckets looked into, and what is in them. On the heap, and at most as large as
/// the plan's bound allows.
#[derive(Default)]
pub(crate) struct Search {
    nodes: Vec<Node>,
    items: Vec<u8>,
    seen: BTreeSet<u64>,
    block: Vec<u8>,
}

#[derive(Clone, Copy)]
struct Node {
    bucket: u64,
    /// Whose item could move here; nothing for the buckets of the new item itself.
    parent: Option<usize>,
}

/// An empty bucket, and the node whose item can move there, if it is not for the new
/// item itself.
struct Empty {
    bucket: u64,
    parent: Option<usize>,
}

impl Search {
    /// Moves items such that a bucket of the key's is empty, and answers which; nothing
    /// where none was found among at most `limit` buckets. Then nothing was moved.
    pub fn make_room<M: Memory>(
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

        let mut empty = self.look(buckets, key, None);
        let mut next = 0;
        while empty.is_none() && next < self.nodes.len() && self.nodes.len() < limit as usize {
            let key = self.items.get(next * item_bytes..)?.get(..key.len())?.to_vec();
            empty = self.look(buckets, &key, Some(next));
            next += 1;
        }
        let Empty { mut bucket, mut parent } = empty?;
        while let Some(node) = parent {
            buckets.write(bucket, self.items.get(node * item_bytes..)?.get(..item_bytes)?);
            Node { bucket, parent } = *self.nodes.get(node)?;
        }
        Some(bucket)
    }

    /// How many buckets the last search looked into.
    pub fn looked_into(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// Looks into the blocks of a key, in the order of its hashes.
    fn look<M: Memory>(
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
