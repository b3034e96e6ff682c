//! Targets of cases, and the function that runs cases on them.
//!
//! ```text
//!   Target      a replica
//!    └ Canister   with the case's module; receives its messages in order
//! ```
//!
//! All answers that are compared or recorded come from [`run`].

use std::path::Path;

use crate::case::{Case, Kind};
use crate::error::{Error, Failure};
use crate::subnet::case::{RunningSubnet, SubnetCase};

/// A replica that creates a canister for each case. The anonymous principal is the caller of all
/// messages and the only controller.
pub trait Target {
    /// Creates a canister with the module, or returns the reject.
    ///
    /// # Errors
    ///
    /// If the replica itself failed.
    fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure>;

    /// Creates the canisters of a case on one subnet, and installs these modules.
    ///
    /// # Errors
    ///
    /// If the replica itself failed, or refused a module.
    fn create(
        &mut self,
        _case: &SubnetCase,
        _modules: &[Vec<u8>],
    ) -> Result<Box<dyn RunningSubnet>, Failure> {
        Err("this replica runs one canister for each case".into())
    }
}

/// The result of an install.
pub enum Installed {
    /// The canister accepts messages.
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

/// The answer to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The reply, or the reject.
    pub outcome: Result<Vec<u8>, Reject>,
    /// The decrease of the canister's balance, if known.
    pub cycles: Option<u128>,
}

/// A reject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Name of the replica's error code.
    pub code: String,
    /// The message.
    pub message: String,
}

/// The answers to a case.
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
/// If the target failed. Errors of the canister are in the answers.
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

/// Runs a case whose paths are relative to `directory`.
///
/// # Errors
///
/// If its module cannot be read, or the target failed.
pub fn answers(target: &mut dyn Target, case: &Case, directory: &Path) -> Result<Answers, Error> {
    let wasm = case.wasm(directory)?;
    run(target, case, &wasm).map_err(|cause| Error::Target { case: case.name.clone(), cause })
}
