//! The canister log of one message: how much is free decides what a text costs.
//!
//! Source: `CanisterLog` in `rs/types/management_canister_types` of the replica;
//! the `log` cases of the conformance suite.

use std::collections::VecDeque;

use super::prices::BYTE_TRANSMITTED;
use crate::limits::LOG_RECORD_OVERHEAD;
use crate::units::Bytes;

/// Sizes of the records that a message has left, the oldest first.
#[derive(Clone, Debug)]
pub struct Log {
    /// Bytes that one message may leave.
    most: u64,
    records: VecDeque<u64>,
    used: u64,
}

impl Log {
    /// An empty log of at most so many bytes.
    pub fn new(most: Bytes) -> Self {
        Self { most: most.get(), records: VecDeque::new(), used: 0 }
    }

    /// Instructions for a text of `bytes`, beside the price of the call.
    pub fn charge(&self, bytes: u64) -> u64 {
        let kept = bytes.min(self.most);
        let transmitted = bytes.min(self.most.saturating_sub(self.used));
        2 * kept + BYTE_TRANSMITTED * transmitted
    }

    /// Adds a record; the oldest ones make room.
    pub fn add(&mut self, bytes: u64) {
        let longest = self.most - LOG_RECORD_OVERHEAD.get();
        let record = bytes.min(longest) + LOG_RECORD_OVERHEAD.get();
        while self.used + record > self.most {
            match self.records.pop_front() {
                Some(oldest) => self.used -= oldest,
                None => break,
            }
        }
        self.records.push_back(record);
        self.used += record;
    }
}
