//! The canister log of one message: how much is free decides what a text costs.
//!
//! Source: `CanisterLog` in `rs/types/management_canister_types` of the replica;
//! the `log` cases of the conformance suite.

use std::collections::VecDeque;

use super::prices::BYTE_TRANSMITTED;
use crate::limits::{LOG_RECORD_OVERHEAD, MAX_LOG};

/// Sizes of the records that a message has left, the oldest first.
#[derive(Clone, Debug, Default)]
pub struct Log {
    records: VecDeque<u64>,
    used: u64,
}

impl Log {
    /// Instructions for a text of `bytes`, beside the price of the call.
    pub fn charge(&self, bytes: u64) -> u64 {
        let kept = bytes.min(MAX_LOG.get());
        let transmitted = bytes.min(MAX_LOG.get().saturating_sub(self.used));
        2 * kept + BYTE_TRANSMITTED * transmitted
    }

    /// Adds a record; the oldest ones make room.
    pub fn add(&mut self, bytes: u64) {
        let longest = MAX_LOG.get() - LOG_RECORD_OVERHEAD.get();
        let record = bytes.min(longest) + LOG_RECORD_OVERHEAD.get();
        while self.used + record > MAX_LOG.get() {
            match self.records.pop_front() {
                Some(oldest) => self.used -= oldest,
                None => break,
            }
        }
        self.records.push_back(record);
        self.used += record;
    }
}
