//! The recorded cases: the embedded replica answers like the PocketIC server that they were recorded
//! on, with and without profiles, the program `conformance` says where not, and those that
//! `docs/metering.md` names for each rule exist.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

use std::collections::BTreeSet;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use std::{fs, thread};

use stablebench_conformance::subnet::{self, Expected, Outcall, SubnetCase};
use stablebench_conformance::{
    Answer, Canister, Embedded, EmbeddedSubnet, Failure, Installed, MessageKind, Outcome, Reject,
    RunningSubnet, SelectedFile, Target, check_file, groups_of, read, write,
};
use stablebench_replica::subnet::{Executed, Function};
use stablebench_replica::{
    self as replica, Execution, Instructions, Module, Principal, Replica, Rules, Span,
};
use tempfile::TempDir;

fn recorded_file(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(file)
}

/// The rules of a file's folder.
fn rules(file: &str) -> Rules {
    let (rules, _) = file.split_once('/').unwrap();
    rules.parse().unwrap()
}

/// These groups of a file, or all.
fn selected(file: &str, groups: &[&str]) -> SelectedFile {
    let groups = groups.iter().map(|&group| group.to_owned()).collect();
    SelectedFile { path: recorded_file(file), groups }
}

/// Checks groups of a file, or all, on the embedded replica, under the rules of its folder.
fn check(file: &str, groups: &[&str], calls: usize) {
    check_on(&mut Embedded::new(rules(file)).unwrap(), file, groups, calls);
}

fn check_on(target: &mut dyn Target, file: &str, groups: &[&str], calls: usize) {
    let mut outcome = Outcome::default();
    check_file(target, &selected(file, groups), &mut outcome, |_, _| {}).unwrap();
    let listed: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
    assert!(listed.is_empty(), "{}", listed.join("\n"));
    assert_eq!(outcome.passed, calls, "the number of calls or steps in the groups");
}

#[test]
fn modules() {
    check("2025-10/modules.json", &[], 58);
    check("2026-08/modules.json", &[], 57);
}

/// The call of an operator whose price on the recording server was in force for one day. Under the
/// current rules it costs 54 more, nine times.
#[test]
fn the_reverted_price() {
    let file = "2026-08-recorded/modules.json";
    check(file, &[], 1);
    let mut outcome = Outcome::default();
    let mut today = Embedded::new(Rules::of_2026_08()).unwrap();
    check_file(&mut today, &selected(file, &[]), &mut outcome, |_, _| {}).unwrap();
    let [difference] = &outcome.differences[..] else { panic!("{:?}", outcome.differences) };
    let cycles = |text: &str| -> u64 {
        let (_, cycles) = text.split_once(" for ").unwrap();
        cycles.trim_end_matches(" cycles").parse().unwrap()
    };
    assert_eq!(cycles(&difference.got) - cycles(&difference.expected), 9 * (60 - 6));
}

#[test]
fn random() {
    check("2025-10/canister.json.gz", &["random"], 80);
    check("2026-08/canister.json.gz", &["random"], 80);
}

#[test]
fn edges() {
    check("2025-10/canister.json.gz", &["edges"], 81);
    check("2026-08/canister.json.gz", &["edges"], 81);
}

#[test]
fn pages() {
    check("2026-08/canister.json.gz", &["pages"], 243);
}

#[test]
fn calls() {
    check("2025-10/canister.json.gz", &["calls"], 88);
}

#[test]
fn limits() {
    check("2025-10/canister.json.gz", &["limits"], 90);
}

#[test]
fn generated_modules() {
    check("2025-10/canister.json.gz", &["measured"], 521);
}

#[test]
fn generated_random() {
    check("2025-10/canister.json.gz", &["generated-random"], 300);
}

#[test]
fn users() {
    check("2025-10/canister.json.gz", &["users"], 138);
    check("2026-08/canister.json.gz", &["users"], 138);
}

/// Cases of several canisters.
mod subnets {
    use super::check;

    #[test]
    fn calls_between_canisters() {
        check("2025-10/subnets.json.gz", &["subnet"], 253);
        check("2026-08/subnets.json.gz", &["subnet"], 253);
        check("2026-10/subnets.json.gz", &["subnet"], 253);
    }

    #[test]
    fn edges() {
        check("2025-10/subnets.json.gz", &["subnet-edges"], 121);
    }

    #[test]
    fn the_management_canister() {
        check("2025-10/subnets.json.gz", &["management"], 266);
    }

    #[test]
    fn settings() {
        check("2025-10/subnets.json.gz", &["settings"], 319);
    }

