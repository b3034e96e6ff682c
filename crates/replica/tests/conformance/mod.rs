//! Runs recorded cases on the embedded replica and lists the differences.
//!
//! `README.md` beside this file describes the format of the case files.

use std::fmt;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use stablebench_replica::{Canister, ErrorCode, Execution, Module, Principal, Reject, Replica};

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    #[allow(dead_code, reason = "for readers of the file")]
    group: String,
    wat: Option<String>,
    wasm: Option<PathBuf>,
    install: Option<Expect>,
    calls: Vec<Call>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    method: String,
    kind: Kind,
    arg: String,
    expect: Option<Expect>,
}

#[derive(Clone, Copy, Deserialize, PartialEq)]
#[serde(rename_all = "lowercase")]
enum Kind {
    Update,
    Query,
    Upgrade,
    Reinstall,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expect {
    Reply(ExpectedReply),
    Reject(ExpectedReject),
}

#[derive(Deserialize)]
struct ExpectedReply {
    hex: String,
    cycles_charged: u128,
}

#[derive(Deserialize)]
struct ExpectedReject {
    code: String,
    message: String,
    cycles_charged: u128,
}

/// A call whose result is not the recorded one.
#[derive(Debug)]
pub struct Difference {
    case: String,
    call: String,
    expected: String,
    got: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { case, call, expected, got } = self;
        write!(f, "{case} / {call}\n  expected {expected}\n  got      {got}")
    }
}

/// How many calls were as recorded, and which were not.
#[derive(Debug, Default)]
pub struct Outcome {
    pub passed: usize,
    pub differences: Vec<Difference>,
}

impl Outcome {
    fn check(&mut self, case: &str, call: String, expected: &Expect, got: &Got, cycles: bool) {
        let (wanted, had) = (describe_expected(expected, cycles), got.describe(cycles));
        if wanted == had {
            self.passed += 1;
        } else {
            let case = case.to_owned();
            self.differences.push(Difference { case, call, expected: wanted, got: had });
        }
    }
}

struct Got {
    outcome: Result<Vec<u8>, Reject>,
    cycles: u128,
}

impl Got {
    fn of(execution: Execution) -> Self {
        Self { outcome: execution.outcome, cycles: execution.cycles.get() }
    }

    fn describe(&self, cycles: bool) -> String {
        let outcome = match &self.outcome {
            Ok(reply) => format!("reply {}", hex(reply)),
            Err(Reject { code, message }) => format!("{code}: {}", comparable(message)),
        };
        with_cycles(outcome, cycles.then_some(self.cycles))
    }
}

fn describe_expected(expected: &Expect, cycles: bool) -> String {
    let (outcome, charged) = match expected {
        Expect::Reply(reply) => (format!("reply {}", reply.hex), reply.cycles_charged),
        Expect::Reject(reject) => {
            (format!("{}: {}", reject.code, comparable(&reject.message)), reject.cycles_charged)
        }
    };
    with_cycles(outcome, cycles.then_some(charged))
}

fn with_cycles(outcome: String, cycles: Option<u128>) -> String {
    match cycles {
        Some(cycles) => format!("{outcome} for {cycles} cycles"),
        None => outcome,
    }
}

/// The part of a message that servers agree on: its first line, without the
/// canister's id in front and full stops behind.
fn comparable(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    let line = line
        .strip_prefix("Error from Canister ")
        .and_then(|rest| rest.split_once(": "))
        .map_or(line, |(_, rest)| rest);
    line.trim_end_matches('.')
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(text: &str) -> Result<Vec<u8>, String> {
    (0..text.len())
        .step_by(2)
        .map(|at| {
            text.get(at..at + 2)
                .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                .ok_or_else(|| format!("not hex at {at}"))
        })
        .collect()
}

/// Runs the cases of a file, plain or gzipped, and adds what became of them.
///
/// # Errors
///
/// If the file cannot be read or is no file of cases.
pub fn run_file(replica: &Replica, path: &Path, outcome: &mut Outcome) -> Result<(), String> {
    let at = |error: &dyn fmt::Display| format!("{}: {error}", path.display());
    let bytes = fs::read(path).map_err(|error| at(&error))?;
    let bytes = if path.extension().is_some_and(|extension| extension == "gz") {
        let mut plain = Vec::new();
        flate2::read::GzDecoder::new(bytes.as_slice())
            .read_to_end(&mut plain)
            .map_err(|error| at(&error))?;
        plain
    } else {
        bytes
    };
    let cases: Vec<Case> = serde_json::from_slice(&bytes).map_err(|error| at(&error))?;
    let directory = path.parent().unwrap_or(Path::new("."));
    for case in &cases {
        let module = match (&case.wat, &case.wasm) {
            (Some(text), None) => wat::parse_str(text).map_err(|error| at(&error))?,
            (None, Some(file)) => fs::read(directory.join(file)).map_err(|error| at(&error))?,
            _ => return Err(at(&format!("case {} needs a wat or a wasm", case.name))),
        };
        run_case(replica, case, &module, outcome).map_err(|error| at(&error))?;
    }
    Ok(())
}

fn run_case(
    replica: &Replica,
    case: &Case,
    module: &[u8],
    outcome: &mut Outcome,
) -> Result<(), String> {
    let caller = Principal::anonymous();
    let mut canister = replica.create_canister().map_err(|error| error.to_string())?;
    let installed = replica.compile(module).and_then(|module| {
        let execution = canister.install(&module, caller, &[]).map_err(|error| Reject {
            code: ErrorCode::CanisterOutOfMemory,
            message: error.to_string(),
        })?;
        execution.outcome.map(|_| module)
    });
    let module = match (installed, &case.install) {
        (Ok(module), None) => module,
        (Err(reject), Some(expected)) => {
            let got = Got { outcome: Err(reject), cycles: 0 };
            outcome.check(&case.name, "install".to_owned(), expected, &got, true);
            return Ok(());
        }
        (installed, expected) => {
            let expected = expected.as_ref().map_or_else(
                || "an installed canister".to_owned(),
                |expected| describe_expected(expected, false),
            );
            let got = match installed {
                Ok(_) => "an installed canister".to_owned(),
                Err(reject) => reject.to_string(),
            };
            // Every call of the case is lost with its canister.
            for call in &case.calls {
                let call = call.method.clone();
                outcome.differences.push(Difference {
                    case: case.name.clone(),
                    call: format!("install (for {call})"),
                    expected: expected.clone(),
                    got: got.clone(),
                });
            }
            return Ok(());
        }
    };
    for (number, call) in case.calls.iter().enumerate() {
        let Some(expected) = &call.expect else {
            continue;
        };
        let got = execute(&mut canister, &module, call)?;
        let overflow = matches!(expected, Expect::Reject(reject) if
            reject.message.contains("stack overflow"));
        let cycles = call.kind == Kind::Update && !overflow;
        outcome.check(&case.name, format!("{number} {}", call.method), expected, &got, cycles);
    }
    Ok(())
}

fn execute(canister: &mut Canister, module: &Module, call: &Call) -> Result<Got, String> {
    let caller = Principal::anonymous();
    let argument = unhex(&call.arg)?;
    let execution = match call.kind {
        Kind::Update => canister.update(caller, &call.method, &argument),
        Kind::Query => canister.query(caller, &call.method, &argument),
        Kind::Upgrade => canister.upgrade(module, caller, &argument),
        Kind::Reinstall => canister.install(module, caller, &argument),
    };
    execution.map(Got::of).map_err(|error| error.to_string())
}
