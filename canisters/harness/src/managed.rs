//! Stable memory that belongs to a `MemoryManager`, and the settings in one of its memories.
//!
//! ```text
//! 0   4  bytes of the state, little-endian
//! 4   …  the state
//! ```

use crate::State;
use ic_stable_structures::Memory;
use stablebench_protocol::{Error, Result};

/// The memory of the settings; no engine uses this one.
pub const SETTINGS: u8 = 100;

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

/// Where the settings go at an upgrade.
pub struct Settings<M>(
    /// The memory [`SETTINGS`].
    pub M,
);

impl<M: Memory> Settings<M> {
    /// Writes them.
    ///
    /// # Errors
    ///
    /// Where the memory cannot grow.
    pub fn save(&self, state: &State) -> Result<()> {
        let state = state.encode();
        if self.0.size() == 0 && self.0.grow(1) < 0 {
            return Err(Error::OutOfStableMemory { pages: 1 });
        }
        self.0.write(0, &(state.len() as u32).to_le_bytes());
        self.0.write(4, &state);
        Ok(())
    }

    /// Reads them; nothing where there are none.
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
