//! Where canisters run. A suite does not know which replica it runs on.
//!
//! ```text
//!   Replica ── install ──→ Canister ── fork ──→ Messages
//! ```

mod arguments;
pub mod decoding;
pub mod embedded;
pub mod lockstep;
pub mod network;
#[cfg(feature = "pocket-ic")]
pub mod pocket_ic;
pub mod tally;

use std::ops::{Add, Sub};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use candid::CandidType;
use candid::utils::ArgumentEncoder;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
pub use stablebench_replica::Difference;

/// Something that canisters run on.
pub trait Replica: Sync {
    /// What it is and in which version.
    fn identity(&self) -> Identity;

    /// A canister with that module installed, controlled by the caller of all
    /// messages.
    fn install(&self, wasm: &[u8]) -> Result<Box<dyn Canister>>;

    /// A canister with that module as [`Canister::save`] has saved it, and the note; nothing
    /// where there is no such file, or where the replica cannot do this.
    fn load(
        &self,
        _wasm: &[u8],
        _path: &Path,
        _trust: Trust,
    ) -> Result<Option<(Box<dyn Canister>, String)>> {
        Ok(None)
    }
}

/// What of a saved canister is taken on trust.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trust {
    /// That memories are whole which the file system says were not written since.
    Stamp,
    /// Nothing: the memories are read and held against their checksums.
    Nothing,
}

/// Which replica it was.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    /// `embedded`, `pocket-ic`, `network`.
    pub kind: String,
    /// Its version.
    pub version: String,
    /// `application`, `system` or `benchmarking`: limits and prices depend on it. Of a network:
    /// the subnet's id, or `unknown`.
    pub subnet: String,
    /// Name of the rule set by which it charges, as `2026-08`, or `unknown`.
    #[serde(default = "first_rules")]
    pub rules: String,
}

/// The only rules that were known before results named them.
fn first_rules() -> String {
    "2025-10".to_owned()
}

/// What takes messages. The outer errors are the replica's; a canister's refusal is
/// an [`Answer`].
pub trait Messages: Send {
    /// Sends an update and waits for its answer.
    fn update(&mut self, method: &str, argument: &[u8]) -> Result<Answer>;

    /// Sends an update whose work is a measurement, for those who look into such.
    fn measure(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.update(method, argument)
    }

    /// Asks a query whose work is a measurement, likewise.
    fn measure_query(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.query(method, argument)
    }

    /// The id of the next measured call: larger than every one before it. A canister refuses
    /// ids that were there already, so that no retry measures work that was done before.
    fn call_id(&mut self) -> u64 {
        static LAST: AtomicU64 = AtomicU64::new(0);
        LAST.fetch_add(1, Ordering::Relaxed) + 1
    }

    /// Asks a query.
    fn query(&mut self, method: &str, argument: &[u8]) -> Result<Answer>;

    /// Asks a query that goes through most of what the canister holds.
    fn query_all(&mut self, method: &str, argument: &[u8]) -> Result<Answer> {
        self.query(method, argument)
    }

    /// How this fork differs from what it was forked from, where the replica can tell.
    fn difference(&self) -> Result<Option<Difference>> {
        Ok(None)
    }

    /// Upgrades the canister to the module that it has, with no Candid arguments: stable
    /// memory stays, the heap begins anew. A canister's refusal is an error that holds a
    /// [`Reject`]; nothing has changed then.
    fn upgrade(&mut self) -> Result<()>;
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

    fn upgrade(&mut self) -> Result<()> {
        (**self).upgrade()
    }
}

/// A canister with a module.
pub trait Canister: Messages {
    /// The same content once more. What happens to it does not happen to the
    /// canister, which waits until it is dropped.
    fn fork(&mut self) -> Result<Box<dyn Messages + '_>>;

    /// Saves the canister with a note, but not its module; tells whether the replica can do
    /// this.
    fn save(&self, _path: &Path, _note: &str) -> Result<bool> {
        Ok(false)
    }
}

/// What a canister answered, and what that cost.
#[derive(Clone, Debug)]
pub struct Answer {
    pub outcome: Result<Vec<u8>, Reject>,
    pub cost: Cost,
    /// The canister's readings of its counter, of a measurement on the embedded replica.
    pub readings: Readings,
}