    #[test]
    fn services() {
        check("2025-10/subnets.json.gz", &["services"], 125);
    }

    #[test]
    fn snapshots() {
        check("2025-10/subnets.json.gz", &["snapshots"], 295);
    }

    #[test]
    fn motoko() {
        check("2025-10/subnets.json.gz", &["motoko"], 186);
    }

    #[test]
    fn generated() {
        check("2025-10/subnets.json.gz", &["generated-subnet"], 1_204);
    }
}

/// Each group of the files that are checked by group has a test above.
#[test]
fn every_group_is_checked() {
    let of_canister_2025: &[&str] =
        &["calls", "edges", "generated-random", "limits", "measured", "random", "users"];
    let of_subnets_2025: &[&str] = &[
        "generated-subnet",
        "management",
        "motoko",
        "services",
        "settings",
        "snapshots",
        "subnet",
        "subnet-edges",
    ];
    for (file, checked) in [
        ("2025-10/canister.json.gz", of_canister_2025),
        ("2025-10/subnets.json.gz", of_subnets_2025),
        ("2026-08/canister.json.gz", &["edges", "pages", "random", "users"]),
        ("2026-08/subnets.json.gz", &["subnet"]),
        ("2026-10/subnets.json.gz", &["subnet"]),
    ] {
        let groups = groups_of(&recorded_file(file)).unwrap();
        assert!(groups.iter().eq(checked), "{file}: {groups:?}");
    }
}

fn text(path: &Path) -> String {
    let bytes = fs::read(path).unwrap();
    let mut text = String::new();
    match path.extension().unwrap().to_str().unwrap() {
        "gz" => flate2::read::GzDecoder::new(bytes.as_slice()).read_to_string(&mut text),
        _ => bytes.as_slice().read_to_string(&mut text),
    }
    .unwrap();
    text
}

#[test]
fn reading_and_writing_a_file_reproduces_the_text() {
    let folder = tempfile::tempdir().unwrap();
    for name in [
        "2025-10/modules.json",
        "2025-10/canister.json.gz",
        "2026-08/modules.json",
        "2026-08/canister.json.gz",
    ] {
        let cases = read(&recorded_file(name)).unwrap();
        let copy = folder.path().join(name.replace('/', "-"));
        write(&copy, &cases).unwrap();
        assert!(text(&recorded_file(name)) == text(&copy), "{name} has changed");
        assert_eq!(read(&copy).unwrap(), cases);
    }
    for name in ["2025-10/subnets.json.gz", "2026-08/subnets.json.gz", "2026-10/subnets.json.gz"] {
        let cases = subnet::read(&recorded_file(name)).unwrap();
        let copy = folder.path().join(name.replace('/', "-"));
        subnet::write(&copy, &cases).unwrap();
        assert!(text(&recorded_file(name)) == text(&copy), "{name} has changed");
        assert_eq!(subnet::read(&copy).unwrap(), cases);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 7, "no temporary file is left");
}

#[test]
fn invalid_cases_are_refused_with_the_file_name() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cases.json");
    for (text, expected) in [
        (r#"[{"name": "a", "group": "b", "calls": []}]"#, "needs either wat or wasm"),
        (r#"[{"name": "a", "group": "b", "wat": "", "extra": 1, "calls": []}]"#, "extra"),
        (
            r#"[{"name": "a", "group": "b", "wat": "",
                "calls": [{"method": "m", "kind": "update", "arg": "0x"}]}]"#,
            "is not a hex digit",
        ),
        (
            r#"[{"name": "a", "group": "b", "wat": "", "calls": [{"method": "m", "kind": "query",
                "arg": "", "expect": {"reply": {"hex": "", "cycles": 1}}}]}]"#,
            "cycles",
        ),
    ] {
        fs::write(&path, text).unwrap();
        let error = read(&path).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("cases.json"), "{error}");
    }
}

const CALLER: Principal = Principal::anonymous();

/// Profiled messages have the same answers.
#[test]
fn profiled_messages() {
    // Without `modules.json`, which is about operators and takes long.
    let mut replica = Profiled::new(Rules::of_2025_10());
    check_on(&mut replica, "2025-10/canister.json.gz", &["random"], 80);
    check_on(&mut replica, "2025-10/canister.json.gz", &["calls"], 88);
    let mut replica = Profiled::new(Rules::of_2026_08());
    check_on(&mut replica, "2026-08/canister.json.gz", &["random"], 80);
    check_on(&mut replica, "2026-08/canister.json.gz", &["pages"], 243);
}

/// The embedded replica with every message profiled and compared with the same message without a
/// profile.
struct Profiled(Replica);

