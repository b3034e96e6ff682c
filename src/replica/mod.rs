//! Replicas, which run canisters. A suite does not know which replica it runs on.
//!
//! ```text
//!   Replica ── install ──→ Canister ── fork ──→ Messages
//! ```

pub mod address;
pub mod ceiling;
pub mod codes;
mod copied;
pub mod embedded;
pub mod executed;
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

use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context, Result};
use candid::utils::ArgumentEncoder;
use candid::{CandidType, Principal, encode_args};
pub use copied::{Copied, Differing};
use serde::de::DeserializeOwned;
pub use stablebench_replica::decoding;
use stablebench_replica::subnet::Halt;
pub use stablebench_replica::{Difference, SubnetKind};
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
