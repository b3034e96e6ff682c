//! Replicas, which run canisters. A suite does not know which replica it runs on.
//!
//! ```text
//!   Replica ── install ──→ Canister ── fork ──→ Messages ──→ Answer
//! ```

pub mod ceiling;
pub mod embedded;
#[cfg(any(feature = "network", feature = "pocket-ic"))]
pub mod lockstep;
#[cfg(feature = "network")]
pub mod network;
pub mod options;
#[cfg(feature = "pocket-ic")]
pub mod pocket_ic;

use std::ops::Range;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use candid::utils::ArgumentEncoder;
use candid::{CandidType, Principal, encode_args};
use fixedbitset::FixedBitSet;
use serde::de::DeserializeOwned;
use stablebench_replica::subnet::Halt;
pub use stablebench_replica::{Difference, SubnetKind, decoding};
use stablebench_replica::{Execution, PageCharges};
pub use stablebench_suite::cost::{
    Cost, Identity, Inside, Messaging, PageCosts, StableCalls, TouchedPages,
};

/// A replica.
pub trait Replica: Sync {
    /// Returns the kind and the version of the replica.
    fn identity(&self) -> Identity;

    /// Installs a module in a canister that the caller of all messages controls.
    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>>;

    /// Installs a module in a canister that is then dropped, and returns the cost. `None` if the
    /// replica does not report it.
    fn installation(&self, _wasm: &[u8]) -> Result<Option<Cost>> {
        Ok(None)
    }

    /// Returns an estimate of the instructions for compiling a module. `None` if the replica has none.
    fn compiling(&self, _wasm: &[u8]) -> Result<Option<u64>> {
        Ok(None)
    }

    /// Loads a canister with this module that [`Canister::save`] has saved, and its note. Returns
    /// `None` if there is no such file, or if the replica does not support this.
    fn load(&self, _wasm: &[u8], _path: &Path) -> Result<Option<(Box<dyn Canister>, String)>> {
        Ok(None)
    }
}

/// The cycles of a canister that may be measured in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Balance {
    /// The name of its module.
    pub name: String,
    pub canister: Principal,
    pub cycles: u128,
}

/// A receiver of messages: a canister or a fork. Errors are the replica's; a canister's refusal
/// is an [`Answer`].
pub trait Messages: Send {
    /// Sends an update and waits for its answer.
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer>;

    /// Sends an update whose work is a measurement. Profilers override it.
    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.update(method, argument)
    }

    /// Sends a query whose work is a measurement.
    fn measure_query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.query(method, argument)
    }

    /// Returns the id of the next measured call, larger than all before it. A canister refuses ids
    /// that it has seen, so that no retry measures work that was done before.
    fn call_id(&mut self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        LAST.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Sends a query.
    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer>;

    /// Sends a query that reads most of the canister's content.
    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.query(method, argument)
    }

    /// Returns the difference of this fork from its origin, if the replica knows it.
    fn difference(&self) -> Result<Option<Difference>> {
        Ok(None)
    }

    /// Returns copies of this fork and of its origin, or two of a canister that is no fork. Returns
    /// `None` if the replica cannot copy them.
    fn copies(&self) -> Option<[Copied; 2]> {
        None
    }

    /// Upgrades the canister to its own module without Candid arguments: stable memory stays, the
    /// heap is reset. Returns the cost, as far as the replica reports it.
    ///
    /// # Errors
    ///
    /// A [`Reject`] if the canister refuses; nothing has changed then.
    fn upgrade(&mut self) -> Result<Cost>;
}

impl<M: Messages + ?Sized> Messages for Box<M> {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        (**self).update(method, argument)
    }

    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        (**self).measure(method, argument)
    }

    fn measure_query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        (**self).measure_query(method, argument)
    }

    fn call_id(&mut self) -> u64 {
        (**self).call_id()
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        (**self).query(method, argument)
    }

    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        (**self).query_all(method, argument)
    }

    fn difference(&self) -> Result<Option<Difference>> {
        (**self).difference()
    }

    fn copies(&self) -> Option<[Copied; 2]> {
        (**self).copies()
    }

    fn upgrade(&mut self) -> Result<Cost> {
        (**self).upgrade()
    }
}

/// A canister with an installed module.
pub trait Canister: Messages {
    /// Returns a copy of the canister. The canister itself cannot be used until the copy is dropped,
    /// and does not see its changes.
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>>;

