//! The memories of the only `MemoryManager`, and the file system in some of them.

use ic_stable_structures::memory_manager::{MemoryId, MemoryManager, VirtualMemory};
use ic_stable_structures::{DefaultMemoryImpl, Memory};
use std::cell::RefCell;
use std::ops::Range;

/// A memory of the manager.
pub type Virtual = VirtualMemory<DefaultMemoryImpl>;

/// The memories of the file system, as in `ic-rusqlite`.
const FILE_SYSTEM: Range<u8> = 101..119;

const WASM_PAGE_BYTES: u64 = 65536;

thread_local! {
    /// Takes stable memory when it is first touched.
    static MANAGER: RefCell<MemoryManager<DefaultMemoryImpl>> = {
        let manager = MemoryManager::init(DefaultMemoryImpl::default());
        // The engine's random numbers, for names of temporary files, follow from this.
        let seed = [0; 32];
        let environment = [("SQLITE_TMPDIR", "tmp")];
        ic_wasi_polyfill::init_with_memory_manager(&seed, &environment, &manager, FILE_SYSTEM);
        RefCell::new(manager)
    };
}

/// Returns the memory with an id.
pub fn memory(id: u8) -> Virtual {
    MANAGER.with_borrow(|manager| manager.get(MemoryId::new(id)))
}

/// Mounts the file system.
pub fn mount() {
    MANAGER.with_borrow(|_| ());
}

/// Returns the bytes of the file system's memories.
pub fn file_system_bytes() -> u64 {
    FILE_SYSTEM.map(|id| memory(id).size()).sum::<u64>() * WASM_PAGE_BYTES
}
