//! Compares recorded cases with the answers of a target.
//!
//! * Replies must be equal, and reject codes by name.
//! * Messages of rejects must be equal, without the canister's id at the start and full stops at the
//!   end. The suggestion in the last line may be missing, because a canister by itself gives none.
//!   Of a message that was recorded as one line, the first line is compared.
//! * `cycles_charged` of updates must be equal, except for a stack overflow, whose depth depends on
//!   the compiler. Installs, upgrades and reinstalls also pay for compiling; queries are free.
//!
//! Each call with an `expect` counts as one, and so does a refused install. If an install is refused
//! that should succeed, or the other way round, each call of the case fails.

use std::collections::BTreeSet;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use stablebench_replica::text::safe;

use crate::case::{Call, Case, Error, Expect, Failure, MessageKind, directory, hex, read};
use crate::subnet::{self, Expected, SubnetCase, SubnetStep};
use crate::target::{Answer, Answers, Target, answered, answers};

/// Number of bytes of a reply that a difference shows.
const SHOWN: usize = 64;

/// A call whose answer differs from the recorded one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The case's name.
    pub case: String,
    /// The call's number and method.
    pub call: String,
    /// The recorded answer.
    pub expected: String,
    /// The actual answer.
    pub got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, call, expected, got } = self;
        write!(f, "{case} / {call}\n  expected {expected}\n  got      {got}")
    }
}

/// The number of calls answered as recorded, and the differences.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outcome {
    /// Calls answered as recorded.
    pub passed: usize,
    /// The other calls.
    pub differences: Vec<Difference>,
}

impl Outcome {
    /// Compares the answers to a case.
    pub fn compare(&mut self, case: &Case, answers: &Answers) {
        match (answers, &case.install) {
            (Answers::Refused(answer), Some(expected)) => {
                self.check(&case.name, "install".to_owned(), expected, answer, false);
            }
            (Answers::Refused(answer), None) => {
                self.fail_all(
                    case,
                    INSTALLED.to_owned(),
                    Compared::answered(answer, false).to_string(),
                );
            }
            (Answers::Calls(_), Some(expected)) => {
                self.fail_all(
                    case,
                    Compared::expected(expected, false).to_string(),
                    INSTALLED.to_owned(),
                );
            }
            (Answers::Calls(answers), None) => {
                for (number, (call, answer)) in case.calls.iter().zip(answers).enumerate() {
                    if let Some(expected) = &call.expect {
                        let name = format!("{number} {}", named(call));
                        let cycles = call.kind == MessageKind::Update && !overflows(expected);
                        self.check(&case.name, name, expected, answer, cycles);
                    }
                }
            }
        }
    }

    /// Compares the steps of a case of several canisters with those on another target.
    fn compare_steps(&mut self, recorded: &SubnetCase, got: &SubnetCase) {
        for (number, (wanted, had)) in recorded.steps.iter().zip(&got.steps).enumerate() {
            let balances = !recorded.balances.is_empty();
            let name = match wanted {
                SubnetStep::Call(call) => format!("{number} {} of {}", call.method, call.to),
                SubnetStep::Tick(_) => format!("{number} tick"),
            };
            let (wanted, had) = (ComparedStep(wanted, balances), ComparedStep(had, balances));
            if wanted.agrees_with(&had) {
                self.passed += 1;
                continue;
            }
            self.differences.push(Difference {
                case: recorded.name.clone(),
                call: name,
                expected: wanted.to_string(),
                got: had.to_string(),
            });
        }
    }

    fn check(
        &mut self,
        case: &str,
        call: String,
        expected: &Expect,
        answer: &Answer,
        cycles: bool,
    ) {
        let wanted = Compared::expected(expected, cycles);
        let had = Compared::answered(answer, cycles && answer.cycles.is_some());
        if wanted.agrees_with(&had) {
            self.passed += 1;
            return;
        }
        let from = first_difference(&wanted, &had);
        self.differences.push(Difference {
            case: case.to_owned(),
            call,
            expected: wanted.shown(from),
            got: had.shown(from),
        });
    }

    /// Without its canister, every call of the case fails.
    fn fail_all(&mut self, case: &Case, expected: String, got: String) {
        let mut calls: Vec<String> =
            case.calls.iter().map(|call| format!("install (for {})", named(call))).collect();
        if calls.is_empty() {
            calls.push("install".to_owned());
        }
        self.differences.extend(calls.into_iter().map(|call| Difference {
            case: case.name.clone(),
            call,
            expected: expected.clone(),
            got: got.clone(),
        }));
    }
}

const INSTALLED: &str = "an installed canister";

