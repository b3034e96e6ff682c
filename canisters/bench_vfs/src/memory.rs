//! The memories of the library's `MemoryManager`.
//!
//! The library's manager hands out memories, but others cannot read or write them. Its layout is that
//! of `ic-stable-structures`, whose manager reads and writes the state: only at an upgrade, when no
//! other manager is in use.
//!
//! ```text
//! 0   3  magic "MGR"
//! 3   1  layout version, 1
//! 4   2  buckets in use
//! 6   2  pages per bucket
//! 8  32  reserved
//! 40  …  pages of each memory, 8 bytes each, little-endian
//! ```
//!
//! Source: `src/stable/memory_layout.rs` of `ic-sqlite-vfs` 2.1.0.

use ic_sqlite_vfs::{DbMemory, MemoryManager};
use ic_stable_structures::memory_manager::VirtualMemory;
use ic_stable_structures::{DefaultMemoryImpl, memory_manager};
use stablebench_harness::{STATE_MEMORY, is_managed};
use stablebench_protocol::{Error, Result};

/// The memory that the library's documentation suggests.
const DATABASE: u8 = 120;

const SIZES: u64 = 40;
const WASM_PAGE_BYTES: u64 = 65536;

/// Returns the database's memory; takes stable memory for the manager.
pub fn database() -> Result<DbMemory> {
    let memory = ic_sqlite_vfs::DefaultMemoryImpl::default();
    let manager = MemoryManager::init_strict(memory)
        .map_err(|error| Error::Sqlite { message: error.to_string() })?;
    Ok(manager.get(ic_sqlite_vfs::MemoryId::new(DATABASE)))
}

/// Returns the bytes of the database's memory.
pub fn database_bytes() -> u64 {
    let mut pages = [0; 8];
    if is_managed() {
        ic_cdk::api::stable_read(SIZES + u64::from(DATABASE) * 8, &mut pages);
    }
    u64::from_le_bytes(pages) * WASM_PAGE_BYTES
}

/// Returns the memory of the state.
pub fn state() -> VirtualMemory<DefaultMemoryImpl> {
    let manager = memory_manager::MemoryManager::init(DefaultMemoryImpl::default());
    manager.get(memory_manager::MemoryId::new(STATE_MEMORY))
}
