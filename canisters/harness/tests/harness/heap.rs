//! A canister on the heap: two sorted engines and the floor.

use crate::heap_map::HeapMap;
use stablebench_harness::floor::{Floor, RawMemory};
use stablebench_harness::{Canister, KeyValue, Records, State};
use stablebench_protocol::{CrateVersion, Engine, Error, Occupant, Result};
use std::cell::RefCell;
use std::rc::Rc;

/// Stable memory of at most `limit` pages.
#[derive(Clone)]
pub struct HeapMemory {
    bytes: Rc<RefCell<Vec<u8>>>,
    limit: u64,
}

impl Default for HeapMemory {
    fn default() -> Self {
        Self { bytes: Rc::default(), limit: 1000 }
    }
}

impl RawMemory for HeapMemory {
    fn pages(&self) -> u64 {
        self.bytes.borrow().len() as u64 / 65536
    }

    fn grow(&mut self, pages: u64) -> bool {
        let pages = self.pages() + pages;
        let fits = pages <= self.limit;
        if fits {
            self.bytes.borrow_mut().resize(pages as usize * 65536, 0);
        }
        fits
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) {
        self.bytes.borrow_mut()[offset as usize..][..bytes.len()].copy_from_slice(bytes);
    }

    fn read(&self, offset: u64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.bytes.borrow()[offset as usize..][..bytes.len()]);
    }
}

/// A map in place of `StableBTreeMap`, and the floor.
#[derive(Default)]
pub struct HeapCanister {
    pub map: HeapMap,
    pub floor: Floor<HeapMemory>,
}

impl HeapCanister {
    /// The canister after an upgrade: the heap is gone but for the map, which stands
    /// for stable memory.
    pub fn upgraded(memory: HeapMemory) -> Self {
        Self { map: HeapMap::default(), floor: Floor::new(memory) }
    }
}

impl Canister for HeapCanister {
    fn engines(&self) -> &'static [Engine] {
        &[Engine::Btree, Engine::Append, Engine::Array]
    }

    fn engine(&mut self, engine: Engine) -> Result<&mut dyn KeyValue> {
        match engine {
            Engine::Btree => Ok(&mut self.map),
            Engine::Append | Engine::Array => self.floor.engine(engine),
            _ => Err(Error::EngineUnavailable { engine }),
        }
    }

    fn records(&mut self, engine: Engine) -> Result<&mut dyn Records> {
        self.floor.records(engine)
    }

    fn occupant(&self) -> Occupant {
        self.floor.owner().map_or(Occupant::Manager, Occupant::Floor)
    }

    fn crates(&self) -> Vec<CrateVersion> {
        Vec::new()
    }

    fn save(&mut self, payload_bytes: u32) -> Result<()> {
        self.floor.save(State { payload_bytes, ..State::default() })
    }

    fn load(&mut self) -> u32 {
        self.floor.load().unwrap_or_default().payload_bytes
    }
}