fn named(call: &Call) -> &str {
    if call.method.is_empty() { call.kind.name() } else { &call.method }
}

fn overflows(expected: &Expect) -> bool {
    matches!(expected, Expect::Reject { message, .. } if message.contains("stack overflow"))
}

/// The compared parts of an answer.
struct Compared<'a> {
    result: Result<&'a [u8], (&'a str, &'a str)>,
    cycles: Option<u128>,
}

impl<'a> Compared<'a> {
    fn expected(expected: &'a Expect, cycles: bool) -> Self {
        let (result, charged) = match expected {
            Expect::Reply { hex, cycles_charged, .. } => (Ok(hex.as_slice()), *cycles_charged),
            Expect::Reject { code, message, cycles_charged } => {
                (Err((code.as_str(), without_id(message))), *cycles_charged)
            }
        };
        Self { result, cycles: cycles.then_some(charged) }
    }

    fn answered(answer: &'a Answer, cycles: bool) -> Self {
        let result = match &answer.outcome {
            Ok(reply) => Ok(reply.as_slice()),
            Err(reject) => Err((reject.code.as_str(), without_id(&reject.message))),
        };
        Self { result, cycles: answer.cycles.filter(|_| cycles) }
    }

    /// Returns true if a recorded answer agrees with the actual one.
    fn agrees_with(&self, had: &Self) -> bool {
        let results = match (self.result, had.result) {
            (Ok(wanted), Ok(had)) => wanted == had,
            (Err((wanted, recorded)), Err((had, message))) => {
                wanted == had && agree(recorded, message)
            }
            _ => false,
        };
        results && self.cycles == had.cycles
    }

    /// The text of a difference, for long replies starting at the byte `from`.
    fn shown(&self, from: usize) -> String {
        let mut text = match self.result {
            Ok(reply) if reply.len() <= SHOWN => format!("reply {}", hex::encode(reply)),
            Ok(reply) => {
                let from = from.min(reply.len());
                let to = reply.len().min(from + SHOWN);
                let bytes = hex::encode(&reply[from..to]);
                format!("reply of {} bytes, at {from} {bytes}", reply.len())
            }
            Err((code, message)) => format!("{code}: {message}"),
        };
        if let Some(cycles) = self.cycles {
            text.push_str(&format!(" for {cycles} cycles"));
        }
        text
    }
}

impl fmt::Display for Compared<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.shown(0))
    }
}

/// The position of the first difference between two replies, at the start of a number.
fn first_difference(wanted: &Compared<'_>, had: &Compared<'_>) -> usize {
    match (wanted.result, had.result) {
        (Ok(wanted), Ok(had)) => {
            let same = wanted.iter().zip(had).take_while(|(one, other)| one == other).count();
            same / 8 * 8
        }
        _ => 0,
    }
}

/// A message without the id of the canister at its start.
fn without_id(message: &str) -> &str {
    message
        .strip_prefix("Error from Canister ")
        .and_then(|rest| rest.split_once(": "))
        .map_or(message, |(_, rest)| rest)
}

/// Returns true if a recorded message agrees with the actual one.
fn agree(recorded: &str, message: &str) -> bool {
    let [recorded, message] = [recorded, message].map(without_id);
    let first_line =
        |text: &str| text.lines().next().unwrap_or_default().trim_end_matches('.').to_owned();
    if !recorded.contains('\n') {
        return first_line(recorded) == first_line(message);
    }
    let Some(rest) = recorded.strip_prefix(message.trim_end_matches('.')) else { return false };
    let (end, rest) = (rest, rest.trim_start_matches('.'));
    let suggestion = rest.strip_prefix('\n').filter(|_| end.len() > rest.len());
    rest.is_empty() || suggestion.is_some_and(|line| !line.contains('\n'))
}

/// The compared parts of a step.
struct ComparedStep<'a>(&'a SubnetStep, bool);

impl ComparedStep<'_> {
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
            SubnetStep::Call(call) => call.expect.as_ref(),
            SubnetStep::Tick(_) => None,
        }
    }

    /// The decrease of the balances, if it is compared.
    fn balances(&self) -> Option<&[i128]> {
        // These also pay for compiling.
        let compiles = ["install_code", "load_canister_snapshot"];
        match self.0 {
            SubnetStep::Call(call)
                if call.kind == MessageKind::Management
                    && compiles.contains(&call.method.as_str()) =>
            {
                None
            }
            SubnetStep::Call(call) => Some(&call.balances_fell),
            SubnetStep::Tick(ticks) => self.1.then_some(&ticks.balances_fell[..]),
        }
    }
}

impl fmt::Display for ComparedStep<'_> {
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

