//! Canisters on the embedded replica.

use std::process::Command;

use stablebench_replica::Execution;

use crate::canister::{
    CONTROLLER, Canister, Mode, Outcome, Principal, Reject, Replica, Rules, Updated,
};
use crate::modules::{compile, replica};

/// The embedded replica under those rules.
pub struct Embedded(pub Rules);

impl Replica for Embedded {
    fn create(&self) -> Box<dyn Canister> {
        let canister = replica(self.0).create_canister().unwrap();
        Box::new(Forked { canister, kept: None, rules: self.0 })
    }

    fn rules(&self) -> Rules {
        self.0
    }

    fn choose(&self, command: &mut Command) {
        command.args(["--replica", "embedded", "--rules", self.0.name()]);
    }
}

/// A canister, and a fork of it from when it was kept.
struct Forked {
    canister: stablebench_replica::Canister,
    kept: Option<stablebench_replica::Canister>,
    rules: Rules,
}

impl Canister for Forked {
    fn install(&mut self, mode: Mode, wasm: &[u8], argument: &[u8]) -> Result<(), Reject> {
        let module = compile(self.rules, wasm).map_err(reject)?;
        let execution = match mode {
            Mode::Install | Mode::Reinstall => self.canister.install(&module, CONTROLLER, argument),
            Mode::Upgrade => self.canister.upgrade(&module, CONTROLLER, argument),
        };
        outcome(execution.unwrap()).map(drop)
    }

    fn update(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Updated {
        let execution = self.canister.update(caller, method, argument).unwrap();
        Updated { cycles: execution.cycles.get(), outcome: outcome(execution) }
    }

    fn query(&mut self, caller: Principal, method: &str, argument: &[u8]) -> Outcome {
        outcome(self.canister.query(caller, method, argument).unwrap())
    }

    fn keep(&mut self) {
        self.kept = Some(self.canister.fork());
    }

    fn put_back(&mut self) {
        self.canister = self.kept.as_ref().expect("it was kept").fork();
    }
}

fn outcome(execution: Execution) -> Outcome {
    execution.outcome.map_err(reject)
}

fn reject(reject: stablebench_replica::Reject) -> Reject {
    Reject { code: reject.code.name().to_owned(), message: reject.message }
}
