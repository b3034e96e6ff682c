//! The results of a message, and on a subnet, the function that ran and what caused it.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::{AddAssign, Range};
use std::time::Duration;

use candid::utils::ArgumentDecoder;
use ic_principal::Principal;

use crate::decoding::decode_args;
use crate::fault::Reject;
use crate::profile::Profile;
use crate::rules::{LOG_RECORD_OVERHEAD, MAX_PRINTED};
use crate::system_api::functions::SystemCall;
use crate::units::{Bytes, Cycles, Instructions, OsPages, WasmPages};

/// The outcome of a message and its costs.
#[derive(Clone, Debug)]
pub struct Execution {
    /// The reply, or the reject.
    pub outcome: Result<Vec<u8>, Reject>,
    /// True if the message was inducted. Otherwise it costs nothing and has no effect: the canister
    /// has no module, `canister_inspect_message` did not accept the message, or it was invalid.
    pub admitted: bool,
    /// Final value of the instruction counter.
    pub instructions: Instructions,
    /// Charged instructions: the counter, plus changed heap pages under rules that charge for
    /// them, at most the message's limit.
    pub charge: Instructions,
    /// Cycles that the canister paid. Exact for updates; the charge of installs and upgrades for
    /// compiling is not included.
    pub cycles: Cycles,
    /// The part of the charge for pages, before it is capped at the limit.
    pub pages: PageCharges,
    /// The canister's first readings of its counter, if [`Canister::report_readings`] asked for them.
    ///
    /// [`Canister::report_readings`]: crate::Canister::report_readings
    pub readings: Vec<Reading>,
    /// Touched pages and sizes of memories.
    pub memory: MemoryUse,
    /// The pages of stable memory that the message read or wrote, 4 KiB each: ascending ranges.
    /// Empty for an install or upgrade.
    pub stable_pages: Vec<Range<usize>>,
    /// Calls that read and wrote stable memory, for an install or upgrade by all its functions.
    /// Those of `canister_inspect_message` are not included.
    pub stable_calls: StableCalls,
    /// All System API calls by name, if [`Canister::report_calls`] was enabled.
    ///
    /// [`Canister::report_calls`]: crate::Canister::report_calls
    pub system_calls: Option<SystemCalls>,
    /// The functions of an install or upgrade with their shares of the cost, in the order in which
    /// they ran; empty for other messages.
    pub functions: Vec<FunctionCost>,
    /// Texts that the canister printed, each truncated to 32 KiB: the newest of a message, at most
    /// 2 MiB in total with 40 bytes for each.
    pub printed: Vec<String>,
    /// Number of texts that it printed before those.
    pub printed_before: u64,
    /// The instructions by function, if the subnet profiles its executions
    /// ([`Subnet::set_profiling`]).
    ///
    /// [`Subnet::set_profiling`]: crate::subnet::Subnet::set_profiling
    pub profile: Option<Box<Profile>>,
    /// Wall time on this machine.
    pub wall: Duration,
}

/// The cost of one of the functions that an install or upgrade runs.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct FunctionCost {
    /// `start`, `canister_init`, `canister_pre_upgrade` or `canister_post_upgrade`.
    pub name: &'static str,
    /// Final value of its counter.
    pub instructions: Instructions,
    /// Its part of the charge.
    pub charge: Instructions,
    /// The part of that for pages.
    pub pages: PageCharges,
}

/// Pages that a message touched, and sizes of memories after it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MemoryUse {
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

/// Instructions charged for pages, for an install or upgrade in all its functions.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PageCharges {
    /// For pages of the heap.
    pub heap: Instructions,
    /// For pages of stable memory.
    pub stable: Instructions,
    /// Number of pages, under rules that charge for touching them.
    pub touched: Option<TouchedPages>,
}

/// Wasm pages that a message touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct TouchedPages {
    /// Pages of the heap that were read or written.
    pub heap: WasmPages,
    /// Of those, pages charged as written. Queries are not charged for writes.
    pub heap_written: WasmPages,
    /// Pages of stable memory that were read or written.
    pub stable: WasmPages,
    /// Of those, pages charged as written. Queries are not charged for writes.
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

