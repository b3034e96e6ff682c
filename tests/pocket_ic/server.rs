//! Canisters on a server, through the tool's own connection to PocketIC.

use std::process::Command;
use std::sync::{Arc, OnceLock};

use stablebench_conformance::detect;
use stablebench_pocket_ic::{Instance, Server, Snapshot, Subnet};

pub use stablebench_pocket_ic::BINARY;

use crate::canister::{
    CONTROLLER, Canister, Mode, Outcome, Principal, Reject, Replica, Rules, Updated,
};
use crate::stand_in;

/// A server, started when it is first needed.
pub struct PocketIc {
    server: OnceLock<Arc<Server>>,
    /// Found out when they are first asked for.
    rules: OnceLock<Rules>,
    /// With which the tool starts another one like it.
    environment: Vec<(&'static str, String)>,
}

impl PocketIc {
    /// The server that `POCKET_IC_BIN` names.
    pub fn named() -> Arc<dyn Replica> {
        Arc::new(Self { server: OnceLock::new(), rules: OnceLock::new(), environment: Vec::new() })
    }

    /// This program as a server of that version. To be called before there are threads.
    pub fn stand_in(version: &str) -> Arc<dyn Replica> {
        let environment = stand_in::environment(version);
        let before: Vec<_> =
            environment.iter().map(|(name, _)| (*name, std::env::var_os(name))).collect();
        for (name, value) in &environment {
            // SAFETY: the trials' threads have not been started: `main` makes them first.
            unsafe { std::env::set_var(name, value) };
        }
        let server = Server::start().unwrap_or_else(|error| panic!("the stand-in: {error}"));
        for (name, value) in before {
            match value {
                // SAFETY: as above.
                Some(value) => unsafe { std::env::set_var(name, value) },
                // SAFETY: as above.
                None => unsafe { std::env::remove_var(name) },
            }
        }
        Arc::new(Self { server: OnceLock::from(server), rules: OnceLock::new(), environment })
    }
}

impl PocketIc {
    fn server(&self) -> &Arc<Server> {
        self.server.get_or_init(|| Server::start().unwrap())
    }
}

impl Replica for PocketIc {
    fn create(&self) -> Box<dyn Canister> {
        let instance = Instance::create(self.server(), Subnet::Application).unwrap();
        let id = instance.create_canister(CONTROLLER).unwrap();
        Box::new(OnInstance { instance, id, kept: None })
    }

    fn rules(&self) -> Rules {
        let find = || {
            let server = Arc::clone(self.server());
            let mut target = stablebench_conformance::PocketIc::on(server, Subnet::Application);
            detect(&mut target).unwrap_or_else(|error| panic!("{error}"))
        };
        *self.rules.get_or_init(find)
    }

    fn choose(&self, command: &mut Command) {
        command.args(["--replica", "pocket-ic"]);
        command.envs(self.environment.iter().map(|(name, value)| (name, value)));
    }
}

/// The one canister of an instance.
struct OnInstance {
    instance: Instance,
    id: Principal,
    kept: Option<Snapshot>,
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

    fn query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Outcome {
        self.instance.query(self.id, caller, method, argument).unwrap().map_err(reject)
    }

    fn keep(&mut self) {
        self.kept =
            Some(self.instance.take_snapshot(self.id, CONTROLLER, self.kept.as_ref()).unwrap());
    }

    fn put_back(&mut self) {
        let kept = self.kept.as_ref().expect("it was kept");
        self.instance.load_snapshot(self.id, CONTROLLER, kept).unwrap();
    }
}

fn reject(reject: stablebench_pocket_ic::Reject) -> Reject {
    Reject { code: reject.code, message: reject.message }
}
