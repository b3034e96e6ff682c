//! The floor: what storing and reading the same bytes costs on bare stable memory.
//!
//! The floor engines write rows where they belong and keep nothing in between: no
//! [`MemoryManager`](https://docs.rs/ic-stable-structures), no pages, no journal. They
//! own the whole of stable memory, one of them at a time, and never share it with an
//! engine above the floor.
//!
//! ```text
//! page 0     header, written before an upgrade alone
//! page 1 …   append: rows one after the other;  array: slots one after the other
//! ```

mod append;
mod array;
mod header;
mod memory;
mod records;

pub use append::Append;
pub use array::{Array, ID_MULTIPLE};
pub use memory::{RawMemory, StableMemory};

use crate::{KeyValue, Records, State};
use header::Header;
use stablebench_protocol::{Engine, Error, Occupant, Result};

const PAGE_BYTES: u64 = 65536;

/// Where rows begin.
const DATA: u64 = PAGE_BYTES;

/// What is read or zeroed at once; holds the longest row.
const CHUNK_BYTES: usize = 1 << 17;

/// The floor engines over one stable memory.
#[derive(Clone, Debug, Default)]
pub struct Floor<M> {
    memory: M,
    append: Append<M>,
    array: Array<M>,
}

impl<M: RawMemory + Clone> Floor<M> {
    /// Floor engines that hold nothing.
    pub fn new(memory: M) -> Self {
        Self { append: Append::new(memory.clone()), array: Array::new(memory.clone()), memory }
    }

    /// The floor engine that owns the memory.
    pub fn owner(&self) -> Option<Engine> {
        if self.append.is_used() {
            Some(Engine::Append)
        } else if self.array.is_used() {
            Some(Engine::Array)
        } else {
            None
        }
    }

    /// A floor engine.
    ///
    /// # Errors
    ///
    /// Where the other one owns the memory, or the engine is above the floor.
    pub fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        if let Some(owner) = self.owner()
            && owner != engine
        {
            return Err(Error::StableMemoryTaken { occupant: Occupant::Floor(owner) });
        }
        match engine {
            Engine::Append => Ok(&mut self.append),
            Engine::Array => Ok(&mut self.array),
            Engine::Btree | Engine::Sqlite | Engine::Cuckoo => {
                Err(Error::EngineUnavailable { engine })
            }
            #[allow(unreachable_patterns, reason = "there are more with features of the protocol")]
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    /// The array as an engine of keys and values.
    ///
    /// # Errors
    ///
    /// Where the log of rows owns the memory, or the engine is another.
    pub fn records(&mut self, engine: Engine) -> Result<&mut dyn Records> {
        match self.owner() {
            Some(owner) if owner != Engine::Array => {
                Err(Error::StableMemoryTaken { occupant: Occupant::Floor(owner) })
            }
            _ if engine == Engine::Array => Ok(&mut self.array),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    /// Writes the header and the state.
    ///
    /// # Errors
    ///
    /// Where there is no room.
    pub fn save(&mut self, state: State) -> Result<()> {
        grow_to(&mut self.memory, DATA)?;
        let header = match self.owner() {
            Some(Engine::Append) => self.append.header(),
            Some(_) => self.array.header(),
            None => Header::default(),
        };
        self.memory.write(0, &header.encode(&state.encode()));
        Ok(())
    }

    /// Takes up header and state; nothing where there are none.
    pub fn load(&mut self) -> Option<State> {
        if self.memory.pages() == 0 {
            return None;
        }
        let mut page = vec![0; PAGE_BYTES as usize];
        self.memory.read(0, &mut page);
        let (header, state) = Header::decode(&page)?;
        match header.owner {
            Some(Engine::Append) => self.append.restore(&header),
            Some(Engine::Array) => self.array.restore(&header),
            _ => {}
        }
        State::decode(state)
    }
}

/// Makes sure that the memory has `bytes` bytes.
fn grow_to(memory: &mut impl RawMemory, bytes: u64) -> Result<()> {
    let pages = bytes.div_ceil(PAGE_BYTES);
    let there = memory.pages();
    if pages > there && !memory.grow(pages - there) {
        return Err(Error::OutOfStableMemory { pages });
    }
    Ok(())
}

/// Writes zeros over `bytes` bytes of rows: a slot that holds zeros is free.
fn erase(memory: &mut impl RawMemory, bytes: u64) {
    let zeros = vec![0; CHUNK_BYTES];
    let mut done = 0;
    while done < bytes {
        let length = (bytes - done).min(CHUNK_BYTES as u64);
        memory.write(DATA + done, &zeros[..length as usize]);
        done += length;
    }
}
