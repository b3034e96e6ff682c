//! What became of a message.

use std::collections::BTreeMap;
use std::ops::AddAssign;
use std::time::Duration;

use crate::reject::Reject;
use crate::system_api::names::SystemCall;
use crate::units::{Bytes, Cycles, Instructions, OsPages, WasmPages};

/// What became of a message and what it used.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The reply, or why there is none.
    pub outcome: Result<Vec<u8>, Reject>,
    /// Whether the message was let in. One that was not cost nothing and was never there:
    /// the canister has no module, refused it in `canister_inspect_message`, or could not
    /// have taken it.
    pub admitted: bool,
    /// What the instruction counter read in the end.
    pub instructions: Instructions,
    /// Instructions that are paid for: the counter, and changed heap pages under rules that
    /// charge for those, at most the message's limit.
    pub charge: Instructions,
    /// Cycles that the canister paid. Exact for updates; installs and upgrades
    /// are charged for compiling too, which is not counted here.
    pub cycles: Cycles,
    /// The part of the charge that is for pages, before the limit cuts it.
    pub pages: PageCharges,
    /// The canister's first readings of its counter, if
    /// [`Canister::report_readings`] asked for that.
    ///
    /// [`Canister::report_readings`]: crate::Canister::report_readings
    pub readings: Vec<Reading>,
    /// Pages touched and memory held.
    pub memory: MemoryUse,
    /// Calls that read and wrote stable memory. Of an install or upgrade, those of
    /// all functions that ran; `canister_inspect_message` is not part of a message.
    pub stable_calls: StableCalls,
    /// All calls of the System API by name, if [`Canister::report_calls`] asked for them.
    ///
    /// [`Canister::report_calls`]: crate::Canister::report_calls
    pub system_calls: Option<SystemCalls>,
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
    /// Heap pages whose content changed.
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

/// Instructions charged for pages. Those of an install or upgrade are of all functions that
/// ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PageCharges {
    /// For pages of the heap.
    pub heap: Instructions,
    /// For pages of stable memory.
    pub stable: Instructions,
    /// The pages, under rules that charge for touching them.
    pub touched: Option<TouchedPages>,
}

/// Wasm pages that a message touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TouchedPages {
    /// Pages of the heap that were read or written.
    pub heap: WasmPages,
    /// Of those, pages charged as written; queries are charged for none.
    pub heap_written: WasmPages,
    /// Pages of stable memory that were read or written.
    pub stable: WasmPages,
    /// Of those, pages charged as written; queries are charged for none.
    pub stable_written: WasmPages,
}

impl AddAssign for PageCharges {
    fn add_assign(&mut self, more: Self) {
        self.heap += more.heap;
        self.stable += more.stable;
        self.touched = match (self.touched, more.touched) {
            (Some(sum), Some(more)) => Some(TouchedPages {
                heap: sum.heap + more.heap,
                heap_written: sum.heap_written + more.heap_written,
                stable: sum.stable + more.stable,
                stable_written: sum.stable_written + more.stable_written,
            }),
            (sum, more) => sum.or(more),
        };
    }
}

/// A reading of `performance_counter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The answer.
    pub used: Instructions,
    /// Cost of pages up to then.
    pub pages: PageCharges,
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

/// Calls of one function of the System API.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCount {
    /// How often it was called, also when that ended the message.
    pub calls: u64,
    /// Bytes that it was to move: of arguments, replies, texts, principals, keys. Of stable
    /// memory, those that were copied.
    pub bytes: Bytes,
}

/// Calls of the System API by function. Those of an install or upgrade are of all functions
/// that ran; `canister_inspect_message` is not part of a message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemCalls(BTreeMap<SystemCall, CallCount>);

impl SystemCalls {
    /// The functions that were called, in the order of the Interface Specification.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, CallCount)> + '_ {
        self.0.iter().map(|(call, count)| (call.name(), *count))
    }

    /// How often a function was called, by its name without `ic0.`.
    pub fn of(&self, name: &str) -> CallCount {
        SystemCall::from_name(name).and_then(|call| self.0.get(&call).copied()).unwrap_or_default()
    }

    /// Adds calls of a function.
    pub(crate) fn add(&mut self, call: SystemCall, count: CallCount) {
        if count.calls > 0 {
            let sum = self.0.entry(call).or_default();
            sum.calls += count.calls;
            sum.bytes = Bytes(sum.bytes.get().saturating_add(count.bytes.get()));
        }
    }

    /// Adds all of the others.
    pub(crate) fn add_all(&mut self, others: &Self) {
        others.0.iter().for_each(|(call, count)| self.add(*call, *count));
    }

    /// Those that copy from and to stable memory.
    pub(crate) fn stable(&self) -> StableCalls {
        let (read, wide_read) = (self.of("stable_read"), self.of("stable64_read"));
        let (write, wide_write) = (self.of("stable_write"), self.of("stable64_write"));
        StableCalls {
            reads: read.calls + wide_read.calls,
            bytes_read: read.bytes + wide_read.bytes,
            writes: write.calls + wide_write.calls,
            bytes_written: write.bytes + wide_write.bytes,
        }
    }
}

impl Execution {
    /// Neither run nor paid for.
    pub(crate) fn refused(reject: Reject) -> Self {
        Self { admitted: false, ..Self::of(Err(reject)) }
    }

    pub(crate) fn of(outcome: Result<Vec<u8>, Reject>) -> Self {
        Self {
            outcome,
            admitted: true,
            instructions: Instructions(0),
            charge: Instructions(0),
            cycles: Cycles(0),
            pages: PageCharges::default(),
            readings: Vec::new(),
            memory: MemoryUse::default(),
            stable_calls: StableCalls::default(),
            system_calls: None,
            printed: Vec::new(),
            wall: Duration::ZERO,
        }
    }
}

/// Calls of stable memory and the others, if those were asked for.
pub(crate) fn all_calls(stable: &SystemCalls, others: Option<SystemCalls>) -> Option<SystemCalls> {
    let mut all = others?;
    all.add_all(stable);
    Some(all)
}