/// The use of a canister's readings of `performance_counter`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Readings {
    /// They are not reported.
    #[default]
    Ignored,
    /// They are reported.
    Reported,
    /// They are reported, and the one with this number, from 0, divides a query: all pages count as
    /// untouched after it, as if a message ended there and another one continued. Memories and the
    /// counter stay. Page charges, touched pages and limits of stable pages are then those of the
    /// second part. Other messages are not divided, because they keep what they wrote.
    DividedAt(usize),
}

/// A reading of `performance_counter`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// The value that it returned.
    pub used: Instructions,
    /// Charges for pages up to then.
    pub pages: PageCharges,
}

/// Calls of a message that copy from and to stable memory, of the 32-bit and the 64-bit API
/// together. The counts include writes that a trap, a reject or a query undoes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StableCalls {
    /// Calls of `stable_read` and `stable64_read`, including those of zero bytes and one that ended
    /// the message.
    pub reads: u64,
    /// Bytes that they copied. A call that ended the message copied none.
    pub bytes_read: Bytes,
    /// Calls of `stable_write` and `stable64_write`, counted like `reads`.
    pub writes: u64,
    /// Bytes that they copied, counted like `bytes_read`.
    pub bytes_written: Bytes,
}

/// Calls of one System API function.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallCount {
    /// Number of calls, including one that ended the message.
    pub calls: u64,
    /// Requested bytes of arguments, replies, texts, principals and keys. For stable memory, the
    /// copied bytes.
    pub bytes: Bytes,
}

/// System API calls by function, for an install or upgrade of all its functions. Those of
/// `canister_inspect_message` are not included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SystemCalls(BTreeMap<SystemCall, CallCount>);

impl SystemCalls {
    /// Returns the functions that were called, in the order of the Interface Specification.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, CallCount)> + '_ {
        self.0.iter().map(|(call, count)| (call.name(), *count))
    }

    /// Returns the calls of a function, by its name without `ic0.`.
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

    /// Adds the calls of `others`.
    pub(crate) fn add_all(&mut self, others: &Self) {
        others.0.iter().for_each(|(call, count)| self.add(*call, *count));
    }

    /// Returns the calls that copy from and to stable memory.
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

/// A reply could not be decoded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplyError {
    /// There is none: the message was rejected.
    #[error(transparent)]
    Rejected(#[from] Reject),
    /// The reply has other types.
    #[error("the reply has other types: {0}")]
    Types(#[from] candid::Error),
}

/// The counts of a message, as text for snapshots: a line per value, `NAME: NUMBER`.
///
/// ```text
/// instructions: 41507             Execution::instructions
/// charge: 41507                   Execution::charge
/// cycles: 5341508                 Execution::cycles
/// reply bytes: 15                 or `reject: CODE: MESSAGE`
/// heap touched: 4                 Wasm pages, and so on; under rules that charge for them
/// heap written: 1
/// stable touched: 2
/// stable written: 1
/// heap changed: 3                 pages of 4 KiB
/// stable pages read: 0            pages of 4 KiB that were read and not written
/// stable pages written: 2         pages of 4 KiB
/// heap size: 17                   Wasm pages
/// stable size: 129
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Counts<'a>(&'a Execution);

impl fmt::Display for Counts<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Execution { instructions, charge, cycles, pages, memory, outcome, .. } = self.0;
        writeln!(f, "instructions: {}", instructions.get())?;
        writeln!(f, "charge: {}", charge.get())?;
        writeln!(f, "cycles: {}", cycles.get())?;
        match outcome {
            Ok(reply) => writeln!(f, "reply bytes: {}", reply.len())?,
            Err(reject) => writeln!(f, "reject: {reject}")?,
        }
        if let Some(touched) = pages.touched {
            writeln!(f, "heap touched: {}", touched.heap.get())?;
            writeln!(f, "heap written: {}", touched.heap_written.get())?;
            writeln!(f, "stable touched: {}", touched.stable.get())?;
            writeln!(f, "stable written: {}", touched.stable_written.get())?;
        }
        let read = memory.stable_accessed.get() - memory.stable_written.get();
        writeln!(f, "heap changed: {}", memory.heap_changed.get())?;
        writeln!(f, "stable pages read: {read}")?;
        writeln!(f, "stable pages written: {}", memory.stable_written.get())?;
        writeln!(f, "heap size: {}", memory.heap.get())?;
        write!(f, "stable size: {}", memory.stable.get())
    }
}

