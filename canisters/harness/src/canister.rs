//! The trait of a canister: its suites, its database, and its state over an upgrade.
//!
//! The state is what an upgrade keeps in addition to the rows. It is one Candid value, so that later
//! versions may add fields. A canister whose stable memory belongs to a `MemoryManager` has it in one of
//! the manager's memories:
//!
//! ```text
//! 0   4  bytes of the state, little-endian
//! 4   …  the state
//! ```

use crate::{Sql, SuiteEntry, heap_pages, max_rows, stable_pages};
use candid::CandidType;
use ic_stable_structures::Memory;
use serde::{Deserialize, Serialize};
use stablebench_protocol::{
    CrateVersion, DEFAULT_PAYLOAD_BYTES, Description, Engine, Error, Occupant, Result, Setting,
    SqliteConfig, SqliteDescription, Storage,
};

/// The number of the manager's memory with the state; no engine uses it.
pub const STATE_MEMORY: u8 = 100;

const MANAGER_MAGIC: [u8; 3] = *b"MGR";

/// A canister.
///
/// A suite whose work needs more than [`sql`](Self::sql) has a trait of its own for that, which the
/// canisters that offer the suite implement.
pub trait Canister: Sized + 'static {
    /// The suites that it offers.
    const SUITES: &'static [SuiteEntry<Self>];

    /// Returns the SQL database in stable memory or on the heap.
    ///
    /// # Errors
    ///
    /// If the canister has none, or another engine owns the stable memory.
    fn sql(&mut self, _: Storage) -> Result<&mut dyn Sql> {
        Err(Error::EngineUnavailable { engine: Engine::SQLITE })
    }

    /// Opens the engine again with these settings; a setting that is left out takes the library's
    /// default. Returns all settings in effect.
    ///
    /// # Errors
    ///
    /// If the canister has no settings, or one was not taken; then the settings are unchanged.
    fn configure(&mut self, _: &[Setting]) -> Result<Vec<Setting>> {
        Err(Error::EngineUnavailable { engine: Engine::SQLITE })
    }

    /// Describes the canister and its content.
    ///
    /// # Errors
    ///
    /// The engines'.
    fn describe(&mut self) -> Result<Description> {
        Ok(description(self))
    }

    /// Returns the owner of the stable memory.
    fn occupant(&self) -> Occupant;

    /// Returns the SQLite library, if there is one.
    fn sqlite_description(&self) -> Option<SqliteDescription> {
        None
    }

    /// Returns the crates that decide what the engines cost.
    fn crates(&self) -> Vec<CrateVersion>;

    /// Writes the state to stable memory before an upgrade.
    ///
    /// # Errors
    ///
    /// If there is no room.
    fn save(&mut self) -> Result<()>;

    /// Restores the state after an upgrade.
    fn load(&mut self);
}

/// Describes a canister without the content of its engines.
pub fn description(canister: &impl Canister) -> Description {
    Description {
        occupant: canister.occupant(),
        engines: Vec::new(),
        payload_bytes: DEFAULT_PAYLOAD_BYTES,
        max_rows: max_rows(DEFAULT_PAYLOAD_BYTES),
        heap_pages: heap_pages(),
        stable_pages: stable_pages(),
        sqlite: canister.sqlite_description(),
        crates: canister.crates(),
    }
}

/// Parses the versions of crates that a canister's build script has exported as `CRATE_VERSIONS`.
pub fn crate_versions(exported: &str) -> Vec<CrateVersion> {
    let versions = exported.split(',').filter_map(|version| version.split_once(' '));
    versions
        .map(|(name, version)| CrateVersion { name: name.to_owned(), version: version.to_owned() })
        .collect()
}

/// The settings of a canister.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct SavedState {
    /// The payload of rows that methods called by hand write, in bytes.
    pub payload_bytes: u32,
    /// The settings that SQLite's connection is opened with.
    pub sqlite_config: SqliteConfig,
    /// True if SQLite's table was created.
    pub sqlite_created: bool,
}

impl Default for SavedState {
    fn default() -> Self {
        Self {
            payload_bytes: DEFAULT_PAYLOAD_BYTES,
            sqlite_config: SqliteConfig::default(),
            sqlite_created: false,
        }
    }
}

impl SavedState {
    /// Encodes the state.
    pub fn encode(&self) -> Vec<u8> {
        // Encoding a derived type cannot fail.
        candid::encode_one(self).unwrap_or_default()
    }

    /// Decodes a state; nothing if the bytes are not one.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        candid::decode_one(bytes).ok()
    }

    /// Writes the state to the manager's memory.
    ///
    /// # Errors
    ///
    /// If the memory cannot grow.
    pub fn save(&self, memory: &impl Memory) -> Result<()> {
        let state = self.encode();
        if memory.size() == 0 && memory.grow(1) < 0 {
            return Err(Error::OutOfStableMemory { pages: 1 });
        }
        memory.write(0, &(state.len() as u32).to_le_bytes());
        memory.write(4, &state);
        Ok(())
    }

    /// Reads the state from the manager's memory; nothing if there is none.
    pub fn load(memory: &impl Memory) -> Option<Self> {
        if memory.size() == 0 {
            return None;
        }
        let mut length = [0; 4];
        memory.read(0, &mut length);
        let mut state = vec![0; u32::from_le_bytes(length) as usize];
        memory.read(4, &mut state);
        Self::decode(&state)
    }
}

/// Returns `true` if stable memory begins like that of a `MemoryManager`. Does not create one.
pub fn is_managed() -> bool {
    let mut magic = [0; MANAGER_MAGIC.len()];
    if ic_cdk::api::stable_size() > 0 {
        ic_cdk::api::stable_read(0, &mut magic);
    }
    magic == MANAGER_MAGIC
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_encoding() {
        let state = SavedState { payload_bytes: 7, sqlite_created: true, ..SavedState::default() };
        assert_eq!(SavedState::decode(&state.encode()), Some(state));
        assert_eq!(SavedState::decode(b""), None);
    }

    #[test]
    fn a_state_survives_in_a_memory() {
        let memory = ic_stable_structures::VectorMemory::default();
        assert_eq!(SavedState::load(&memory), None);
        let state = SavedState { payload_bytes: 7, ..SavedState::default() };
        state.save(&memory).unwrap();
        assert_eq!(SavedState::load(&memory), Some(state));
    }
}
