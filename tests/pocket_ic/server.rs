//! A PocketIC server, through the tool's own connection: the one that `POCKET_IC_BIN` names, or the tool
//! itself, as its users start it.

use std::process::Command;
use std::sync::{Arc, OnceLock};

use stablebench_pocket_ic::{Instance, Server, Snapshot, Subnet, detect};

pub use stablebench_pocket_ic::BINARY;

use crate::replica::{
    CACHE_HOME, CONTROLLER, Canister, Mode, Outcome, Principal, Reject, Replica, Rules, Updated,
};

/// The tool.
pub const PROGRAM: &str = env!("CARGO_BIN_EXE_stablebench");

/// The versions on which all scenarios run, with the rules of their time.
pub const VERSIONS: [(&str, &str); 2] = [("served_16", "16.1.0"), ("served_10", "10.0.0")];

/// Returns the rules of the servers of a version.
pub fn rules_of(version: &str) -> Rules {
    if version.starts_with("10.") { Rules::of_2025_10() } else { Rules::of_2026_10() }
}

/// Returns the environment in which clients start the tool as a server of a version.
pub fn environment(version: &str) -> Vec<(&'static str, String)> {
    vec![
        (BINARY, PROGRAM.to_owned()),
        ("STABLEBENCH_POCKET_IC_VERSION", version.to_owned()),
        ("STABLEBENCH_RULES", rules_of(version).name().to_owned()),
        ("XDG_CACHE_HOME", CACHE_HOME.to_owned()),
    ]
}

/// A server, started at its first use.
pub struct PocketIc {
    server: OnceLock<Arc<Server>>,
    /// Detected at their first use.
    rules: OnceLock<Rules>,
    /// The environment in which the tool starts a server of the same kind.
    environment: Vec<(&'static str, String)>,
}

impl PocketIc {
    /// Returns the server that `POCKET_IC_BIN` names.
    pub fn from_environment() -> Arc<dyn Replica> {
        Arc::new(Self { server: OnceLock::new(), rules: OnceLock::new(), environment: Vec::new() })
    }

    /// Starts the tool as a server of the given version. Must be called before any thread is started.
    pub fn served(version: &str) -> Arc<dyn Replica> {
        let environment = environment(version);
        let previous: Vec<_> =
            environment.iter().map(|(name, _)| (*name, std::env::var_os(name))).collect();
        for (name, value) in &environment {
            // SAFETY: no other thread runs yet: `main` builds the list of tests first.
            unsafe { std::env::set_var(name, value) };
        }
        let server =
            Server::start().unwrap_or_else(|error| panic!("the tool as a server: {error}"));
        for (name, value) in previous {
            match value {
                // SAFETY: as above.
                Some(value) => unsafe { std::env::set_var(name, value) },
                // SAFETY: as above.
                None => unsafe { std::env::remove_var(name) },
            }
        }
        Arc::new(Self { server: OnceLock::from(server), rules: OnceLock::new(), environment })
    }

    fn server(&self) -> &Arc<Server> {
        self.server.get_or_init(|| Server::start().unwrap())
    }
}

impl Replica for PocketIc {
    fn create(&self) -> Box<dyn Canister> {
        let instance = Instance::create(self.server(), Subnet::Application).unwrap();
        let id = instance.create_canister(CONTROLLER).unwrap();
        Box::new(OnInstance { instance, id, snapshot: None })
    }

    fn rules(&self) -> Rules {
        let found =
            || detect(self.server(), Subnet::Application).unwrap_or_else(|error| panic!("{error}"));
        *self.rules.get_or_init(found)
    }

    fn configure(&self, command: &mut Command) {
        command.args(["--replica", "pocket-ic"]);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }
}

/// The only canister of an instance.
struct OnInstance {
    instance: Instance,
    id: Principal,
    snapshot: Option<Snapshot>,
}

impl OnInstance {
    fn balance(&self) -> u128 {
        self.instance.balance(self.id).unwrap()
    }
}

impl Canister for OnInstance {
    fn install(&mut self, mode: Mode, wasm: &[u8], argument: &[u8]) -> Result<(), Reject> {
        let mode = match mode {
            Mode::Install => stablebench_pocket_ic::Mode::Install,
            Mode::Reinstall => stablebench_pocket_ic::Mode::Reinstall,
            Mode::Upgrade => stablebench_pocket_ic::Mode::Upgrade,
        };
        self.instance.install(self.id, CONTROLLER, mode, wasm, argument).unwrap().map_err(reject)
    }

    fn update(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Updated {
        let before = self.balance();
        let outcome = self.instance.update(self.id, caller, method, argument).unwrap();
        Updated { outcome: outcome.map_err(reject), cycles: before - self.balance() }
    }

    fn id(&self) -> Principal {
        self.id
    }

    fn time(&self) -> Option<u64> {
        Some(self.instance.time().unwrap())
    }

    fn set_time(&mut self, _: u64) {}

    fn query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Outcome {
        self.instance.query(self.id, caller, method, argument).unwrap().map_err(reject)
    }

    fn take_snapshot(&mut self) {
        let replaced = self.snapshot.as_ref();
        let taken = self.instance.take_snapshot(self.id, CONTROLLER, replaced);
        self.snapshot = Some(taken.unwrap());
    }

    fn load_snapshot(&mut self) {
        let snapshot = self.snapshot.as_ref().expect("a snapshot was taken");
        self.instance.load_snapshot(self.id, CONTROLLER, snapshot).unwrap();
    }
}

fn reject(reject: stablebench_pocket_ic::Reject) -> Reject {
    Reject { code: reject.code, message: reject.message }
}