impl Execution {
    /// Decodes the reply as a tuple of Candid values.
    ///
    /// # Errors
    ///
    /// If the message was rejected, or the reply has other types.
    pub fn reply<T: for<'a> ArgumentDecoder<'a>>(&self) -> Result<T, ReplyError> {
        match &self.outcome {
            Ok(reply) => Ok(decode_args(reply)?),
            Err(reject) => Err(reject.clone().into()),
        }
    }

    /// The counts as text, for snapshots. They do not depend on the machine.
    pub fn counts(&self) -> Counts<'_> {
        Counts(self)
    }

    /// The execution of a message that was not inducted.
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
            stable_pages: Vec::new(),
            stable_calls: StableCalls::default(),
            system_calls: None,
            functions: Vec::new(),
            printed: Vec::new(),
            printed_before: 0,
            profile: None,
            wall: Duration::ZERO,
        }
    }
}

/// Stable memory calls and the others, if the others were requested.
pub(crate) fn all_calls(stable: &SystemCalls, others: Option<SystemCalls>) -> Option<SystemCalls> {
    let mut all = others?;
    all.add_all(stable);
    Some(all)
}

/// The newest texts of a message, as many as the largest log holds, so that a canister that prints
/// in a loop uses bounded memory.
///
/// Source: `CanisterLog` in `rs/types/types/src/canister_log.rs` of the replica.
#[derive(Clone, Debug, Default)]
pub struct Printed {
    texts: VecDeque<String>,
    bytes: u64,
    /// Number of texts before those.
    dropped: u64,
}

impl Printed {
    /// Adds a text, and drops the oldest if there is no room for it.
    pub fn add(&mut self, text: String) {
        self.bytes += size(&text);
        self.texts.push_back(text);
        while self.bytes > MAX_PRINTED.get()
            && let Some(oldest) = self.texts.pop_front()
        {
            self.bytes -= size(&oldest);
            self.dropped += 1;
        }
    }

    /// Adds the texts that a later function printed.
    pub fn append(&mut self, later: Self) {
        if later.dropped > 0 {
            let texts = std::mem::take(&mut self.texts);
            self.dropped += texts.len() as u64 + later.dropped;
            self.bytes = 0;
        }
        later.texts.into_iter().for_each(|text| self.add(text));
    }

    /// The texts, the oldest first, and the number of those before them.
    pub fn into_parts(self) -> (Vec<String>, u64) {
        (self.texts.into(), self.dropped)
    }
}

fn size(text: &str) -> u64 {
    text.len() as u64 + LOG_RECORD_OVERHEAD.get()
}

/// The number of the execution that caused a message; `None` if a user or the replica did.
pub type Cause = Option<u64>;

/// One execution on a subnet.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The number of the execution: one more than that of the one before it.
    pub number: u64,
    /// The execution that caused it, unless a user or the replica did.
    pub cause: Cause,
    /// The canister.
    pub canister: Principal,
    /// The function that ran.
    pub function: Function,
    /// Cycles that the canister sent with calls, net of those that came back and those that it
    /// accepted.
    pub cycles_sent: i128,
    /// The part of the execution's cycles that is for messages: the ingress message, calls, and for
    /// a callback the response.
    pub transmission: Cycles,
    /// The outcome and the costs. The cycles include the transmission of its calls, and for a
    /// callback that of the response.
    pub execution: Execution,
}

impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.function, self.canister)
    }
}

/// The function that an execution ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Function {
    /// An update method.
    Update(String),
    /// A query method, called by a user, or by a canister or a user as an update.
    Query(String),
    /// A composite query method.
    CompositeQuery(String),
    /// The callback of a reply.
    ReplyCallback,
    /// The callback of a reject.
    RejectCallback,
    /// The cleanup after a callback failed.
    Cleanup,
    /// `canister_heartbeat`.
    Heartbeat,
    /// `canister_global_timer`.
    GlobalTimer,
    /// `canister_on_low_wasm_memory`.
    OnLowWasmMemory,
    /// A method of the management canister that concerns the canister.
    Management(String),
}

