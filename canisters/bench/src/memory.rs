//! The memories of the only `MemoryManager`, and the part of a memory that a `StableBTreeMap` uses.
//!
//! The map's interface does not report its use of memory. The map writes this header whenever it
//! takes or frees a chunk; numbers are little-endian:
//!
//! ```text
//!  0  52  the map's header, with reserved space
//! 52   3  magic "BTA"
//! 55   1  layout version, 1
//! 56   4  zeros
//! 60   8  bytes per chunk, without its header of 16 bytes
//! 68   8  chunks in use: nodes, and what does not fit into one
//! 76   8  the first free chunk
//! 84  16  reserved
//! 100  …  chunks
//! ```
//!
//! Source: `src/btreemap.rs`, `src/btreemap/allocator.rs` of `ic-stable-structures` 0.7.2.

use ic_rusqlite::MEMORY_MANAGER;
use ic_stable_structures::memory_manager::{MemoryId, VirtualMemory};
use ic_stable_structures::{DefaultMemoryImpl, Memory};
use stablebench_protocol::{Error, Result};

/// A memory of the manager.
pub type Virtual = VirtualMemory<DefaultMemoryImpl>;

pub const WASM_PAGE_BYTES: u64 = 65536;

/// Returns the memory with an id.
pub fn memory(id: u8) -> Virtual {
    MEMORY_MANAGER.with_borrow(|manager| manager.get(MemoryId::new(id)))
}

/// Returns the bytes of a memory.
pub fn memory_bytes(id: u8) -> u64 {
    memory(id).size() * WASM_PAGE_BYTES
}

/// Writes zeros over a whole memory.
pub fn fill(id: u8) {
    let memory = memory(id);
    let zeros = vec![0; WASM_PAGE_BYTES as usize];
    for page in 0..memory.size() {
        memory.write(page * WASM_PAGE_BYTES, &zeros);
    }
}

/// Writes bytes to a memory, which grows if necessary.
pub fn write(id: u8, offset: u64, bytes: &[u8]) -> Result<()> {
    let memory = memory(id);
    let pages = offset.saturating_add(bytes.len() as u64).div_ceil(WASM_PAGE_BYTES);
    let missing = pages.saturating_sub(memory.size());
    if missing > 0 && memory.grow(missing) < 0 {
        return Err(Error::OutOfStableMemory { pages });
    }
    memory.write(offset, bytes);
    Ok(())
}

/// Reads bytes of a memory; none after its end.
pub fn read(id: u8, offset: u64, bytes: u64) -> Vec<u8> {
    let memory = memory(id);
    let bytes = bytes.min((memory.size() * WASM_PAGE_BYTES).saturating_sub(offset));
    let mut read = vec![0; bytes as usize];
    memory.read(offset, &mut read);
    read
}

/// Returns the bytes of a memory that the map in it uses.
pub fn stored_bytes(memory: &Virtual) -> u64 {
    let chunks = Chunks::read(memory);
    chunks.map_or_else(|| memory.size() * WASM_PAGE_BYTES, |chunks| chunks.bytes())
}

const ALLOCATOR: u64 = 52;
const CHUNKS: u64 = 100;
const ALLOCATOR_MAGIC: &[u8; 4] = b"BTA\x01";
const CHUNK_HEADER_BYTES: u64 = 16;

/// The chunks that a map uses.
#[derive(Clone, Copy, Debug)]
pub struct Chunks {
    pub number: u64,
    chunk_bytes: u64,
}

impl Chunks {
    /// Reads those of the map in a memory; nothing if the memory has other content.
    pub fn read(memory: &impl Memory) -> Option<Self> {
        if memory.size() == 0 {
            return None;
        }
        let mut fields = [0; (CHUNKS - ALLOCATOR) as usize];
        memory.read(ALLOCATOR, &mut fields);
        let (magic, rest) = fields.split_first_chunk::<4>()?;
        if magic != ALLOCATOR_MAGIC {
            return None;
        }
        let field = |at: usize| Some(u64::from_le_bytes(rest.get(at..at + 8)?.try_into().ok()?));
        Some(Self { number: field(12)?, chunk_bytes: field(4)?.checked_add(CHUNK_HEADER_BYTES)? })
    }

    /// Returns their bytes, including the headers before them.
    pub fn bytes(&self) -> u64 {
        CHUNKS.saturating_add(self.number.saturating_mul(self.chunk_bytes))
    }
}
