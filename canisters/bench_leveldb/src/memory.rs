//! The memories that stable memory is divided into.

use crate::engine::error;
use ic_stable_structures::DefaultMemoryImpl;
use ic_stable_structures::memory_manager::{MemoryId, MemoryManager, VirtualMemory};
use stablebench_harness::managed::{SETTINGS, Settings};
use stablebench_leveldb::Disk;
use stablebench_protocol::Result;

const FILES: u8 = 0;

pub type Virtual = VirtualMemory<DefaultMemoryImpl>;

thread_local! {
    static MANAGER: MemoryManager<DefaultMemoryImpl> =
        MemoryManager::init(DefaultMemoryImpl::default());
}

fn memory(id: u8) -> Virtual {
    MANAGER.with(|manager| manager.get(MemoryId::new(id)))
}

/// Where the settings go at an upgrade.
pub fn settings() -> Settings<Virtual> {
    Settings(memory(SETTINGS))
}

/// The files.
pub struct Memories(Disk<Virtual>);

impl Memories {
    /// Takes stable memory for the manager.
    pub fn open() -> Result<Self> {
        Ok(Self(Disk::open(memory(FILES)).map_err(error)?))
    }

    pub fn disk(&self) -> &Disk<Virtual> {
        &self.0
    }
}