    /// Lifts the limits on instructions, for messages that prepare data, if the replica can. Returns the
    /// kind of subnet whose limits were lifted.
    fn lift_limits(&mut self) -> Option<SubnetKind> {
        None
    }

    /// Sets the limits of a kind of subnet again.
    fn set_limits(&mut self, _: SubnetKind) {}

    /// Returns a new switch that ends the message under way, which has no effect then, or `None` if the
    /// replica has none.
    fn switch(&mut self) -> Option<Halt> {
        None
    }

    /// Saves the canister without its module, and a note. Returns `false` if the replica does not
    /// support this.
    fn save(&self, _path: &Path, _note: &str) -> Result<bool> {
        Ok(false)
    }
}

/// A canister's answer and its cost.
#[derive(Clone, Debug)]
pub struct Answer {
    pub outcome: Result<Vec<u8>, Reject>,
    pub cost: Cost,
    /// The canister's readings of its counter; only for measurements on the embedded replica.
    pub readings: Readings,
}

/// A canister's readings of its counter, each with the cost of pages so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings(pub Vec<(u64, PageCosts)>);

impl Readings {
    /// Returns the cost of pages between two readings if both were recorded.
    pub fn between(&self, from: u64, to: u64) -> Option<PageCosts> {
        let at = |used: u64| self.0.iter().find(|(read, _)| *read == used).map(|(_, pages)| *pages);
        Some(at(to)? - at(from)?)
    }
}

/// The cost of a message, and its readings.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    pub cost: Cost,
    pub readings: Readings,
}

/// The refusal of a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Reject {
    /// The name of the replica's error code.
    pub code: String,
    pub message: String,
}

/// The reason why there is no measurement, although the replica works.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmeasured {
    /// The replica does not support the case.
    #[error("{0}")]
    NotApplicable(String),
    /// The canister had seen the call's id when the call was repeated.
    #[error("{method}: the work was done, but its answer was lost; --resume measures it again")]
    AnswerLost { method: String },
    /// The call has no id, so it was not repeated.
    #[error(
        "{method}: no answer came, and whether the work was done is not known; --resume populates \
         this fixture again"
    )]
    Unanswered { method: String },
}

/// Sends an update whose reply is `variant { Ok : T; Err }`.
pub fn update<T>(
    canister: &mut dyn Messages,
    method: &str,
    arguments: impl ArgumentEncoder,
) -> Result<(T, Cost)>
where
    T: CandidType + DeserializeOwned,
{
    let answer = canister.update(method, &encode_args(arguments)?)?;
    Ok((decode(method, answer.outcome)?, answer.cost))
}

/// Sends a query whose reply is `variant { Ok : T; Err }`.
pub fn query<T>(
    canister: &mut dyn Messages,
    method: &str,
    arguments: impl ArgumentEncoder,
) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    decode(method, canister.query(method, &encode_args(arguments)?)?.outcome)
}

/// Sends such a query that reads most of the canister's content.
pub fn query_all<T>(
    canister: &mut dyn Messages,
    method: &str,
    arguments: impl ArgumentEncoder,
) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    decode(method, canister.query_all(method, &encode_args(arguments)?)?.outcome)
}

fn decode<T>(method: &str, outcome: Result<Vec<u8>, Reject>) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    let bytes = outcome.with_context(|| method.to_owned())?;
    let answer = decoding::decode_one::<stablebench_protocol::Result<T>>(&bytes)
        .with_context(|| format!("the reply to {method} has another type than expected"))?;
    answer.with_context(|| method.to_owned())
}

/// Pages of 4 KiB in which two canisters differ.
#[derive(Clone, Default)]
pub struct Differing {
    /// True if the sizes of their memories differ.
    pub sizes: bool,
    pub heap: FixedBitSet,
    pub stable: FixedBitSet,
}

impl Differing {
    pub fn is_subset(&self, other: &Self) -> bool {
        self.sizes <= other.sizes
            && self.heap.is_subset(&other.heap)
            && self.stable.is_subset(&other.stable)
    }

    pub fn union_with(&mut self, other: &Self) {
        self.sizes |= other.sizes;
        self.heap.union_with(&other.heap);
        self.stable.union_with(&other.stable);
    }
}

