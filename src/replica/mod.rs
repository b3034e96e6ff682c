//! Replicas, which run canisters. A suite does not know which replica it runs on.
//!
//! ```text
//!   Replica ── install ──→ Canister ── fork ──→ Messages
//! ```

pub mod address;
pub mod codes;
mod copied;
pub mod embedded;
#[cfg(any(feature = "network", feature = "pocket-ic"))]
pub mod lockstep;
#[cfg(feature = "network")]
pub mod network;
pub mod options;
#[cfg(feature = "pocket-ic")]
pub mod pocket_ic;
pub mod proposed;
pub mod subnet;
pub mod tally;

use std::ops::{Add, Sub};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use candid::utils::ArgumentEncoder;
use candid::{CandidType, Principal, encode_args};
pub use copied::{Copied, Differing};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
pub use stablebench_replica::Difference;
pub use stablebench_replica::decoding;

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

/// The identity of a replica.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// `embedded`, `pocket-ic`, `network`.
    pub kind: String,
    pub version: String,
    /// `application`, `system` or `benchmarking`, on which limits and prices depend. For a
    /// network, the subnet's id or `unknown`.
    pub subnet: String,
    /// The name of the rule set by which it charges, such as `2026-10`, or `unknown`.
    #[serde(default = "first_rules")]
    pub rules: String,
}

/// The only rule set at the time of results that do not name one.
fn first_rules() -> String {
    "2025-10".to_owned()
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

/// The cost of a message as the replica reports it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Cycles paid.
    pub cycles: u64,
    /// Details that only the embedded replica reports.
    pub inside: Option<Inside>,
}

/// The activity of a message inside of the embedded replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inside {
    /// The instruction counter at the end of the message.
    pub instructions: u64,
    /// Instructions that are charged: those, and the costs of pages.
    pub charge: u64,
    /// Heap pages of 4 KiB whose content changed.
    pub heap_pages_changed: u64,
    /// Stable pages of 4 KiB read or written.
    pub stable_pages_accessed: u64,
    /// Stable pages of 4 KiB written.
    pub stable_pages_written: u64,
    /// Calls that read or write stable memory; absent from older results.
    pub stable_calls: Option<StableCalls>,
    /// The part of `charge` that is for pages; absent from older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageCosts>,
    /// The executions and their messages, for a canister that calls others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messaging: Option<Messaging>,
}

/// The executions that a message caused, and the cycles for sending messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Messaging {
    /// Number of executions, callbacks and tasks included.
    pub executions: u64,
    /// The part of the cycles that is for the ingress message, for calls, and for responses.
    pub cycles: u64,
}

/// Instructions that are charged for memory pages, and the pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PageCosts {
    /// Instructions for pages of the heap.
    pub heap: u64,
    /// Instructions for pages of stable memory.
    pub stable: u64,
    /// The pages, under rules that charge for touching them.
    pub touched: Option<TouchedPages>,
}

/// Wasm pages (64 KiB) that a message touched and wrote, each counted once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TouchedPages {
    /// Pages of the heap that were read or written.
    pub heap: u64,
    /// Pages of the heap that were written; none are counted in queries.
    pub heap_written: u64,
    /// Pages of stable memory that were read or written.
    pub stable: u64,
    /// Pages of stable memory that were written; none are counted in queries.
    pub stable_written: u64,
}

impl PageCosts {
    /// Returns `total` without the cost of pages, or `None` if the pages cost more.
    pub fn compute(&self, total: u64) -> Option<u64> {
        total.checked_sub(self.heap)?.checked_sub(self.stable)
    }
}

impl Add for Cost {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            cycles: self.cycles + other.cycles,
            inside: self.inside.zip(other.inside).map(|(one, other)| one + other),
        }
    }
}

impl Add for Inside {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        let calls = self.stable_calls.zip(other.stable_calls);
        let messaging = self.messaging.zip(other.messaging);
        Self {
            instructions: self.instructions + other.instructions,
            charge: self.charge + other.charge,
            heap_pages_changed: self.heap_pages_changed + other.heap_pages_changed,
            stable_pages_accessed: self.stable_pages_accessed + other.stable_pages_accessed,
            stable_pages_written: self.stable_pages_written + other.stable_pages_written,
            stable_calls: calls.map(|(one, other)| one + other),
            pages: self.pages.zip(other.pages).map(|(one, other)| one + other),
            messaging: messaging.map(|(one, other)| one + other),
        }
    }
}

impl Add for StableCalls {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            reads: self.reads + other.reads,
            bytes_read: self.bytes_read + other.bytes_read,
            writes: self.writes + other.writes,
            bytes_written: self.bytes_written + other.bytes_written,
        }
    }
}

impl Add for Messaging {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self { executions: self.executions + other.executions, cycles: self.cycles + other.cycles }
    }
}

impl Add for TouchedPages {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            heap: self.heap + other.heap,
            heap_written: self.heap_written + other.heap_written,
            stable: self.stable + other.stable,
            stable_written: self.stable_written + other.stable_written,
        }
    }
}

impl Sub for TouchedPages {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            heap: self.heap.saturating_sub(other.heap),
            heap_written: self.heap_written.saturating_sub(other.heap_written),
            stable: self.stable.saturating_sub(other.stable),
            stable_written: self.stable_written.saturating_sub(other.stable_written),
        }
    }
}

impl Sub for PageCosts {
    type Output = Self;

    fn sub(self, other: Self) -> Self {
        Self {
            heap: self.heap.saturating_sub(other.heap),
            stable: self.stable.saturating_sub(other.stable),
            touched: self.touched.zip(other.touched).map(|(one, other)| one - other),
        }
    }
}

impl Add for PageCosts {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            heap: self.heap + other.heap,
            stable: self.stable + other.stable,
            touched: self.touched.zip(other.touched).map(|(one, other)| one + other),
        }
    }
}

/// A message's calls of stable memory, 32-bit and 64-bit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StableCalls {
    /// Number of reads.
    pub reads: u64,
    pub bytes_read: u64,
    /// Number of writes.
    pub writes: u64,
    pub bytes_written: u64,
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