impl Function {
    /// The name of a method.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Update(name)
            | Self::Query(name)
            | Self::CompositeQuery(name)
            | Self::Management(name) => Some(name),
            Self::ReplyCallback
            | Self::RejectCallback
            | Self::Cleanup
            | Self::Heartbeat
            | Self::GlobalTimer
            | Self::OnLowWasmMemory => None,
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Update(name) => write!(f, "{name}"),
            Self::Query(name) => write!(f, "{name} (query)"),
            Self::CompositeQuery(name) => write!(f, "{name} (composite query)"),
            Self::ReplyCallback => f.write_str("reply callback"),
            Self::RejectCallback => f.write_str("reject callback"),
            Self::Cleanup => f.write_str("cleanup"),
            Self::Heartbeat => f.write_str("heartbeat"),
            Self::GlobalTimer => f.write_str("timer"),
            Self::OnLowWasmMemory => f.write_str("low memory hook"),
            Self::Management(name) => write!(f, "{name} (management canister)"),
        }
    }
}

/// Executions that are kept.
const MAX_KEPT: usize = 1 << 16;
/// Nodes of profiles that are kept.
const MAX_NODES: usize = 1 << 20;

/// The executions since they were last taken.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    next: u64,
    kept: Vec<Executed>,
    profiles: bool,
    /// Nodes of the profiles so far.
    nodes: usize,
}

impl Trace {
    /// The trace of a query, which profiles if this one does.
    pub fn of_query(&self) -> Self {
        Self { profiles: self.profiles, ..Self::default() }
    }

    /// Returns true if the next execution is profiled.
    pub fn profiles(&self) -> bool {
        self.profiles && self.nodes <= MAX_NODES && self.kept.len() < MAX_KEPT
    }

    /// Sets whether executions are profiled, and keeps profiles up to the limit again.
    pub fn set_profiling(&mut self, on: bool) {
        (self.profiles, self.nodes) = (on, 0);
    }

    /// The number of the next execution.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Adds an execution and returns its number.
    pub fn add(
        &mut self,
        cause: Cause,
        canister: Principal,
        function: Function,
        cycles_sent: i128,
        transmission: Cycles,
        mut execution: Execution,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        if self.kept.len() < MAX_KEPT {
            let nodes = execution.profile.as_ref().map_or(0, |profile| profile.nodes.len());
            self.nodes = self.nodes.saturating_add(nodes);
            if self.nodes > MAX_NODES {
                execution.profile = None;
            }
            self.kept.push(Executed {
                number,
                cause,
                canister,
                function,
                cycles_sent,
                transmission,
                execution,
            });
        }
        number
    }

    /// Takes the executions that were kept.
    pub fn take(&mut self) -> Vec<Executed> {
        std::mem::take(&mut self.kept)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(first: u64, last: u64) -> Printed {
        let mut printed = Printed::default();
        (first..=last).for_each(|number| printed.add(format!("{number:05}")));
        printed
    }

    #[test]
    fn the_newest_texts_are_kept() {
        let most = MAX_PRINTED.get() / 45;
        let (texts, dropped) = printed(1, most).into_parts();
        assert_eq!((texts.len() as u64, dropped), (most, 0));
        let (texts, dropped) = printed(1, most + 2).into_parts();
        assert_eq!((texts.len() as u64, dropped), (most, 2));
        assert_eq!(texts[0], "00003");
    }

    #[test]
    fn texts_of_a_later_function_replace_earlier_ones() {
        let most = MAX_PRINTED.get() / 45;
        let after = |last| {
            let mut all = printed(1, 10);
            all.append(printed(11, last));
            all.into_parts()
        };
        assert_eq!(after(20).0.concat(), printed(1, 20).into_parts().0.concat());
        assert_eq!(after(20).1, 0);
        let (texts, dropped) = after(most + 1);
        assert_eq!((texts[0].as_str(), dropped), ("00002", 1));
        let (texts, dropped) = after(most + 11);
        assert_eq!((texts[0].as_str(), dropped), ("00012", 11));
    }
}