/// A copy of a canister. It remembers which stable pages its queries read.
pub struct Copied {
    canister: stablebench_replica::Canister,
    read: FixedBitSet,
}

impl Copied {
    /// Empties the heap as an upgrade does that skips `canister_pre_upgrade`: what remains is in
    /// stable memory.
    pub fn empty_heap(&mut self) -> Result<()> {
        let module = self.canister.module().context("there is no module")?.clone();
        let (caller, argument) = (Principal::anonymous(), encode_args(())?);
        let upgraded = self.canister.upgrade_without_pre_upgrade(&module, caller, &argument)?;
        answer_of(upgraded).outcome.context("upgrading failed").map(drop)
    }

    /// Returns the stable pages that queries have read since the last call.
    pub fn take_read(&mut self) -> FixedBitSet {
        std::mem::take(&mut self.read)
    }

    /// Returns the pages that differ from those of another copy, or `None` if the two differ in
    /// more than pages.
    pub fn differing(&self, other: &Self) -> Result<Option<Differing>> {
        let differing = self.canister.differing_pages(&other.canister)?;
        Ok(differing.map(|pages| {
            let [mut heap, mut stable] = [FixedBitSet::new(), FixedBitSet::new()];
            insert(&mut heap, pages.heap);
            insert(&mut stable, pages.stable);
            Differing { sizes: pages.size, heap, stable }
        }))
    }
}

fn insert(pages: &mut FixedBitSet, ranges: Vec<Range<usize>>) {
    for range in ranges {
        pages.grow(range.end);
        pages.insert_range(range);
    }
}

impl From<stablebench_replica::Canister> for Copied {
    fn from(canister: stablebench_replica::Canister) -> Self {
        Self { canister, read: FixedBitSet::new() }
    }
}

impl Messages for Copied {
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        Messages::update(&mut self.canister, method, argument)
    }

    fn call_id(&mut self) -> u64 {
        Messages::call_id(&mut self.canister)
    }

    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        let caller = Principal::anonymous();
        let mut execution = self.canister.query(caller, method, argument)?;
        insert(&mut self.read, std::mem::take(&mut execution.stable_pages));
        Ok(answer_of(execution))
    }

    fn upgrade(&mut self) -> Result<Cost> {
        Messages::upgrade(&mut self.canister)
    }
}

/// Converts an execution on the embedded replica.
pub fn answer_of(execution: Execution) -> Answer {
    let cost = Cost { cycles: cycles(&execution), inside: Some(inside(&execution)) };
    let readings = readings(&execution);
    Answer { outcome: execution.outcome.map_err(reject), cost, readings }
}

/// Returns the readings of the counter by a canister that reports them.
pub fn readings(execution: &Execution) -> Readings {
    let noted = execution.readings.iter();
    Readings(noted.map(|noted| (noted.used.get(), page_costs(&noted.pages))).collect())
}

/// Converts a reject.
pub fn reject(reject: stablebench_replica::Reject) -> Reject {
    Reject { code: reject.code.name().to_owned(), message: reject.message }
}

/// Returns the cycles that an execution cost.
pub fn cycles(execution: &Execution) -> u64 {
    u64::try_from(execution.cycles.get()).unwrap_or(u64::MAX)
}

/// Returns the details of an execution.
pub fn inside(execution: &Execution) -> Inside {
    let calls = execution.stable_calls;
    Inside {
        instructions: execution.instructions.get(),
        charge: execution.charge.get(),
        heap_pages_changed: execution.memory.heap_changed.get(),
        stable_pages_accessed: execution.memory.stable_accessed.get(),
        stable_pages_written: execution.memory.stable_written.get(),
        stable_calls: Some(StableCalls {
            reads: calls.reads,
            bytes_read: calls.bytes_read.get(),
            writes: calls.writes,
            bytes_written: calls.bytes_written.get(),
        }),
        pages: Some(page_costs(&execution.pages)),
        messaging: None,
    }
}

fn page_costs(pages: &PageCharges) -> PageCosts {
    PageCosts {
        heap: pages.heap.get(),
        stable: pages.stable.get(),
        touched: pages.touched.map(|touched| TouchedPages {
            heap: touched.heap.get(),
            heap_written: touched.heap_written.get(),
            stable: touched.stable.get(),
            stable_written: touched.stable_written.get(),
        }),
    }
}

