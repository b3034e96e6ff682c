//! Tests of the program that generates, records and verifies: its output, its exit codes, and that
//! generated cases are reproducible and have the expected properties.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use candid::types::{Type, TypeInner};
use candid_parser::utils::CandidSource;
use stablebench_conformance::{
    Answer, Answers, Case, Embedded, MessageKind, Outcome, SelectedFile, Source, check_file, run,
};
use stablebench_recorder::generate::{
    self,
    modules::{AddedWork, Measurement, NOT_CALLED, UNMEASURED, groups},
};
use stablebench_replica::Rules;
use stablebench_workload::Rng;
use tempfile::TempDir;

/// Exit code, stdout and stderr.
fn recorder(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_recorder"));
    // No test may start or download a server.
    command.env("POCKET_IC_BIN", folder.join("no-server"));
    let output = command.args(arguments).current_dir(folder).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn folder() -> TempDir {
    tempfile::tempdir().unwrap()
}

fn with(folder: &TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    fs::write(&path, text).unwrap();
    path
}

const ECHO: &str = r#"[{"name": "echo", "group": "tests",
    "wat": "(module (import \"ic0\" \"msg_reply\" (func $f)) (func (export \"canister_query go\") call $f))",
    "calls": [{"method": "go", "kind": "query", "arg": "",
    "expect": {"reply": {"hex": "HEX", "cycles_charged": 0}}}]}]"#;

