//! The bytes of a canister, its history, and its allocations.

use std::collections::VecDeque;

use crate::canister::{Canister, Settings};
use crate::cycles::{self, Threshold};
use crate::limits::{DEFAULT_LOG, LOG_STORE_OVERHEAD, MAX_HISTORY};
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
const REPLICA_GLOBALS: u64 = 1;
/// Bytes that the replica counts for a global.
pub(crate) const GLOBAL_SIZE: Bytes = Bytes(32);
/// Bytes that the replica counts for a custom section in addition to its name and content.
const SECTION_OVERHEAD: u64 = 1;
/// Bytes that the replica counts for a change in the history.
pub(crate) const CHANGE_SIZE: Bytes = Bytes(160);
/// Bytes that it counts for each controller in such a change.
const CONTROLLER_SIZE: u64 = 30;

impl Canister {
    /// The balance below which the canister freezes.
    pub(crate) fn threshold(&self, rules: Rules, messages: Bytes) -> Threshold {
        let Allocation { compute, memory: allocated, freezing_seconds: seconds, .. } =
            self.allocation;
        let other = self.sizes(rules).other() + self.stored;
        let reserved = self.reserved;
        Threshold { rules, seconds, other, messages, compute, allocated, reserved }
    }

    /// Bytes of its two memories.
    pub(crate) fn memories(&self) -> Bytes {
        Bytes((self.state.heap.size() + self.state.stable.size()) as u64)
    }

    /// Bytes of its parts.
    pub(crate) fn sizes(&self, rules: Rules) -> Sizes {
        let mut sizes = Sizes {
            heap: Bytes(self.state.heap.size() as u64),
            stable: Bytes(self.state.stable.size() as u64),
            history: self.history.iter().copied().sum(),
            log: self.allocation.log_store(rules),
            ..Sizes::default()
        };
        if let Some(module) = &self.module {
            let sections = &module.info().custom_sections;
            let sections = sections.iter().map(|(name, section)| {
                (name.len() + section.content.len()) as u64 + SECTION_OVERHEAD
            });
            let globals = module.globals().len() as u64 + REPLICA_GLOBALS;
            sizes.globals = Bytes(globals * GLOBAL_SIZE.get());
            sizes.module = Bytes(module.uploaded().len() as u64);
            sizes.sections = Bytes(sections.sum());
        }
        sizes
    }

    /// Adds a change to the history, of which the replica keeps the last ones.
    pub(crate) fn count_in_history(&mut self, controllers: Option<usize>) {
        self.record_change(change_size(controllers.unwrap_or_default()));
    }

    /// The history of a canister that was created and installed, for one that is loaded.
    pub(crate) fn history_of(settings: &Settings) -> VecDeque<Bytes> {
        VecDeque::from([creation_size(settings), CHANGE_SIZE])
    }

    /// Adds a change to the history, of which the replica keeps the last ones.
    pub(crate) fn record_change(&mut self, bytes: Bytes) {
        if self.history.len() == MAX_HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(bytes);
    }
}

/// Bytes of the first change in a canister's history.
pub(crate) fn creation_size(settings: &Settings) -> Bytes {
    change_size(settings.controllers.len())
}

/// Bytes of a change in a canister's history that lists so many controllers.
fn change_size(controllers: usize) -> Bytes {
    CHANGE_SIZE + Bytes(CONTROLLER_SIZE * controllers as u64)
}
