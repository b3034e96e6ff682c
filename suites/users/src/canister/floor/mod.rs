//! The floor: the cost of storing and reading the same bytes on bare stable memory.
//!
//! The floor engines write rows to their places and store nothing else: no
//! [`MemoryManager`](https://docs.rs/ic-stable-structures), no pages, no journal. One of them at a
//! time owns the whole of stable memory, and never shares it with an engine above the floor.
//!
//! ```text
//! page 0     header, written before an upgrade only
//! page 1 …   append: rows one after the other;  array: slots one after the other
//! ```
//!
//! The header, with little-endian numbers; a `MemoryManager` has "MGR" at its beginning:
//!
//! ```text
//!  0   3  magic "SBF"
//!  3   1  layout version, 1
//!  4   1  owner: 0 nobody, 1 append, 2 array
//!  5   3  zeros
//!  8   8  rows
//! 16   8  append: bytes of the log; array: slots
//! 24   8  the largest id
//! 32   4  array: the maximum length of a payload, in bytes
//! 36   4  bytes of the state
//! 40   …  the state
//! ```

mod append;
mod array;

pub use append::Append;
pub use array::{Array, ID_MULTIPLE};

use super::KeyValue;
use stablebench_harness::{Records, State};
use stablebench_protocol::{Engine, Error, Occupant, Result};

const PAGE_BYTES: u64 = 65536;

/// The beginning of the rows.
const DATA: u64 = PAGE_BYTES;

/// The size of reads of many rows; larger than the longest row.
const CHUNK_BYTES: usize = 1 << 17;

/// The floor engines over one stable memory.
#[derive(Clone, Debug, Default)]
pub struct Floor<M> {
    memory: M,
    append: Append<M>,
    array: Array<M>,
}

impl<M: RawMemory + Clone> Floor<M> {
    /// Floor engines without rows.
    pub fn new(memory: M) -> Self {
        Self { append: Append::new(memory.clone()), array: Array::new(memory.clone()), memory }
    }

    /// The floor engine that owns the memory.
    pub fn owner(&self) -> Option<Engine> {
        if self.append.is_used() {
            Some(Engine::APPEND)
        } else if self.array.is_used() {
            Some(Engine::ARRAY)
        } else {
            None
        }
    }

