//! The bytes of a canister, and the balance below which it freezes.

use std::collections::VecDeque;

use super::{Canister, Settings};
use crate::allocation::{
    Allocation, CHANGE_SIZE, GLOBAL_SIZE, REPLICA_GLOBALS, SECTION_OVERHEAD, Sizes, change_size,
    creation_size,
};
use crate::cycles::Threshold;
use crate::limits::MAX_HISTORY;
use crate::rules::Rules;
use crate::units::Bytes;

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
        VecDeque::from([creation_size(settings.controllers.len()), CHANGE_SIZE])
    }

    /// Adds a change to the history, of which the replica keeps the last ones.
    pub(crate) fn record_change(&mut self, bytes: Bytes) {
        if self.history.len() == MAX_HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(bytes);
    }
}
