//! The one `MemoryManager`, and the settings' memory in it.
//!
//! ```text
//! 0   4  bytes of the state, little-endian
//! 4   …  the state
//! ```

use ic_rusqlite::MEMORY_MANAGER;
use ic_stable_structures::memory_manager::{MemoryId, VirtualMemory};
use ic_stable_structures::{DefaultMemoryImpl, Memory};
use stablebench_harness::State;
use stablebench_protocol::{Error, Result};

/// A memory of the manager.
pub type Virtual = VirtualMemory<DefaultMemoryImpl>;

/// The settings; neither `ic-rusqlite` nor the map uses this one.
const SETTINGS: u8 = 100;

pub const WASM_PAGE_BYTES: u64 = 65536;

const MAGIC: [u8; 3] = *b"MGR";

/// Whether stable memory begins as a `MemoryManager` begins it. Does not touch the
/// manager.
pub fn owns_stable_memory() -> bool {
    let mut magic = [0; MAGIC.len()];
    if ic_cdk::api::stable_size() > 0 {
        ic_cdk::api::stable_read(0, &mut magic);
    }
    magic == MAGIC
}

/// The memory with an id.
pub fn memory(id: u8) -> Virtual {
    MEMORY_MANAGER.with_borrow(|manager| manager.get(MemoryId::new(id)))
}

/// Bytes of a memory.
pub fn memory_bytes(id: u8) -> u64 {
    memory(id).size() * WASM_PAGE_BYTES
}

/// Where the settings go at an upgrade.
pub struct SettingsMemory(Virtual);

impl SettingsMemory {
    pub fn open() -> Self {
        Self(memory(SETTINGS))
    }

    pub fn save(&self, state: &State) -> Result<()> {
        let state = state.encode();
        if self.0.size() == 0 && self.0.grow(1) < 0 {
            return Err(Error::OutOfStableMemory { pages: 1 });
        }
        self.0.write(0, &(state.len() as u32).to_le_bytes());
        self.0.write(4, &state);
        Ok(())
    }

    pub fn load(&self) -> Option<State> {
        if self.0.size() == 0 {
            return None;
        }
        let mut length = [0; 4];
        self.0.read(0, &mut length);
        let mut state = vec![0; u32::from_le_bytes(length) as usize];
        self.0.read(4, &mut state);
        State::decode(&state)
    }
}
