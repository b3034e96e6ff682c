//! Targets of cases, and the functions that run cases on them.
//!
//! ```text
//!   Target        a replica
//!    ├ Canister      with the case's module; receives its messages in order
//!    └ RunningSubnet the canisters of a case of several
//! ```
//!
//! All answers that are compared or recorded come from [`run`] and [`answered`].

use std::path::Path;

use stablebench_replica::{Principal, files};

use crate::case::{Case, Error, Failure, Kind, MAX_FILE};
use crate::subnet::{Expected, Outcall, Part, Step, SubnetCase};

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

/// The canisters of a case.
pub trait RunningSubnet {
    /// Their ids.
    fn ids(&self) -> Vec<Principal>;

    /// Their balances.
    ///
    /// # Errors
    ///
    /// If the replica failed.
    fn balances(&self) -> Result<Vec<u128>, Failure>;

    /// Gives the canisters these balances, if the replica can.
    fn set_balances(&mut self, _balances: &[i128]) {}

    /// Calls a canister. HTTPS outcalls get these answers.
    ///
    /// # Errors
    ///
    /// If the replica failed.
    fn call(
        &mut self,
        to: Principal,
        kind: Kind,
        method: &str,
        argument: &[u8],
        outcalls: &[Outcall],
    ) -> Result<Expected, Failure>;

    /// Advances the time and executes a round.
    ///
    /// # Errors
    ///
    /// If the replica failed.
    fn tick(&mut self, advance_ns: u64) -> Result<(), Failure>;
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

/// Runs a case of several canisters and returns it with the answers of the target. Paths in it begin
/// at `folder`.
///
/// # Errors
///
/// If a module is not valid text, a file cannot be read, or the target failed.
pub fn answered(
    target: &mut dyn Target,
    case: &SubnetCase,
    folder: &Path,
) -> Result<SubnetCase, Error> {
    let failed = |cause| Error::Target { case: case.name.clone(), cause };
    let modules = case
        .canisters
        .iter()
        .map(wat::parse_str)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|cause| Error::Wat { case: case.name.clone(), cause })?;
    let mut subnet = target.create(case, &modules).map_err(failed)?;
    let ids = subnet.ids();
    subnet.set_balances(&case.balances);
    let balances = subnet.balances().map_err(failed)?.into_iter().map(amount).collect();
    let steps = case.steps.iter().map(|step| taken(&mut *subnet, &ids, step, folder));
    let steps = steps.collect::<Result<_, _>>().map_err(failed)?;
    Ok(SubnetCase { ids, balances, steps, ..case.clone() })
}

fn taken(
    subnet: &mut dyn RunningSubnet,
    ids: &[Principal],
    step: &Step,
    folder: &Path,
) -> Result<Step, Failure> {
    let before = subnet.balances()?;
    let mut step = step.clone();
    let missing = |number: usize| format!("there is no canister number {number}");
    if let Step::Call(call) = &mut step {
        let mut argument = Vec::new();
        for part in &call.arg {
            match part {
                Part::Bytes(bytes) => argument.extend_from_slice(bytes),
                Part::Id(number) => {
                    let id = ids.get(*number).ok_or_else(|| missing(*number))?;
                    argument.extend_from_slice(id.as_slice());
                }
                Part::File(path) => argument.extend(files::read(&folder.join(path), MAX_FILE)?),
            }
        }
        let to = *ids.get(call.to).ok_or_else(|| missing(call.to))?;
        let answer = subnet.call(to, call.kind, &call.method, &argument, &call.outcalls)?;
        call.expect = Some(answer);
    }
    if let Step::Tick(ticks) = &step {
        for _ in 0..ticks.tick {
            subnet.tick(ticks.advance_ns)?;
        }
    }
    let fell = before.iter().zip(subnet.balances()?);
    let fell = fell.map(|(before, after)| amount(*before) - amount(after)).collect();
    match &mut step {
        Step::Call(call) => call.balances_fell = fell,
        Step::Tick(ticks) => ticks.balances_fell = fell,
    }
    Ok(step)
}

/// An amount of cycles in a case.
pub(crate) fn amount(balance: u128) -> i128 {
    i128::try_from(balance).unwrap_or(i128::MAX)
}