#[test]
fn invalid_arguments_exit_with_code_2() {
    let folder = folder();
    for (arguments, expected) in [
        (&["check"][..], "unrecognized subcommand"),
        (&["generate", "canister", "-o", "out.json"], "--wasm"),
        (&["generate", "random", "--count", "0", "-o", "out.json"], "0"),
        (&["record", "a.wat", "--call", "update:go:0x", "-o", "out.json"], "is not a hex digit"),
        (&["record", "a.wat", "--call", "call:go:", "-o", "out.json"], "must start with"),
        (&["verify", "--subnet", "moon", "a.json"], "moon"),
    ] {
        let (code, out, err) = recorder(arguments, folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
    let arguments = ["generate", "random", "--wasm", "a.wasm", "-o", "out.json"];
    let (code, _, err) = recorder(&arguments, folder.path());
    assert_eq!(code, 2);
    assert!(err.contains("only for canister"), "{err}");
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 0, "nothing was written");
}

#[test]
fn generated_files_can_be_checked() {
    let folder = folder();
    for what in ["modules", "random"] {
        for out in ["one.json.gz", "same.json.gz"] {
            let (code, out, err) = recorder(&["generate", what, "-o", out], folder.path());
            assert_eq!((code, out.as_str()), (0, ""), "{err}");
        }
        let [one, same] =
            ["one.json.gz", "same.json.gz"].map(|name| fs::read(folder.path().join(name)).unwrap());
        assert!(one == same, "the same seed generates the same file");
        // There are no expected answers, so nothing passes or fails.
        let mut outcome = Outcome::default();
        let mut replica = Embedded::new(Rules::today()).unwrap();
        let path = folder.path().join("one.json.gz");
        let file = SelectedFile { path, groups: Vec::new() };
        check_file(&mut replica, &file, &mut outcome, |_, _| {}).unwrap();
        assert_eq!(outcome, Outcome::default());
    }
    let (code, _, err) = recorder(&["generate", "random", "-o", "no/out.json"], folder.path());
    assert_eq!(code, 2);
    assert!(err.contains("no/out.json could not be written"), "{err}");
}

#[test]
fn inputs_are_checked_before_a_server_is_started() {
    let folder = folder();
    with(&folder, "a.wat", "(module)");
    with(&folder, "no.wat", "(modul)");
    with(&folder, "same.json", &ECHO.replace("HEX", ""));
    for (arguments, expected) in [
        (&["record", "missing.json", "-o", "out.json"][..], "missing.json: No such file"),
        (&["record", "missing.wasm", "-o", "out.json"], "missing.wasm: No such file"),
        (&["record", "no.wat", "-o", "out.json"], "no.wat is not a module"),
        (&["record", "a.wat", "-o", "no/out.json"], "no/out.json cannot be written"),
        (&["record", "same.json", "--group", "no", "-o", "out.json"], "no case is in the group no"),
        (&["record", "same.json", "--call", "query:go", "-o", "out.json"], "--call is for modules"),
        (&["record", "a.wat", "-o", "out.json"], "no-server cannot be executed"),
        (&["verify", "same.json"], "no-server cannot be executed"),
    ] {
        let (code, out, err) = recorder(arguments, folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.starts_with("recorder: ") && err.contains(expected), "{arguments:?}: {err}");
    }
    assert!(!folder.path().join("out.json").exists());
}

/// The answers to a case on a new embedded replica.
fn answers(case: &Case) -> Vec<Answer> {
    let wasm = case.wasm(Path::new(".")).unwrap_or_else(|error| panic!("{error}"));
    match run(&mut Embedded::new(Rules::of_2025_10()).unwrap(), case, &wasm).unwrap() {
        Answers::Calls(answers) => answers,
        Answers::Refused(answer) => panic!("{} was refused: {:?}", case.name, answer.outcome),
    }
}

#[test]
fn the_seed_determines_the_cases() {
    type Generator = fn(u64) -> Vec<Case>;
    let generators: [Generator; 3] = [
        |seed| generate::modules::cases(seed, 1),
        |seed| generate::random::cases(seed, 5),
        |seed| generate::calls::of_bench_canister(seed, 4, Path::new("bench.wasm")).unwrap(),
    ];
    for generator in generators {
        assert!(generator(1) == generator(1));
        assert!(generator(1) != generator(2));
    }
}

#[test]
fn programs_are_deterministic() {
    let (mut replies, mut traps) = (0, 0);
    let mut sums = BTreeSet::new();
    for case in generate::random::cases(1, 60) {
        let first = answers(&case);
        assert_eq!(first, answers(&case), "{}", case.name);
        for (call, answer) in case.calls.iter().zip(&first) {
            match &answer.outcome {
                Ok(reply) if call.method.is_empty() => assert!(reply.is_empty()),
                Ok(reply) => {
                    replies += 1;
                    assert_eq!(reply.len(), 16);
                    let [counter, sum] = [&reply[..8], &reply[8..]]
                        .map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap()));
                    assert!(counter < 50_000_000, "{} runs for {counter}", case.name);
                    sums.insert(sum);
                }
                Err(reject) => {
                    traps += 1;
                    let code = reject.code.as_str();
                    assert!(
                        ["CanisterTrapped", "CanisterContractViolation"].contains(&code),
                        "{}: {reject:?}",
                        case.name
                    );
                }
            }
        }
    }
    assert!(replies > 150, "{replies} of 240 replied");
    assert!(traps > 2, "{traps} of 240 trapped");
    // A program may overwrite its argument before it reads it.
    assert!(sums.len() * 10 > replies * 9, "{} sums of {replies} replies", sums.len());
}

/// The interface of the bench canister.
fn interface() -> (candid::TypeEnv, Type) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../canisters/bench.did");
    let text = fs::read_to_string(path).unwrap();
    let (env, actor) = CandidSource::Text(&text).load().unwrap();
    (env, actor.unwrap())
}

