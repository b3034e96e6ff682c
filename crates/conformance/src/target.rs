//! What cases run on, and the one function that runs them.
//!
//! ```text
//!   Target      a replica
//!    └ Canister   one with the case's module; its messages in order
//! ```
//!
//! Everything that is compared, recorded or verified comes from [`run`].

use std::error;

use crate::{Case, Kind};

/// What a target fails with: not a reject, but the end of the run.
pub type Failure = Box<dyn error::Error + Send + Sync>;

/// A replica that gives each case a canister of its own. The caller of everything, and
/// the only controller, is the anonymous principal.
pub trait Target {
    /// A fresh canister with the module, or the reject.
    ///
    /// # Errors
    ///
    /// If the replica itself failed.
    fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure>;
}

/// What became of installing.
pub enum Installed {
    /// The canister takes messages.
    Canister(Box<dyn Canister>),
    /// The module was refused.
    Refused(Answer),
}

/// A canister with a module.
pub trait Canister {
    /// Sends one message and waits for its answer.
    ///
    /// # Errors
    ///
    /// If the replica itself failed.
    fn call(&mut self, kind: Kind, method: &str, arg: &[u8]) -> Result<Answer, Failure>;
}

/// What a message was answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The reply, or the reject.
    pub outcome: Result<Vec<u8>, Reject>,
    /// What the canister's balance fell by, where that is known.
    pub cycles: Option<u128>,
}

/// A refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The replica's error code by name.
    pub code: String,
    /// The message.
    pub message: String,
}

/// What a case's module and calls were answered with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The module was refused.
    Refused(Answer),
    /// The answers to the calls, in order.
    Calls(Vec<Answer>),
}

/// Runs a case whose module is `wasm`.
///
/// # Errors
///
/// If the target failed. What the case does wrong is in the answers.
pub fn run(target: &mut dyn Target, case: &Case, wasm: &[u8]) -> Result<Answers, Failure> {
    let mut canister = match target.install(wasm)? {
        Installed::Canister(canister) => canister,
        Installed::Refused(answer) => return Ok(Answers::Refused(answer)),
    };
    case.calls
        .iter()
        .map(|call| canister.call(call.kind, &call.method, &call.arg))
        .collect::<Result<_, _>>()
        .map(Answers::Calls)
}