impl Profiled {
    fn new(rules: Rules) -> Self {
        Self(Replica::new(rules, None).unwrap())
    }
}

impl Target for Profiled {
    fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure> {
        let refused =
            |reject| Installed::Refused(Answer { outcome: Err(rejected(reject)), cycles: None });
        let module = match self.0.compile(wasm) {
            Ok(module) => module,
            Err(reject) => return Ok(refused(reject)),
        };
        let mut canister = self.0.create_canister()?;
        Ok(match canister.install(&module, CALLER, &[])?.outcome {
            Ok(_) => Installed::Canister(Box::new(Installation { canister, module })),
            Err(reject) => refused(reject),
        })
    }
}

struct Installation {
    canister: replica::Canister,
    module: Module,
}

impl Canister for Installation {
    fn call(&mut self, kind: MessageKind, method: &str, arg: &[u8]) -> Result<Answer, Failure> {
        let Self { canister, module } = self;
        let (normal, (execution, profile)) = match kind {
            MessageKind::Update => (
                canister.fork().update(CALLER, method, arg)?,
                canister.profile_update(CALLER, method, arg, Span::Message)?,
            ),
            MessageKind::Query => (
                canister.query(CALLER, method, arg)?,
                canister.profile_query(CALLER, method, arg, Span::Message)?,
            ),
            MessageKind::Upgrade => return Ok(answer(canister.upgrade(module, CALLER, arg)?)),
            MessageKind::Reinstall => return Ok(answer(canister.install(module, CALLER, arg)?)),
            MessageKind::Management => return Err("a case of several canisters".into()),
        };
        let observed = |execution: &Execution| {
            let Execution { instructions, charge, memory, stable_calls, printed, .. } = execution;
            format!("{instructions} {charge} {memory:?} {stable_calls:?} {printed:?}")
        };
        assert_eq!(observed(&execution), observed(&normal), "{method}");
        assert_eq!(execution.outcome, normal.outcome, "{method}");
        let sum: u64 = profile.nodes.iter().map(|node| node.instructions.get()).sum();
        assert_eq!(sum, execution.instructions.get(), "{method}");
        Ok(answer(execution))
    }
}

fn answer(execution: Execution) -> Answer {
    let cycles = Some(execution.cycles.get());
    Answer { outcome: execution.outcome.map_err(rejected), cycles }
}

fn rejected(reject: replica::Reject) -> Reject {
    Reject { code: reject.code.name().to_owned(), message: reject.message }
}

/// Profiled executions have the same answers and costs, and their profiles add up.
#[test]
fn profiled_executions() {
    for (file, group, steps) in [
        ("2026-08/subnets.json.gz", "subnet", 253),
        ("2025-10/subnets.json.gz", "subnet-edges", 121),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let replica = Replica::new(rules(file), Some(cache.path().to_owned())).unwrap();
        check_on(&mut ProfiledSubnets(replica), file, &[group], steps);
    }
}

/// An embedded replica that executes everything on two subnets, of which one profiles.
struct ProfiledSubnets(Replica);

/// The two subnets.
struct Both {
    normal: EmbeddedSubnet,
    profiled: EmbeddedSubnet,
}

impl Target for ProfiledSubnets {
    fn install(&mut self, _wasm: &[u8]) -> Result<Installed, Failure> {
        Err("a case of one canister".into())
    }

    fn create(
        &mut self,
        case: &SubnetCase,
        modules: &[Vec<u8>],
    ) -> Result<Box<dyn RunningSubnet>, Failure> {
        let mut normal = EmbeddedSubnet::new(&self.0, case, modules)?;
        let mut profiled = EmbeddedSubnet::new(&self.0, case, modules)?;
        // Installing is not compared.
        normal.subnet.take_executions();
        profiled.subnet.take_executions();
        profiled.subnet.set_profiling(true);
        Ok(Box::new(Both { normal, profiled }))
    }
}

impl RunningSubnet for Both {
    fn ids(&self) -> Vec<Principal> {
        self.profiled.ids()
    }

    fn balances(&self) -> Result<Vec<u128>, Failure> {
        self.profiled.balances()
    }

    fn set_balances(&mut self, balances: &[i128]) {
        self.normal.set_balances(balances);
        self.profiled.set_balances(balances);
    }