#[test]
fn calls_follow_the_interface() {
    let (env, actor) = interface();
    let mut called = BTreeSet::new();
    for case in generate::calls::of_bench_canister(3, 40, Path::new("bench.wasm")).unwrap() {
        assert_eq!(case.module, Source::Wasm("bench.wasm".into()));
        assert!(case.calls.len() > 30);
        for call in &case.calls {
            // Invalid on purpose, or not a method call.
            if call.arg == b"DIDX" || call.method == "no_such_method" || call.method.is_empty() {
                continue;
            }
            let method = env.get_method(&actor, &call.method).unwrap();
            assert_eq!(method.is_query(), call.kind == MessageKind::Query, "{}", call.method);
            let types: Vec<Type> = method.args.clone();
            candid::IDLArgs::from_bytes_with_types(&call.arg, &env, &types)
                .unwrap_or_else(|error| panic!("{}: {error}", call.method));
            called.insert(call.method.clone());
        }
    }
    let TypeInner::Service(methods) = actor.as_ref() else { panic!("{actor} is no service") };
    let missing: Vec<&String> =
        methods.iter().map(|(name, _)| name).filter(|name| !called.contains(*name)).collect();
    // The short forms of add_users are for other tools; SQL, jobs and staged work need the order of a
    // suite, and suites are run completely on both replicas; vacuum depends on the time.
    let left = [
        "add_users_btree",
        "add_users_sqlite",
        "configure",
        "inspect",
        "kept",
        "phases",
        "results",
        "run",
        "sql",
        "vacuum",
    ];
    assert_eq!(missing, left);
}

fn measurements() -> Vec<Measurement> {
    groups(&mut Rng::new(0)).into_iter().flat_map(|group| group.measurements).collect()
}

#[test]
fn every_priced_operator_is_measured_or_excluded() {
    let prices = Prices::documented();
    let measured: BTreeSet<String> = measurements()
        .iter()
        .flat_map(|measurement| &measurement.work.operators)
        .map(|name| Prices::spelled(name))
        .collect();
    let excluded: BTreeSet<String> =
        UNMEASURED.iter().map(|(name, _)| Prices::spelled(name)).collect();
    let priced: BTreeSet<String> = prices.operators().cloned().collect();
    assert!(priced.len() > 400, "the table was read");
    let both: BTreeSet<String> = measured.union(&excluded).cloned().collect();
    assert_eq!(both, priced);
    assert!(measured.is_disjoint(&excluded));
}

#[test]
fn every_system_call_is_measured_or_excluded() {
    let prices = Prices::documented();
    let measured: BTreeSet<&str> = measurements()
        .iter()
        .flat_map(|measurement| &measurement.work.calls)
        .map(|(name, _)| *name)
        .collect();
    let excluded: BTreeSet<&str> = NOT_CALLED.iter().map(|(name, _)| *name).collect();
    let priced: BTreeSet<&str> = prices.calls().map(String::as_str).collect();
    assert_eq!(measured.union(&excluded).copied().collect::<BTreeSet<_>>(), priced);
    assert!(measured.is_disjoint(&excluded));
}

