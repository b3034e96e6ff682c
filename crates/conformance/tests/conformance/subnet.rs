//! Compares calls between canisters on the embedded replica with recordings of a PocketIC server,
//! with and without profiles.

use std::path::Path;
use std::thread;
use std::time::Duration;

use stablebench_conformance::subnet::{
    EmbeddedSubnet, Expected, Outcall, RunningSubnet, SubnetCase, check_file, embedded,
};
use stablebench_conformance::{Embedded, Failure, Installed, Kind, Outcome, Target};
use stablebench_replica::subnet::{Executed, Function};
use stablebench_replica::{Execution, Instructions, Principal, Replica, Rules};

fn rules(file: &str) -> Rules {
    let (rules, _) = file.split_once('/').unwrap();
    rules.parse().unwrap()
}

fn check(file: &str, steps: usize) {
    check_on(&mut Embedded::new(rules(file)).unwrap(), file, steps);
}

fn check_on(target: &mut dyn Target, file: &str, steps: usize) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("cases").join(file);
    let mut outcome = Outcome::default();
    check_file(target, &path, &mut outcome, |_| {}).unwrap();
    let listed: Vec<String> = outcome.differences.iter().map(ToString::to_string).collect();
    assert!(listed.is_empty(), "{}", listed.join("\n"));
    assert_eq!(outcome.passed, steps, "the number of steps in the file");
}

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

/// Profiled executions have the same answers and costs, and their profiles add up.
#[test]
fn profiled_executions() {
    for (file, steps) in [("2026-08/subnet.json.gz", 253), ("2025-10/subnet-edges.json.gz", 121)] {
        let cache = tempfile::tempdir().unwrap();
        let replica = Replica::new(rules(file), Some(cache.path().to_owned())).unwrap();
        check_on(&mut Profiled(replica), file, steps);
    }
}

/// An embedded replica that executes everything on two subnets, of which one profiles.
struct Profiled(Replica);

/// The two subnets.
struct Both {
    normal: EmbeddedSubnet,
    profiled: EmbeddedSubnet,
}

impl Target for Profiled {
    fn install(&mut self, _wasm: &[u8]) -> Result<Installed, Failure> {
        Err("a case of one canister".into())
    }

    fn create(
        &mut self,
        case: &SubnetCase,
        modules: &[Vec<u8>],
    ) -> Result<Box<dyn RunningSubnet>, Failure> {
        let mut normal = embedded(&self.0, case, modules)?;
        let mut profiled = embedded(&self.0, case, modules)?;
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