/// A canister's readings of its counter, and the cost of pages by then.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Readings(pub Vec<(u64, PageCosts)>);

impl Readings {
    /// Returns the cost of pages between two readings, where both were noted.
    pub fn between(&self, from: u64, to: u64) -> Option<PageCosts> {
        let at = |used: u64| self.0.iter().find(|(read, _)| *read == used).map(|(_, pages)| *pages);
        Some(at(to)? - at(from)?)
    }
}

/// Cost of a message.
#[derive(Clone, Debug, Default)]
pub struct Receipt {
    pub cost: Cost,
    pub readings: Readings,
}

/// How a message was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Reject {
    /// The replica's error code by name.
    pub code: String,
    pub message: String,
}

/// Why there is no measurement, though the replica goes on working.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unmeasured {
    /// The replica cannot do what the case needs.
    #[error("{0}")]
    NotApplicable(String),
    /// The call's id was there already when the call was made again.
    #[error("{method}: the work was done, but its answer was lost; --resume measures it again")]
    AnswerLost { method: String },
    /// The call has no id, so that it was not made again.
    #[error(
        "{method}: no answer came, and whether the work was done is not known; --resume begins \
         this store anew"
    )]
    Unanswered { method: String },
}

/// What a message cost the canister, outside of what the canister can see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cost {
    /// Cycles paid.
    pub cycles: u64,
    /// What only the embedded replica tells.
    pub inside: Option<Inside>,
}

/// What a message did inside of the replica.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Inside {
    /// What the instruction counter read when the message ended.
    pub instructions: u64,
    /// Instructions paid for: those, and 1 000 for each heap page changed.
    pub charge: u64,
    /// Heap pages of 4 KiB whose content changed.
    pub heap_pages_changed: u64,
    /// Stable pages of 4 KiB read or written.
    pub stable_pages_accessed: u64,
    /// Stable pages of 4 KiB written.
    pub stable_pages_written: u64,
    /// Calls that read or write stable memory; not in older results.
    pub stable_calls: Option<StableCalls>,
    /// The part of `charge` that is for pages; not in older results.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pages: Option<PageCosts>,
}

/// Instructions charged for memory pages, and the pages.
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

/// Wasm pages (64 KiB) that a message touched first, and wrote first.
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
    /// The part of `total` that is not for pages; nothing where `total` is less than they cost.
    pub fn compute(&self, total: u64) -> Option<u64> {
        total.checked_sub(self.heap)?.checked_sub(self.stable)
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

/// What a message called of stable memory, by the 32-bit and the 64-bit calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StableCalls {
    /// Calls that read.
    pub reads: u64,
    /// Bytes that they read.
    pub bytes_read: u64,
    /// Calls that write.
    pub writes: u64,
    /// Bytes that they wrote.
    pub bytes_written: u64,
}

/// Calls an update that answers `variant { Ok : T; Err }`.
pub fn update<T>(
    canister: &mut dyn Messages,
    method: &str,
    arguments: impl ArgumentEncoder,
) -> Result<(T, Cost)>
where
    T: CandidType + DeserializeOwned,
{
    let answer = canister.update(method, &arguments::encode(method, arguments)?)?;
    Ok((decode(method, answer.outcome)?, answer.cost))
}

/// Asks a query that answers `variant { Ok : T; Err }`.
pub fn query<T>(
    canister: &mut dyn Messages,
    method: &str,
    arguments: impl ArgumentEncoder,
) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    decode(method, canister.query(method, &arguments::encode(method, arguments)?)?.outcome)
}

/// Asks a query that goes through most of what the canister holds.
pub fn query_all<T>(
    canister: &mut dyn Messages,
    method: &str,
    arguments: impl ArgumentEncoder,
) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    decode(method, canister.query_all(method, &arguments::encode(method, arguments)?)?.outcome)
}

fn decode<T>(method: &str, outcome: Result<Vec<u8>, Reject>) -> Result<T>
where
    T: CandidType + DeserializeOwned,
{
    let bytes = outcome.with_context(|| method.to_owned())?;
    let answer = decoding::decode_one::<stablebench_protocol::Result<T>>(&bytes)
        .with_context(|| format!("{method} answered something else than expected"))?;
    answer.with_context(|| method.to_owned())
}
