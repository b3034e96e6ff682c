//! The one `MemoryManager`.

use ic_rusqlite::MEMORY_MANAGER;
use ic_stable_structures::memory_manager::{MemoryId, VirtualMemory};
use ic_stable_structures::{DefaultMemoryImpl, Memory};
use stablebench_harness::managed::{SETTINGS, Settings};

/// A memory of the manager.
pub type Virtual = VirtualMemory<DefaultMemoryImpl>;

pub const WASM_PAGE_BYTES: u64 = 65536;

/// The memory with an id.
pub fn memory(id: u8) -> Virtual {
    MEMORY_MANAGER.with_borrow(|manager| manager.get(MemoryId::new(id)))
}

/// Bytes of a memory.
pub fn memory_bytes(id: u8) -> u64 {
    memory(id).size() * WASM_PAGE_BYTES
}

/// Where the settings go at an upgrade.
pub fn settings() -> Settings<Virtual> {
    Settings(memory(SETTINGS))
}