/// A file of cases, or some groups of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SelectedFile {
    /// The file.
    pub path: PathBuf,
    /// The groups; all if empty.
    pub groups: Vec<String>,
}

impl SelectedFile {
    /// These groups of each file.
    pub fn of(files: &[PathBuf], groups: &[String]) -> Vec<Self> {
        files.iter().map(|path| Self { path: path.clone(), groups: groups.to_vec() }).collect()
    }
}

/// Returns true if a group is one of `groups`, or if they are empty, which means all.
pub fn is_selected(groups: &[String], group: &str) -> bool {
    groups.is_empty() || groups.iter().any(|one| one == group)
}

/// Returns the groups of a file's cases.
///
/// # Errors
///
/// If the file cannot be used.
pub fn groups_of(path: &Path) -> Result<BTreeSet<String>, Error> {
    Ok(match subnet::is_file_of_subnets(path)? {
        true => subnet::read(path)?.into_iter().map(|case| case.group).collect(),
        false => read(path)?.into_iter().map(|case| case.group).collect(),
    })
}

/// Checks that each selected group has cases.
///
/// # Errors
///
/// The groups that have none.
pub fn require_groups<'g>(
    selected: &[String],
    existing: impl IntoIterator<Item = &'g String>,
) -> Result<(), Failure> {
    let existing: BTreeSet<&String> = existing.into_iter().collect();
    let missing: Vec<&str> =
        selected.iter().filter(|group| !existing.contains(group)).map(String::as_str).collect();
    match missing[..] {
        [] => Ok(()),
        _ => Err(format!("no case is in the group {}", missing.join(" or ")).into()),
    }
}

/// Runs cases of a file and adds the results to `outcome`. `begin` is called with the name of each
/// case and the number of its calls or steps, before the case.
///
/// # Errors
///
/// If the file cannot be used, or the target failed. `outcome` has the results of earlier cases.
pub fn check_file(
    target: &mut dyn Target,
    selection: &SelectedFile,
    outcome: &mut Outcome,
    mut begin: impl FnMut(&str, usize),
) -> Result<(), Error> {
    let SelectedFile { path, groups } = selection;
    if subnet::is_file_of_subnets(path)? {
        for case in subnet::read(path)?.into_iter().filter(|case| is_selected(groups, &case.group))
        {
            begin(&case.name, case.steps.len());
            outcome.compare_steps(&case, &answered(target, &case, directory(path))?);
        }
        return Ok(());
    }
    for case in read(path)?.into_iter().filter(|case| is_selected(groups, &case.group)) {
        begin(&case.name, case.calls.len());
        outcome.compare(&case, &answers(target, &case, directory(path))?);
    }
    Ok(())
}

/// Number of calls of users in a file of recorded cases, and of installs that were refused.
///
/// # Errors
///
/// If the file cannot be used.
pub fn recorded_calls(path: &Path) -> Result<u64, Error> {
    if subnet::is_file_of_subnets(path)? {
        let cases = subnet::read(path)?;
        let steps = cases.iter().flat_map(|case| &case.steps);
        return Ok(steps.filter(|step| matches!(step, SubnetStep::Call(_))).count() as u64);
    }
    let counted = |case: &Case| case.calls.len() as u64 + u64::from(case.install.is_some());
    Ok(read(path)?.iter().map(counted).sum())
}

