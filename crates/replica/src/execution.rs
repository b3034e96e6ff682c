//! What became of a message.

use std::ops::AddAssign;
use std::time::Duration;

use crate::reject::Reject;
use crate::units::{Bytes, Cycles, Instructions, OsPages, WasmPages};

/// What became of a message and what it used.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The reply, or why there is none.
    pub outcome: Result<Vec<u8>, Reject>,
    /// What the instruction counter read in the end.
    pub instructions: Instructions,
    /// Instructions that are paid for: the counter and changed heap pages, at
    /// most the message's limit.
    pub charge: Instructions,
    /// Cycles that the canister paid. Exact for updates; installs and upgrades
    /// are charged for compiling too, which is not counted here.
    pub cycles: Cycles,
    /// Pages touched and memory held.
    pub memory: MemoryUse,
    /// Calls that read and wrote stable memory. Of an install or upgrade, those of
    /// all functions that ran; `canister_inspect_message` is not part of a message.
    pub stable_calls: StableCalls,
    /// Texts that the canister printed, each cut to 32 KiB: the first 1 000 of a message,
    /// and no more than 1 MiB of them.
    pub printed: Vec<String>,
    /// How long it took here.
    pub wall: Duration,
}

/// Pages that a message touched and memory that the canister holds after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemoryUse {
    /// Heap pages that were written, whether or not they changed.
    pub heap_written: OsPages,
    /// Heap pages whose content changed; these are charged for.
    pub heap_changed: OsPages,
    /// Stable pages that were written.
    pub stable_written: OsPages,
    /// Stable pages that were read or written.
    pub stable_accessed: OsPages,
    /// Size of the heap.
    pub heap: WasmPages,
    /// Size of stable memory.
    pub stable: WasmPages,
}

/// Calls of a message that copy from and to stable memory, those of the 32-bit and the
/// 64-bit System API together. They are counted as the message did them: a trap, a
/// reject or a query undoes the writes and not the counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StableCalls {
    /// Calls of `stable_read` and `stable64_read`, also of no bytes, and also the one
    /// that ended the message.
    pub reads: u64,
    /// Bytes that they copied; a call that ended the message copied none.
    pub bytes_read: Bytes,
    /// Calls of `stable_write` and `stable64_write`, like `reads`.
    pub writes: u64,
    /// Bytes that they copied, like `bytes_read`.
    pub bytes_written: Bytes,
}

impl AddAssign for StableCalls {
    fn add_assign(&mut self, other: Self) {
        self.reads += other.reads;
        self.bytes_read += other.bytes_read;
        self.writes += other.writes;
        self.bytes_written += other.bytes_written;
    }
}

impl Execution {
    /// Neither run nor paid for.
    pub(crate) fn refused(reject: Reject) -> Self {
        Self::of(Err(reject))
    }

    pub(crate) fn of(outcome: Result<Vec<u8>, Reject>) -> Self {
        Self {
            outcome,
            instructions: Instructions(0),
            charge: Instructions(0),
            cycles: Cycles(0),
            memory: MemoryUse::default(),
            stable_calls: StableCalls::default(),
            printed: Vec::new(),
            wall: Duration::ZERO,
        }
    }
}