    fn call(
        &mut self,
        to: Principal,
        kind: MessageKind,
        method: &str,
        argument: &[u8],
        outcalls: &[Outcall],
    ) -> Result<Expected, Failure> {
        let (expected, answer) = thread::scope(|scope| {
            let normal = scope.spawn(|| self.normal.call(to, kind, method, argument, outcalls));
            let answer = self.profiled.call(to, kind, method, argument, outcalls);
            (normal.join().unwrap(), answer)
        });
        let (expected, answer) = (expected?, answer?);
        assert_eq!(answer, expected, "{method}");
        self.compare();
        Ok(answer)
    }

    fn tick(&mut self, advance_ns: u64) -> Result<(), Failure> {
        self.normal.tick(advance_ns)?;
        self.profiled.tick(advance_ns)?;
        self.compare();
        Ok(())
    }
}

impl Both {
    fn compare(&self) {
        let Self { normal, profiled } = self;
        let all = |of: &EmbeddedSubnet| of.executions.iter().map(observed).collect::<Vec<_>>();
        assert_eq!(all(profiled), all(normal));
        assert_eq!(profiled.balances().unwrap(), normal.balances().unwrap());
        for executed in &profiled.executions {
            let Execution { instructions, charge, profile, .. } = &executed.execution;
            let is_management = matches!(executed.function, Function::Management(_));
            let Some(profile) = profile else {
                assert!(is_management || *charge == Instructions(0), "{executed}");
                continue;
            };
            let sum: u64 = profile.nodes.iter().map(|node| node.instructions.get()).sum();
            assert_eq!((sum, profile.instructions), (instructions.get(), *instructions));
            let capped = charge < instructions;
            assert!(capped || profile.instructions + profile.heap_pages == *charge, "{executed}");
        }
    }
}

/// Everything about an execution except its profile and its duration.
fn observed(executed: &Executed) -> String {
    let execution = executed.execution.clone();
    let execution = Execution { profile: None, wall: Duration::ZERO, ..execution };
    format!("{:?}", Executed { execution, ..executed.clone() })
}

