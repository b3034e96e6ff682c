//! What a canister printed: the newest records, as on the IC within 4 KiB.
//!
//! Updates and installs print to it, queries do not. A trap leaves its text after `[TRAP]: `.

use std::collections::VecDeque;

use candid::Principal;
use ic_management_canister_types::CanisterLogRecord;
use stablebench_replica::{ErrorCode, Execution, Reject};

/// Bytes of all records.
const MOST: usize = 4 << 10;
/// Bytes that a record takes beside its content.
const OVERHEAD: usize = 40;

/// The records of a canister, the oldest first.
#[derive(Default)]
pub struct Log {
    records: VecDeque<CanisterLogRecord>,
    bytes: usize,
    next: u64,
}

impl Log {
    /// Adds what a message of `canister` printed at `time`, nanoseconds since 1970.
    pub fn add(&mut self, canister: &Principal, time: u64, execution: &Execution) {
        for text in &execution.printed {
            self.push(time, text.as_bytes());
        }
        if let Err(reject) = &execution.outcome
            && let Some(text) = trap(canister, reject)
        {
            self.push(time, format!("[TRAP]: {text}").as_bytes());
        }
    }

    fn push(&mut self, timestamp_nanos: u64, content: &[u8]) {
        let content = content[..content.len().min(MOST - OVERHEAD)].to_vec();
        self.bytes += content.len() + OVERHEAD;
        self.records.push_back(CanisterLogRecord { idx: self.next, timestamp_nanos, content });
        self.next += 1;
        while self.bytes > MOST
            && let Some(oldest) = self.records.pop_front()
        {
            self.bytes -= oldest.content.len() + OVERHEAD;
        }
    }

    /// The records, the oldest first.
    pub fn records(&self) -> impl Iterator<Item = &CanisterLogRecord> {
        self.records.iter()
    }
}

/// The text of a trap.
fn trap<'a>(canister: &Principal, reject: &'a Reject) -> Option<&'a str> {
    let message = reject.message.strip_prefix(&format!("Error from Canister {canister}: "))?;
    match reject.code {
        ErrorCode::CanisterCalledTrap => {
            let text = message.strip_prefix("Canister called `ic0.trap` with message: '")?;
            Some(text.rsplit_once('\'')?.0)
        }
        ErrorCode::CanisterTrapped => message.strip_prefix("Canister trapped: ")?.lines().next(),
        _ => None,
    }
}
