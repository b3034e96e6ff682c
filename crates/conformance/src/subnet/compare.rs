//! Runs these cases on a target, and compares the answers.

use std::fmt;
use std::path::Path;

use stablebench_replica::{Principal, files};

use super::case::{Expected, Part, RunningSubnet, Step, SubnetCase, amount, read};
use crate::case::{self, Kind, MAX_FILE};
use crate::compare::{Difference, Outcome, agree};
use crate::error::{Error, Failure};
use crate::hex;
use crate::target::Target;

/// Runs the cases of a file and adds the results to `outcome`. `begin` is called before each case.
///
/// # Errors
///
/// If the file cannot be used, or the target failed. `outcome` has the results of earlier cases.
pub fn check_file(
    target: &mut dyn Target,
    path: &Path,
    outcome: &mut Outcome,
    mut begin: impl FnMut(&SubnetCase),
) -> Result<(), Error> {
    for case in read(path)? {
        begin(&case);
        let got = answered(target, &case, case::directory(path))?;
        compare(outcome, &case, &got);
    }
    Ok(())
}

/// Runs a case and returns it with the answers of the target. Paths in it begin at `folder`.
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

/// Compares a recorded case with the same case on another target.
pub fn compare(outcome: &mut Outcome, recorded: &SubnetCase, got: &SubnetCase) {
    for (number, (recorded_step, got_step)) in recorded.steps.iter().zip(&got.steps).enumerate() {
        let balances = !recorded.balances.is_empty();
        let (wanted, had) = (Compared(recorded_step, balances), Compared(got_step, balances));
        let name = match recorded_step {
            Step::Call(call) => format!("{number} {} of {}", call.method, call.to),
            Step::Tick(_) => format!("{number} tick"),
        };
        if wanted.agrees_with(&had) {
            outcome.passed += 1;
            continue;
        }
        let (expected, got) = (wanted.to_string(), had.to_string());
        let case = recorded.name.clone();
        outcome.differences.push(Difference { case, call: name, expected, got });
    }
}

/// The compared parts of a step.
struct Compared<'a>(&'a Step, bool);

impl Compared<'_> {
    /// Returns true if a recorded step agrees with the actual one.
    fn agrees_with(&self, had: &Self) -> bool {
        let answers = match (self.answer(), had.answer()) {
            (
                Some(Expected::Reject { code, message: recorded }),
                Some(Expected::Reject { code: other, message }),
            ) => code == other && agree(recorded, message),
            (recorded, answer) => recorded == answer,
        };
        answers && self.balances() == had.balances()
    }

    fn answer(&self) -> Option<&Expected> {
        match self.0 {
            Step::Call(call) => call.expect.as_ref(),
            Step::Tick(_) => None,
        }
    }

    /// The decrease of the balances, if it is compared.
    fn balances(&self) -> Option<&[i128]> {
        // These also pay for compiling.
        let compiles = ["install_code", "load_canister_snapshot"];
        match self.0 {
            Step::Call(call)
                if call.kind == Kind::Management && compiles.contains(&call.method.as_str()) =>
            {
                None
            }
            Step::Call(call) => Some(&call.balances_fell),
            Step::Tick(ticks) => self.1.then_some(&ticks.balances_fell[..]),
        }
    }
}

impl fmt::Display for Compared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.answer() {
            Some(Expected::Reply(reply)) => write!(f, "reply {}", hex::encode(reply))?,
            Some(Expected::Reject { code, message }) => write!(f, "{code}: {message}")?,
            None => f.write_str("nothing")?,
        }
        match self.balances() {
            Some(fell) => write!(f, ", balances fell by {fell:?}"),
            None => Ok(()),
        }
    }
}