/// Exit code, stdout and stderr.
fn conformance(arguments: &[&str], folder: &Path) -> (i32, String, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conformance"));
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
fn check_lists_differences() {
    let folder = folder();
    with(&folder, "same.json", &ECHO.replace("HEX", ""));
    with(&folder, "other.json", &ECHO.replace("HEX", "01"));
    let (code, out, err) = conformance(&["check", "same.json"], folder.path());
    assert_eq!((code, out.as_str(), err.as_str()), (0, "1 passed, 0 failed\n", ""));
    let (code, out, err) = conformance(&["check", "same.json", "other.json"], folder.path());
    let expected = "echo / 0 go\n  expected reply 01\n  got      reply \n1 passed, 1 failed\n";
    assert_eq!((code, out.as_str(), err.as_str()), (1, expected, ""));
    let of_group = ["check", "--group", "tests", "same.json"];
    let (code, out, err) = conformance(&of_group, folder.path());
    assert_eq!((code, out.as_str(), err.as_str()), (0, "1 passed, 0 failed\n", ""));
    // A group that no file has is not left out in silence.
    let misspelt = ["check", "--group", "more", "--group", "tests", "same.json"];
    let (code, out, err) = conformance(&misspelt, folder.path());
    let expected = "conformance: no case is in the group more\n";
    assert_eq!((code, out.as_str(), err.as_str()), (2, "", expected));
}

#[test]
fn files_that_cannot_be_used_are_one_message_and_code_2() {
    let folder = folder();
    with(&folder, "broken.json", "[{");
    with(&folder, "hex.json", &ECHO.replace("HEX", "0"));
    with(&folder, "wat.json", r#"[{"name": "a", "group": "b", "wat": "(modul)", "calls": []}]"#);
    with(&folder, "gone.json", r#"[{"name": "a", "group": "b", "wasm": "a.wasm", "calls": []}]"#);
    let steers = r#"[{"name": "\u001b[2J", "group": "b", "wat": "(modul)", "calls": []}]"#;
    with(&folder, "steers.json", steers);
    for (file, expected) in [
        ("/dev/zero", "it is not a regular file"),
        ("steers.json", r"case \u{1b}[2J: "),
        ("missing.json", "missing.json: No such file"),
        ("broken.json", "broken.json is not a file of cases"),
        ("hex.json", "two digits per byte"),
        ("wat.json", "case a: "),
        ("gone.json", "a.wasm: No such file"),
    ] {
        let (code, out, err) = conformance(&["check", file], folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{file}");
        assert!(err.starts_with("conformance: ") && err.contains(expected), "{err}");
    }
}

#[test]
fn invalid_arguments_exit_with_code_2() {
    let folder = folder();
    for (arguments, expected) in [
        (&["check"][..], "<FILE>"),
        (&["check", "--rules", "1999-01", "a.json"], "1999-01"),
        (&["record"], "unrecognized subcommand"),
    ] {
        let (code, out, err) = conformance(arguments, folder.path());
        assert_eq!((code, out.as_str()), (2, ""), "{arguments:?}");
        assert!(err.contains(expected), "{arguments:?}: {err}");
    }
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn document() -> String {
    fs::read_to_string(root().join("docs/metering.md")).unwrap()
}

fn sources(directory: &Path, into: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("target") {
            sources(&path, into);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            into.push(path);
        }
    }
}

/// Names of all test functions, and all files.
fn tests() -> (BTreeSet<String>, Vec<PathBuf>) {
    let mut files = Vec::new();
    for directory in [
        "crates/replica/src",
        "crates/replica/tests",
        "crates/conformance/tests",
        "verification/recorder/tests",
    ] {
        sources(&root().join(directory), &mut files);
    }
    let mut names = BTreeSet::new();
    for file in &files {
        let text = fs::read_to_string(file).unwrap();
        for after in text.split("#[test]").skip(1) {
            let name = after.split_once("fn ").and_then(|(_, name)| name.split_once('('));
            names.insert(name.expect("a test is a function").0.to_owned());
        }
    }
    (names, files)
}

/// The texts between pairs of `mark`.
fn marked(cell: &str, mark: char) -> impl Iterator<Item = &str> {
    cell.split(mark).skip(1).step_by(2)
}

/// The cells in rows and columns with the title `title`, in all tables.
fn cells<'d>(document: &'d str, title: &str) -> Vec<&'d str> {
    let mut cells = Vec::new();
    let (mut column, mut row) = (None, false);
    for line in document.lines() {
        let Some(line) = line.strip_prefix('|') else {
            (column, row) = (None, false);
            continue;
        };
        let all: Vec<&str> = line.trim_end_matches('|').split('|').map(str::trim).collect();
        let header = all.iter().position(|cell| cell.split(',').next() == Some(title));
        match header {
            Some(0) if all.len() == 2 => row = true,
            Some(at) => {
                column = Some(at);
                continue;
            }
            // A row without a title continues the row above.
            None => row &= all.first() == Some(&""),
        }
        if row {
            cells.extend(all.get(1));
        }
        cells.extend(column.and_then(|column| all.get(column)));
    }
    cells
}

#[test]
fn the_named_tests_exist() {
    let document = document();
    let (tests, files) = tests();
    let mut named: Vec<&str> =
        cells(&document, "tests").into_iter().flat_map(|cell| marked(cell, '`')).collect();
    named.extend(document.split("test `").skip(1).filter_map(|after| after.split('`').next()));
    assert!(named.len() > 60, "{named:?}");
    for name in named {
        let is_file = || files.iter().any(|file| file.to_string_lossy().contains(name));
        let exists = if name.contains(['.', '/']) { is_file() } else { tests.contains(name) };
        assert!(exists, "there is no test {name}");
    }
}

#[test]
fn the_named_cases_exist() {
    let document = document();
    let directory = root().join("crates/conformance/cases");
    let mut names = BTreeSet::new();
    let mut groups = BTreeSet::new();
    let entries = ["2025-10", "2026-08", "2026-08-recorded", "2026-10"]
        .map(|rules| fs::read_dir(directory.join(rules)).unwrap());
    for entry in entries.into_iter().flatten() {
        let path = entry.unwrap().path();
        let file = path.file_name().unwrap().to_string_lossy().into_owned();
        if file.ends_with(".json") || file.ends_with(".json.gz") {
            if subnet::is_file_of_subnets(&path).unwrap() {
                for case in subnet::read(&path).unwrap() {
                    names.insert(case.name);
                    groups.insert(case.group);
                }
            } else {
                for case in read(&path).unwrap() {
                    names.insert(case.name);
                    groups.insert(case.group);
                }
            }
            names.insert(file);
        }
    }
    let cells = cells(&document, "cases");
    for cell in &cells {
        let Some(cell) = cell.split("test `").next() else {
            continue;
        };
        for name in marked(cell, '`').filter(|name| *name != "cycles_charged") {
            let exists = match name.strip_suffix('…') {
                Some(prefix) => names.iter().any(|name| name.starts_with(prefix)),
                None => names.contains(name),
            };
            assert!(exists, "there is no case {name}");
        }
        for group in marked(cell, '*').filter(|group| *group != "not recorded") {
            assert!(groups.contains(group), "there is no group {group}");
        }
    }
    assert!(cells.len() > 20);
}
