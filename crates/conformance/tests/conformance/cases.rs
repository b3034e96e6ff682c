//! Compares the embedded replica with recordings of a PocketIC server, with and without profiles.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, thread};

use stablebench_conformance::subnet::{Expected, Outcall, SubnetCase};
use stablebench_conformance::{
    Answer, Canister, Embedded, EmbeddedSubnet, Failure, Installed, Kind, Outcome, Reject,
    RunningSubnet, Target, check_file, read, write,
};
use stablebench_replica::subnet::{Executed, Function};
use stablebench_replica::{
    self as replica, Execution, Instructions, Module, Principal, Replica, Rules, Span,
};

fn recorded_file(file: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(file)
}

/// The rules of a file's folder.
fn rules(file: &str) -> Rules {
    let (rules, _) = file.split_once('/').unwrap();
    rules.parse().unwrap()
}

/// Checks a file on the embedded replica, under the rules of its folder.
fn check(file: &str, calls: usize) {
    check_on(&mut Embedded::new(rules(file)).unwrap(), file, calls);
}

fn check_on(target: &mut dyn Target, file: &str, calls: usize) {
    let mut outcome = Outcome::default();
    check_file(target, &recorded_file(file), &mut outcome, |_, _| {}).unwrap();
    let listed: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
    assert!(listed.is_empty(), "{}", listed.join("\n"));
    assert_eq!(outcome.passed, calls, "the number of calls or steps in the file");
}

#[test]
fn modules() {
    check("2025-10/modules.json", 58);
    check("2026-08/modules.json", 57);
}

/// The call of an operator whose price on the recording server was in force for one day. Under the
/// current rules it costs 54 more, nine times.
#[test]
fn the_reverted_price() {
    let file = "2026-08-recorded/modules.json";
    check(file, 1);
    let mut outcome = Outcome::default();
    let mut today = Embedded::new(Rules::of_2026_08()).unwrap();
    check_file(&mut today, &recorded_file(file), &mut outcome, |_, _| {}).unwrap();
    let [difference] = &outcome.differences[..] else { panic!("{:?}", outcome.differences) };
    let cycles = |text: &str| -> u64 {
        let (_, cycles) = text.split_once(" for ").unwrap();
        cycles.trim_end_matches(" cycles").parse().unwrap()
    };
    assert_eq!(cycles(&difference.got) - cycles(&difference.expected), 9 * (60 - 6));
}

#[test]
fn random() {
    check("2025-10/random.json.gz", 80);
    check("2026-08/random.json.gz", 80);
}

#[test]
fn edges() {
    check("2025-10/edges.json.gz", 81);
    check("2026-08/edges.json.gz", 81);
}

#[test]
fn pages() {
    check("2026-08/pages.json.gz", 243);
}

#[test]
fn calls() {
    check("2025-10/calls.json.gz", 88);
}

#[test]
fn limits() {
    check("2025-10/limits.json.gz", 90);
}

#[test]
fn generated_modules() {
    check("2025-10/generated-modules.json.gz", 521);
}

#[test]
fn generated_random() {
    check("2025-10/generated-random.json.gz", 300);
}

#[test]
fn users() {
    check("2025-10/users.json", 138);
    check("2026-08/users.json", 138);
}

/// Cases of several canisters.
mod subnets {
    use super::check;

    #[test]
    fn calls_between_canisters() {
        check("2025-10/subnet.json.gz", 253);
        check("2026-08/subnet.json.gz", 253);
        check("2026-10/subnet.json.gz", 253);
    }

    #[test]
    fn edges() {
        check("2025-10/subnet-edges.json.gz", 121);
    }

    #[test]
    fn the_management_canister() {
        check("2025-10/management.json.gz", 266);
    }

    #[test]
    fn settings() {
        check("2025-10/settings.json.gz", 319);
    }

    #[test]
    fn services() {
        check("2025-10/services.json.gz", 125);
    }

    #[test]
    fn snapshots() {
        check("2025-10/snapshots.json.gz", 295);
    }

    #[test]
    fn motoko() {
        check("2025-10/motoko.json.gz", 186);
    }

    #[test]
    fn generated() {
        check("2025-10/generated-subnet.json.gz", 1_204);
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
        "2025-10/random.json.gz",
        "2025-10/edges.json.gz",
        "2025-10/generated-modules.json.gz",
        "2025-10/generated-random.json.gz",
        "2025-10/users.json",
    ] {
        let cases = read(&recorded_file(name)).unwrap();
        let copy = folder.path().join(name.trim_start_matches("2025-10/"));
        write(&copy, &cases).unwrap();
        assert!(text(&recorded_file(name)) == text(&copy), "{name} has changed");
        assert_eq!(read(&copy).unwrap(), cases);
    }
    assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 6, "no temporary file is left");
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
    check_on(&mut replica, "2025-10/random.json.gz", 80);
    check_on(&mut replica, "2025-10/calls.json.gz", 88);
    let mut replica = Profiled::new(Rules::of_2026_08());
    check_on(&mut replica, "2026-08/random.json.gz", 80);
    check_on(&mut replica, "2026-08/pages.json.gz", 243);
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
    fn call(&mut self, kind: Kind, method: &str, arg: &[u8]) -> Result<Answer, Failure> {
        let Self { canister, module } = self;
        let (normal, (execution, profile)) = match kind {
            Kind::Update => (
                canister.fork().update(CALLER, method, arg)?,
                canister.profile_update(CALLER, method, arg, Span::Message)?,
            ),
            Kind::Query => (
                canister.query(CALLER, method, arg)?,
                canister.profile_query(CALLER, method, arg, Span::Message)?,
            ),
            Kind::Upgrade => return Ok(answer(canister.upgrade(module, CALLER, arg)?)),
            Kind::Reinstall => return Ok(answer(canister.install(module, CALLER, arg)?)),
            Kind::Management => return Err("a case of several canisters".into()),
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
    for (file, steps) in [("2026-08/subnet.json.gz", 253), ("2025-10/subnet-edges.json.gz", 121)] {
        let cache = tempfile::tempdir().unwrap();
        let replica = Replica::new(rules(file), Some(cache.path().to_owned())).unwrap();
        check_on(&mut ProfiledSubnets(replica), file, steps);
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
        kind: Kind,
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