/// Runs files of cases on a target and prints the differences. Returns true if there are none. If the
/// target fails, the differences found so far are printed.
///
/// # Errors
///
/// If a file cannot be used, a selected group is in no file, the target failed, or stdout cannot be
/// written.
pub fn compared(
    target: &mut dyn Target,
    files: &[SelectedFile],
    mut begin: impl FnMut(&str, usize),
) -> Result<bool, Failure> {
    // Before anything runs, which can take an hour.
    let mut existing = BTreeSet::new();
    for file in files.iter().filter(|file| !file.groups.is_empty()) {
        existing.append(&mut groups_of(&file.path)?);
    }
    for file in files {
        require_groups(&file.groups, &existing)?;
    }
    let mut outcome = Outcome::default();
    let checked =
        files.iter().try_for_each(|file| check_file(target, file, &mut outcome, &mut begin));
    let mut text = String::new();
    for difference in &outcome.differences {
        text += &format!("{}\n", safe(&difference.to_string()));
    }
    if checked.is_ok() {
        text += &format!("{} passed, {} failed\n", outcome.passed, outcome.differences.len());
    }
    match io::stdout().write_all(text.as_bytes()) {
        // A closed pipe is not an error.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => {}
        written => written?,
    }
    checked?;
    Ok(outcome.differences.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Source;
    use crate::target::Reject;

    fn reply(bytes: &[u8], cycles: u128) -> Answer {
        Answer { outcome: Ok(bytes.to_vec()), cycles: Some(cycles) }
    }

    fn reject(message: &str) -> Answer {
        let reject = Reject { code: "CanisterTrapped".to_owned(), message: message.to_owned() };
        Answer { outcome: Err(reject), cycles: Some(7) }
    }

    fn recorded(answer: &Answer) -> Option<Expect> {
        let cycles_charged = answer.cycles.unwrap_or_default();
        Some(match answer.outcome.clone() {
            Ok(hex) => Expect::Reply { hex, counts: None, cycles_charged },
            Err(Reject { code, message }) => Expect::Reject { code, message, cycles_charged },
        })
    }

    /// The outcome of a case with one call.
    fn compared(kind: MessageKind, before: &Answer, now: Answer) -> Outcome {
        let call = Call { expect: recorded(before), ..Call::new(kind, "go", []) };
        let case = Case {
            name: "one".to_owned(),
            group: "tests".to_owned(),
            module: Source::Wat("(module)".to_owned()),
            install: None,
            calls: vec![call],
        };
        let mut outcome = Outcome::default();
        outcome.compare(&case, &Answers::Calls(vec![now]));
        outcome
    }

    #[test]
    fn cycles_are_only_compared_for_updates() {
        for (kind, passed) in [
            (MessageKind::Update, 0),
            (MessageKind::Query, 1),
            (MessageKind::Upgrade, 1),
            (MessageKind::Reinstall, 1),
        ] {
            assert_eq!(compared(kind, &reply(b"a", 1), reply(b"a", 2)).passed, passed, "{kind}");
        }
    }

    #[test]
    fn the_cost_of_a_stack_overflow_is_not_compared() {
        let overflow = "Error from Canister aaaaa-aa: Canister trapped: stack overflow";
        let other = Answer { cycles: Some(8), ..reject(overflow) };
        assert_eq!(compared(MessageKind::Update, &reject(overflow), other).passed, 1);
    }

    #[test]
    fn canister_ids_and_full_stops_are_not_compared() {
        let before = reject("Error from Canister aaaaa-aa: Canister trapped: unreachable.");
        let now = reject("Error from Canister x: Canister trapped: unreachable\nand more");
        assert_eq!(compared(MessageKind::Update, &before, now).passed, 1);
        let now = reject("Error from Canister x: Canister trapped: heap out of bounds");
        assert_eq!(compared(MessageKind::Update, &before, now).differences.len(), 1);
    }

    #[test]
    fn of_messages_only_the_suggestion_may_be_missing() {
        let trap = "Error from Canister x: Canister trapped: unreachable";
        let (run, other) = ("\nCanister Backtrace:\nrun\n", "\nCanister Backtrace:\nran\n");
        let recorded = reject(&format!("{trap}{run}.\nConsider it."));
        for (message, passed) in [
            (format!("{trap}{run}.\nConsider it."), 1),
            (format!("{trap}{run}"), 1),
            (trap.to_owned(), 0),
            (format!("{trap}{other}"), 0),
            (format!("{trap}{run}.\nConsider that."), 0),
            (format!("{trap}{run}more\n"), 0),
        ] {
            assert_eq!(
                compared(MessageKind::Update, &recorded, reject(&message)).passed,
                passed,
                "{message}"
            );
        }
    }

    #[test]
    fn a_long_reply_is_shown_from_the_first_difference() {
        let (before, mut after) = (vec![0; 200], vec![0; 200]);
        after[99] = 1;
        let outcome = compared(MessageKind::Query, &reply(&before, 0), reply(&after, 0));
        let got = &outcome.differences[0].got;
        assert!(got.starts_with("reply of 200 bytes, at 96 00000001"), "{got}");
    }

    #[test]
    fn a_different_install_fails_even_without_calls() {
        let mut case = Case {
            name: "none".to_owned(),
            group: "tests".to_owned(),
            module: Source::Wat("(module)".to_owned()),
            install: None,
            calls: Vec::new(),
        };
        let mut outcome = Outcome::default();
        outcome.compare(&case, &Answers::Refused(reject("no")));
        case.install = recorded(&reject("no"));
        outcome.compare(&case, &Answers::Calls(Vec::new()));
        assert_eq!((outcome.passed, outcome.differences.len()), (0, 2));
        // Refused both times; cycles are not compared.
        outcome.compare(&case, &Answers::Refused(Answer { cycles: None, ..reject("no") }));
        assert_eq!((outcome.passed, outcome.differences.len()), (1, 2));
    }
}
