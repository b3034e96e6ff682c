//! How much of its memory a `StableBTreeMap` uses, which its interface does not tell.
//!
//! ```text
//!  0  52  the map's header, with space reserved
//! 52   3  magic "BTA"
//! 55   1  layout version, 1
//! 56   4  zeros
//! 60   8  bytes a chunk, its header of 16 bytes not counted
//! 68   8  chunks in use: nodes, and what does not fit into one
//! 76   8  the first free chunk
//! 84  16  reserved
//! 100  …  chunks
//! ```
//!
//! Numbers are little-endian. The map writes this whenever it takes or frees a chunk.
//! Source: `src/btreemap.rs`, `src/btreemap/allocator.rs` of `ic-stable-structures` 0.7.2.

use ic_stable_structures::Memory;

const OFFSET: u64 = 52;
const END: u64 = 100;
const MAGIC: &[u8; 4] = b"BTA\x01";
const CHUNK_HEADER_BYTES: u64 = 16;

/// The chunks in use.
#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    pub number: u64,
    chunk_bytes: u64,
}

impl Chunks {
    /// Those of the map in a memory; nothing where the memory holds something else.
    pub fn read(memory: &impl Memory) -> Option<Self> {
        if memory.size() == 0 {
            return None;
        }
        let mut fields = [0; (END - OFFSET) as usize];
        memory.read(OFFSET, &mut fields);
        let (magic, rest) = fields.split_first_chunk::<4>()?;
        if magic != MAGIC {
            return None;
        }
        let field = |at: usize| Some(u64::from_le_bytes(rest.get(at..at + 8)?.try_into().ok()?));
        Some(Self { number: field(12)?, chunk_bytes: field(4)?.checked_add(CHUNK_HEADER_BYTES)? })
    }

    /// Their bytes, the headers before them included.
    pub fn bytes(&self) -> u64 {
        END.saturating_add(self.number.saturating_mul(self.chunk_bytes))
    }
}
