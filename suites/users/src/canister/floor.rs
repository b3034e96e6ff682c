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

mod array;

pub use array::{Array, ID_MULTIPLE};

use super::{Done, Failed, KeyValue, StoredRow, VisitRow, Writes};
use crate::work::{IdSet, Selected};
use stablebench_harness::{Records, SavedState};
use stablebench_protocol::{Engine, Error, Occupant, Result};
use stablebench_workload::Amount;
use std::hint::black_box;
use std::ops::ControlFlow;

const PAGE_BYTES: u64 = 65536;

/// The beginning of the rows.
const DATA: u64 = PAGE_BYTES;

/// Bytes of a row of the log before its payload.
const ROW_HEADER_BYTES: usize = 12;

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
    pub fn save(&mut self, state: SavedState) -> Result<()> {
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
    pub fn load(&mut self) -> Option<SavedState> {
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
        SavedState::decode(state)
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

/// A log of rows on bare stable memory, in the order they were written.
///
/// ```text
/// row   id ↕ 8   bytes of the payload ↕ 4   payload
/// ```
///
/// One stable write per row, one `grow` per batch. A row in the middle is appended like any other.
/// There is no index: rows cannot be looked up by id, changed or removed. To find out whether an id
/// exists, the log is read outside of the measurement, unless the id is larger than all others.
#[derive(Clone, Debug, Default)]
pub struct Append<M> {
    memory: M,
    rows: u64,
    end: u64,
    last_id: u64,
}

impl<M: RawMemory> Append<M> {
    fn new(memory: M) -> Self {
        Self { memory, rows: 0, end: 0, last_id: 0 }
    }

    fn is_used(&self) -> bool {
        self.rows > 0
    }

    fn header(&self) -> Header {
        Header {
            owner: Some(Engine::APPEND),
            rows: self.rows,
            end: self.end,
            last_id: self.last_id,
            slot_payload_bytes: 0,
        }
    }

    fn restore(&mut self, header: &Header) {
        self.rows = header.rows;
        self.end = header.end;
        self.last_id = header.last_id;
    }

    /// Visits at most `limit` rows, starting at the byte `position` of the log.
    fn read_log(
        &self,
        position: u64,
        limit: u64,
        mut visit: impl FnMut(StoredRow<'_>) -> ControlFlow<()>,
    ) {
        let average = self.end / self.rows.max(1);
        let (mut chunk, mut at) = (Vec::new(), 0);
        let mut next = position;
        for row in 0..limit {
            if next >= self.end {
                break;
            }
            // A row that is not completely in the chunk begins the next one, which is not
            // larger than what is likely to be read.
            let likely = (limit - row).saturating_mul(average);
            for bytes in [likely.min(CHUNK_BYTES as u64), CHUNK_BYTES as u64] {
                if row_at(&chunk[at..]).is_none() {
                    chunk.resize(bytes.min(self.end - next) as usize, 0);
                    at = 0;
                    self.memory.read(DATA + next, &mut chunk);
                }
            }
            let Some((id, payload)) = row_at(&chunk[at..]) else {
                break;
            };
            if visit(StoredRow { position: next, id, payload }).is_break() {
                break;
            }
            let length = ROW_HEADER_BYTES + payload.len();
            at += length;
            next += length as u64;
        }
    }

    fn unsupported<T>(operation: &str) -> Result<T> {
        Err(Error::Unsupported { engine: Engine::APPEND, operation: operation.to_owned() })
    }
}

fn row_at(bytes: &[u8]) -> Option<(u64, &[u8])> {
    let (id, rest) = bytes.split_first_chunk::<8>()?;
    let (length, rest) = rest.split_first_chunk::<4>()?;
    let payload = rest.get(..u32::from_le_bytes(*length) as usize)?;
    Some((u64::from_le_bytes(*id), payload))
}

impl<M: RawMemory> KeyValue for Append<M> {
    fn prepare(&mut self) -> Result<()> {
        Ok(())
    }

    fn admit(&self, _: &IdSet, _: u32) -> Result<()> {
        Ok(())
    }

    fn visit(&mut self, position: u64, visit: &mut VisitRow<'_>) -> Result<()> {
        self.read_log(position, u64::MAX, visit);
        Ok(())
    }

    fn first_present(&mut self, ids: &IdSet) -> Result<Option<u64>> {
        let mut found: Option<u64> = None;
        if self.rows > 0 && ids.first() <= self.last_id {
            self.read_log(0, u64::MAX, |StoredRow { id, .. }| {
                if ids.contains(id) && found.is_none_or(|found| id < found) {
                    found = Some(id);
                }
                ControlFlow::Continue(())
            });
        }
        Ok(found)
    }

    fn first_missing(&mut self, _: &IdSet) -> Result<Option<u64>> {
        Self::unsupported("change or remove rows")
    }

    fn last_id(&mut self) -> Result<Option<u64>> {
        Ok((self.rows > 0).then_some(self.last_id))
    }

    fn rows(&mut self) -> Result<u64> {
        Ok(self.rows)
    }

    fn stored_bytes(&mut self) -> Result<u64> {
        Ok(self.end)
    }

    fn virtual_bytes(&self) -> u64 {
        self.memory.pages() * PAGE_BYTES
    }

    fn transaction(&mut self, work: &mut dyn FnMut(&mut dyn Writes) -> Result<()>) -> Done {
        work(self).map_err(Failed::kept)
    }

    fn read(&mut self, _: Selected<'_>) -> Result<Amount> {
        Self::unsupported("look rows up by id")
    }

    fn range(&mut self, _: Selected<'_>, _: u64) -> Result<Amount> {
        Self::unsupported("look rows up by id")
    }

    fn scan(&mut self, limit: u64) -> Result<Amount> {
        let mut read = Amount::default();
        self.read_log(0, limit, |StoredRow { id, payload, .. }| {
            black_box((id, payload));
            read += Amount { rows: 1, bytes: payload.len() as u64 };
            ControlFlow::Continue(())
        });
        Ok(read)
    }

    fn count(&mut self) -> Result<u64> {
        Ok(self.rows)
    }

    fn reset(&mut self) -> Result<()> {
        erase(&mut self.memory, self.end);
        self.restore(&Header::default());
        Ok(())
    }
}

impl<M: RawMemory> Writes for Append<M> {
    fn allocated_units(&mut self) -> Result<u64> {
        Ok(self.memory.pages())
    }

    fn insert(&mut self, rows: Selected<'_>, payload: &str) -> Result<()> {
        let row_bytes = (ROW_HEADER_BYTES + payload.len()) as u64;
        grow_to(&mut self.memory, DATA + self.end + rows.rows() * row_bytes)?;
        let mut row = vec![0; 8];
        row.extend((payload.len() as u32).to_le_bytes());
        row.extend(payload.as_bytes());
        rows.each(|id| {
            row[..8].copy_from_slice(&id.to_le_bytes());
            self.memory.write(DATA + self.end, &row);
            self.end += row_bytes;
        });
        self.rows += rows.rows();
        self.last_id = self.last_id.max(rows.largest());
        Ok(())
    }

    fn overwrite(&mut self, _: Selected<'_>, _: &str) -> Result<()> {
        Self::unsupported("change rows")
    }

    fn update(&mut self, _: Selected<'_>, _: &str) -> Result<()> {
        Self::unsupported("change rows")
    }

    fn delete(&mut self, _: Selected<'_>) -> Result<()> {
        Self::unsupported("remove rows")
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