#[test]
fn everything_costs_what_is_documented() {
    let prices = Prices::documented();
    let mut wrong = Vec::new();
    for seed in 0..3 {
        let groups = groups(&mut Rng::new(seed));
        for (case, group) in generate::modules::cases(seed, 1).iter().zip(&groups) {
            let answers = answers(case);
            for (measurement, answer) in group.measurements.iter().zip(&answers) {
                let reply = match &answer.outcome {
                    Ok(reply) => reply,
                    Err(reject) => panic!("{} {}: {reject:?}", case.name, measurement.name),
                };
                // The bytes before the counts were appended by the measured call.
                let counts = reply[reply.len() - 16..].as_chunks::<8>().0;
                let (with, without) =
                    (u64::from_le_bytes(counts[0]), u64::from_le_bytes(counts[1]));
                let documented = prices.of(&measurement.work, measurement.times);
                if with - without != documented {
                    let name = &measurement.name;
                    wrong.push(format!("{name}: {} for {documented}", with - without));
                }
            }
            let last = answers.last().unwrap();
            assert_eq!(last.outcome.as_ref().unwrap_err().code, "CanisterTrapped");
            // The base, the method's name and argument, the function and `unreachable`.
            let bytes = 121 + "unreachable".len() + group.argument.len();
            let header = u128::from(group.argument.len() > 23);
            let cycles = 6_200_000 + 2_000 * (bytes as u128 + header) + 2;
            assert_eq!(last.cycles, Some(cycles), "{}", case.name);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Prices by name. `docs/metering.md` describes how they add up.
struct Prices {
    operators: BTreeMap<String, u64>,
    /// A fixed price, a price per byte, and the arguments that are numbers of bytes.
    calls: BTreeMap<String, (u64, u64, Vec<usize>)>,
}

fn snapshot(path: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/replica/src").join(path);
    let text = fs::read_to_string(path).unwrap();
    let (_, table) = text.trim_start_matches("---").split_once("---").unwrap();
    table.lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

/// A common spelling for names of operators in text and in Rust.
fn plain(name: &str) -> String {
    name.replace(['.', '_'], "").to_lowercase()
}

impl Prices {
    fn documented() -> Self {
        let operators = snapshot(
            "instrument/snapshots/stablebench_replica__instrument__charges__tests__\
             price_of_every_operator.snap",
        );
        let operators = operators.iter().filter_map(|line| {
            let mut words = line.split(' ');
            let (name, price) = (words.next().unwrap(), words.next().unwrap());
            Some((plain(name), price.parse().ok()?))
        });
        let calls = snapshot(
            "system_api/snapshots/stablebench_replica__system_api__functions__tests__\
             price_of_every_call.snap",
        );
        let calls = calls.iter().map(|line| {
            let (name, price) = line.split_once(' ').unwrap();
            let (fixed, bytes) = price.split_once(" + ").unwrap_or((price, "0 a byte of []"));
            let (each, params) = bytes.split_once(" a byte of ").unwrap();
            let params = params.trim_matches(['[', ']']).split(", ");
            let params = params.filter(|param| !param.is_empty());
            let params = params.map(|param| param.parse().unwrap()).collect();
            (name.to_owned(), (fixed.parse().unwrap(), each.parse().unwrap(), params))
        });
        Self { operators: operators.collect(), calls: calls.collect() }
    }

    /// Names of priced operators, in the common spelling.
    fn operators(&self) -> impl Iterator<Item = &String> {
        self.operators.keys()
    }

    /// Names of System API calls.
    fn calls(&self) -> impl Iterator<Item = &String> {
        self.calls.keys()
    }

    fn spelled(name: &str) -> String {
        plain(name)
    }

    /// The cost of a measurement in one message.
    fn of(&self, work: &AddedWork, times: u64) -> u64 {
        let each = |names: &[String]| -> u64 {
            names.iter().map(|name| self.operators[&plain(name)]).sum()
        };
        let round = each(&work.operators) + work.functions + work.bytes - each(&work.less);
        let mut written = Vec::new();
        let calls: u64 = (0..times)
            .flat_map(|_| &work.calls)
            .map(|(name, args)| self.call(name, args, &mut written))
            .sum();
        round * times + calls
    }

    /// The cost of a call; `written` are the stable pages that the message has written so far.
    fn call(&self, name: &str, args: &[u64], written: &mut Vec<u64>) -> u64 {
        let (fixed, each, params) = &self.calls[name];
        let price = fixed + params.iter().map(|param| args[*param] * each).sum::<u64>();
        price
            + match name {
                "stable_grow" | "stable64_grow" => 100,
                "stable_read" | "stable64_read" => 20 + args[2],
                "stable_write" | "stable64_write" if args[2] == 0 => 20,
                "stable_write" | "stable64_write" => {
                    let pages = args[0] / 4_096..=(args[0] + args[2] - 1) / 4_096;
                    let new: Vec<u64> = pages.filter(|page| !written.contains(page)).collect();
                    written.extend(&new);
                    20 + args[2] + 1_000 * new.len() as u64
                }
                // The log has space for the whole text.
                "debug_print" => (2 + 50) * args[1],
                _ => 0,
            }
    }
}