    /// Returns a floor engine.
    ///
    /// # Errors
    ///
    /// If the other one owns the memory, or the engine is above the floor.
    pub fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        if let Some(owner) = self.owner()
            && owner != engine
        {
            return Err(Error::StableMemoryTaken { occupant: Occupant::Floor(owner) });
        }
        match engine {
            Engine::APPEND => Ok(&mut self.append),
            Engine::ARRAY => Ok(&mut self.array),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    /// Returns the array as an engine of keys and values.
    ///
    /// # Errors
    ///
    /// If the log of rows owns the memory, or the engine is another.
    pub fn records(&mut self, engine: Engine) -> Result<&mut dyn Records> {
        match self.owner() {
            Some(owner) if owner != Engine::ARRAY => {
                Err(Error::StableMemoryTaken { occupant: Occupant::Floor(owner) })
            }
            _ if engine == Engine::ARRAY => Ok(&mut self.array),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    /// Writes the header and the state.
    ///
    /// # Errors
    ///
    /// If there is no room.
    pub fn save(&mut self, state: State) -> Result<()> {
        grow_to(&mut self.memory, DATA)?;
        let header = match self.owner() {
            Some(Engine::APPEND) => self.append.header(),
            Some(_) => self.array.header(),
            None => Header::default(),
        };
        self.memory.write(0, &header.encode(&state.encode()));
        Ok(())
    }

    /// Restores the engines from the header and returns the state; nothing if there is none.
    pub fn load(&mut self) -> Option<State> {
        if self.memory.pages() == 0 {
            return None;
        }
        let mut page = vec![0; PAGE_BYTES as usize];
        self.memory.read(0, &mut page);
        let (header, state) = Header::decode(&page)?;
        match header.owner {
            Some(Engine::APPEND) => self.append.restore(&header),
            Some(Engine::ARRAY) => self.array.restore(&header),
            _ => {}
        }
        State::decode(state)
    }
}

/// Grows the memory to `bytes` bytes.
fn grow_to(memory: &mut impl RawMemory, bytes: u64) -> Result<()> {
    let pages = bytes.div_ceil(PAGE_BYTES);
    let existing = memory.pages();
    if pages > existing && !memory.grow(pages - existing) {
        return Err(Error::OutOfStableMemory { pages });
    }
    Ok(())
}

/// Overwrites `bytes` bytes of rows with zeros: a slot of zeros is free.
fn erase(memory: &mut impl RawMemory, bytes: u64) {
    let zeros = vec![0; CHUNK_BYTES];
    let mut done = 0;
    while done < bytes {
        let length = (bytes - done).min(CHUNK_BYTES as u64);
        memory.write(DATA + done, &zeros[..length as usize]);
        done += length;
    }
}

/// Bare stable memory, in wasm pages of 64 KiB.
pub trait RawMemory {
    /// Returns the number of pages.
    fn pages(&self) -> u64;

    /// Adds pages of zeros, and returns whether there was room.
    fn grow(&mut self, pages: u64) -> bool;

    /// Writes within the existing pages.
    fn write(&mut self, offset: u64, bytes: &[u8]);

    /// Reads within the existing pages.
    fn read(&self, offset: u64, bytes: &mut [u8]);
}

/// The canister's stable memory.
#[derive(Clone, Copy, Debug, Default)]
pub struct StableMemory;

impl RawMemory for StableMemory {
    fn pages(&self) -> u64 {
        ic_cdk::api::stable_size()
    }

    fn grow(&mut self, pages: u64) -> bool {
        ic_cdk::api::stable_grow(pages) != u64::MAX
    }

    #[inline]
    fn write(&mut self, offset: u64, bytes: &[u8]) {
        ic_cdk::api::stable_write(offset, bytes);
    }

    #[inline]
    fn read(&self, offset: u64, bytes: &mut [u8]) {
        ic_cdk::api::stable_read(offset, bytes);
    }
}

const MAGIC: &[u8; 4] = b"SBF\x01";
const HEADER_BYTES: usize = 40;

/// The fields of the header without the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Header {
    owner: Option<Engine>,
    rows: u64,
    end: u64,
    last_id: u64,
    slot_payload_bytes: u32,
}

impl Header {
    fn encode(&self, state: &[u8]) -> Vec<u8> {
        let owner = match self.owner {
            Some(Engine::APPEND) => 1u32,
            Some(Engine::ARRAY) => 2,
            _ => 0,
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(owner.to_le_bytes());
        bytes.extend(self.rows.to_le_bytes());
        bytes.extend(self.end.to_le_bytes());
        bytes.extend(self.last_id.to_le_bytes());
        bytes.extend(self.slot_payload_bytes.to_le_bytes());
        bytes.extend((state.len() as u32).to_le_bytes());
        bytes.extend(state);
        bytes
    }

    /// Decodes the header and the state; nothing if `page` begins with something else.
    fn decode(page: &[u8]) -> Option<(Self, &[u8])> {
        let (fields, rest) = page.split_at_checked(HEADER_BYTES)?;
        if fields[..4] != *MAGIC {
            return None;
        }
        let short = |at: usize| Some(u32::from_le_bytes(fields.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(fields.get(at..at + 8)?.try_into().ok()?));
        let owner = match short(4)? {
            0 => None,
            1 => Some(Engine::APPEND),
            2 => Some(Engine::ARRAY),
            _ => return None,
        };
        let header = Self {
            owner,
            rows: long(8)?,
            end: long(16)?,
            last_id: long(24)?,
            slot_payload_bytes: short(32)?,
        };
        Some((header, rest.get(..short(36)? as usize)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_its_encoding() {
        let header = Header {
            owner: Some(Engine::ARRAY),
            rows: 1,
            end: u64::MAX,
            last_id: 3,
            slot_payload_bytes: 4,
        };
        let mut page = header.encode(b"state");
        page.resize(100, 0);
        assert_eq!(Header::decode(&page), Some((header, b"state".as_slice())));
    }

    #[test]
    fn other_bytes_are_not_a_header() {
        assert_eq!(Header::decode(b""), None);
        assert_eq!(Header::decode(&[0; 100]), None);
        let mut manager = Header::default().encode(b"");
        manager[..3].copy_from_slice(b"MGR");
        assert_eq!(Header::decode(&manager), None);
        let cut = Header::default().encode(b"state");
        assert_eq!(Header::decode(&cut[..cut.len() - 1]), None);
    }
}
