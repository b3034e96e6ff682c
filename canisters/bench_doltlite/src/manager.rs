//! The memories that stable memory is divided into, and the file system in some of them.

use ic_stable_structures::memory_manager::{MemoryId, MemoryManager, VirtualMemory};
use ic_stable_structures::{DefaultMemoryImpl, Memory};
use stablebench_harness::managed::{SETTINGS, Settings};
use std::cell::RefCell;
use std::ops::Range;

/// A memory of the manager.
type Virtual = VirtualMemory<DefaultMemoryImpl>;

/// As `ic-rusqlite` has it.
const FILE_SYSTEM: Range<u8> = 101..119;

const WASM_PAGE_BYTES: u64 = 65536;

thread_local! {
    /// Takes stable memory when it is first touched.
    static MANAGER: RefCell<MemoryManager<DefaultMemoryImpl>> = {
        let manager = MemoryManager::init(DefaultMemoryImpl::default());
        // What the engine draws at random, names of temporary files, follows from this.
        let seed = [0; 32];
        let environment = [("SQLITE_TMPDIR", "tmp")];
        ic_wasi_polyfill::init_with_memory_manager(&seed, &environment, &manager, FILE_SYSTEM);
        RefCell::new(manager)
    };
}

/// The memory with an id.
fn memory(id: u8) -> Virtual {
    MANAGER.with_borrow(|manager| manager.get(MemoryId::new(id)))
}

/// Makes the file system ready.
pub fn mount() {
    MANAGER.with_borrow(|_| ());
}

/// Bytes of the file system's memories.
pub fn file_system_bytes() -> u64 {
    FILE_SYSTEM.map(|id| memory(id).size()).sum::<u64>() * WASM_PAGE_BYTES
}

/// Where the settings go at an upgrade.
pub fn settings() -> Settings<Virtual> {
    Settings(memory(SETTINGS))
}
