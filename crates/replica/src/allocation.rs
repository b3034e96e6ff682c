//! Resources that a canister uses or has reserved.

use crate::cycles;
use crate::limits::{DEFAULT_LOG, LOG_STORE_OVERHEAD};
use crate::rules::Rules;
use crate::units::Bytes;

/// Resources that a canister has reserved, and the time for which it must be able to pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allocation {
    /// Compute, in percent of a core.
    pub compute: u64,
    /// Memory; 0 for none.
    pub memory: Bytes,
    /// Freezing threshold in seconds.
    pub freezing_seconds: u64,
    /// Bytes of records that the log keeps; 0 for no log. Missing in older files.
    #[serde(default = "default_log")]
    pub log: Bytes,
}

/// Bytes of records that a log keeps by default.
const fn default_log() -> Bytes {
    DEFAULT_LOG
}

impl Allocation {
    /// Bytes of the store of the log.
    pub fn log_store(&self, rules: Rules) -> Bytes {
        match self.log {
            Bytes(0) => Bytes(0),
            _ if !rules.set().log_store => Bytes(0),
            records => LOG_STORE_OVERHEAD + records,
        }
    }
}

impl Default for Allocation {
    fn default() -> Self {
        let freezing_seconds = cycles::FREEZING_SECONDS;
        Self { compute: 0, memory: Bytes(0), freezing_seconds, log: DEFAULT_LOG }
    }
}

/// Bytes of a canister.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub heap: Bytes,
    pub stable: Bytes,
    pub globals: Bytes,
    pub module: Bytes,
    pub sections: Bytes,
    pub history: Bytes,
    pub log: Bytes,
}

impl Sizes {
    /// Bytes of everything but the two memories.
    pub fn other(&self) -> Bytes {
        self.globals + self.module + self.sections + self.history + self.log
    }

    /// Bytes of what a snapshot copies.
    pub fn snapshot(&self) -> Bytes {
        self.heap + self.stable + self.globals + self.module
    }
}

/// Globals that the replica adds to a module.
pub(crate) const REPLICA_GLOBALS: u64 = 1;
/// Bytes that the replica counts for a global.
pub(crate) const GLOBAL_SIZE: Bytes = Bytes(32);
/// Bytes that the replica counts for a custom section in addition to its name and content.
pub(crate) const SECTION_OVERHEAD: u64 = 1;
/// Bytes that the replica counts for a change in the history.
pub(crate) const CHANGE_SIZE: Bytes = Bytes(160);
/// Bytes that it counts for each controller in such a change.
const CONTROLLER_SIZE: u64 = 30;

/// Bytes of the first change in a canister's history: its creation with this number of controllers.
pub(crate) fn creation_size(controllers: usize) -> Bytes {
    change_size(controllers)
}

/// Bytes of a change in a canister's history that lists this number of controllers.
pub(crate) fn change_size(controllers: usize) -> Bytes {
    CHANGE_SIZE + Bytes(CONTROLLER_SIZE * controllers as u64)
}