/// All codes. Source: `ErrorCode` of the `pocket-ic` crate 16, whose names the replica's are.
const CODES: [(u32, &str); 62] = [
    (101, "SubnetOversubscribed"),
    (102, "MaxNumberOfCanistersReached"),
    (201, "CanisterQueueFull"),
    (202, "IngressMessageTimeout"),
    (203, "CanisterQueueNotEmpty"),
    (204, "IngressHistoryFull"),
    (205, "CanisterIdAlreadyExists"),
    (206, "StopCanisterRequestTimeout"),
    (207, "CanisterOutOfCycles"),
    (208, "CertifiedStateUnavailable"),
    (209, "CanisterInstallCodeRateLimited"),
    (210, "CanisterHeapDeltaRateLimited"),
    (211, "SubnetCoolingDown"),
    (301, "CanisterNotFound"),
    (305, "CanisterSnapshotNotFound"),
    (402, "InsufficientMemoryAllocation"),
    (403, "InsufficientCyclesForCreateCanister"),
    (404, "SubnetNotFound"),
    (405, "CanisterNotHostedBySubnet"),
    (406, "CanisterRejectedMessage"),
    (407, "UnknownManagementMessage"),
    (408, "InvalidManagementPayload"),
    (409, "CanisterSnapshotImmutable"),
    (410, "InvalidSubnetAdmin"),
    (502, "CanisterTrapped"),
    (503, "CanisterCalledTrap"),
    (504, "CanisterContractViolation"),
    (505, "CanisterInvalidWasm"),
    (506, "CanisterDidNotReply"),
    (507, "CanisterOutOfMemory"),
    (508, "CanisterStopped"),
    (509, "CanisterStopping"),
    (510, "CanisterNotStopped"),
    (511, "CanisterStoppingCancelled"),
    (512, "CanisterInvalidController"),
    (513, "CanisterFunctionNotFound"),
    (514, "CanisterNonEmpty"),
    (517, "QueryCallGraphLoopDetected"),
    (520, "InsufficientCyclesInCall"),
    (521, "CanisterWasmEngineError"),
    (522, "CanisterInstructionLimitExceeded"),
    (524, "CanisterMemoryAccessLimitExceeded"),
    (525, "QueryCallGraphTooDeep"),
    (526, "QueryCallGraphTotalInstructionLimitExceeded"),
    (527, "CompositeQueryCalledInReplicatedMode"),
    (528, "QueryTimeLimitExceeded"),
    (529, "QueryCallGraphInternal"),
    (530, "InsufficientCyclesInComputeAllocation"),
    (531, "InsufficientCyclesInMemoryAllocation"),
    (532, "InsufficientCyclesInMemoryGrow"),
    (533, "ReservedCyclesLimitExceededInMemoryAllocation"),
    (534, "ReservedCyclesLimitExceededInMemoryGrow"),
    (535, "InsufficientCyclesInMessageMemoryGrow"),
    (536, "CanisterMethodNotFound"),
    (537, "CanisterWasmModuleNotFound"),
    (538, "CanisterAlreadyInstalled"),
    (539, "CanisterWasmMemoryLimitExceeded"),
    (540, "ReservedCyclesLimitIsTooLow"),
    (541, "CanisterInvalidControllerOrSubnetAdmin"),
    (542, "CanisterStatusAccessDenied"),
    (601, "DeadlineExpired"),
    (602, "ResponseDropped"),
];

/// Returns the name of a code.
pub fn name_of_code(number: u32) -> Option<&'static str> {
    CODES.iter().find(|(code, _)| *code == number).map(|(_, name)| *name)
}

/// Returns the code of a reject with this name, such as `IC0522`.
pub fn ic_code(name: &str) -> Option<String> {
    let (number, _) = CODES.iter().find(|(_, known)| *known == name)?;
    Some(format!("IC{number:04}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_sorted() {
        assert!(CODES.is_sorted_by(|(one, _), (next, _)| one < next));
    }

    #[cfg(feature = "pocket-ic")]
    #[test]
    fn the_table_equals_that_of_pocket_ic() {
        for number in 0..1_000 {
            let known = pocket_ic_16::ErrorCode::try_from(u64::from(number)).ok();
            assert_eq!(name_of_code(number), known.map(|code| format!("{code:?}")).as_deref());
        }
    }
}
