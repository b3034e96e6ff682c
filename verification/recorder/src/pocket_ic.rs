//! A PocketIC server as a target: each case runs on a new instance with one canister.

use std::sync::Arc;
use std::time::Duration;

use stablebench_conformance::subnet::{Expected, Outcall, RunningSubnet, SubnetCase};
use stablebench_conformance::{
    Answer, Canister, Failure, Installed, Kind, ONLY_ON_SUBNETS, Reject, Target,
};
use stablebench_pocket_ic::{
    Error, HttpAnswer, Instance, Mode, Principal, Server, Subnet, Undetected, Version, detect,
};
use stablebench_replica::Rules;

const CALLER: Principal = Principal::anonymous();

/// A PocketIC server, which ends when this value is dropped.
pub struct PocketIc {
    server: Arc<Server>,
    subnet: Subnet,
}

impl PocketIc {
    /// Starts the server that `POCKET_IC_BIN` names, or one that the client downloads.
    ///
    /// # Errors
    ///
    /// If there is none, or it does not start.
    pub fn start(subnet: Subnet) -> Result<Self, Error> {
        Ok(Self { server: Server::start()?, subnet })
    }

    /// Detects the rules by which the server charges.
    ///
    /// # Errors
    ///
    /// If no known rule set matches, or the server failed.
    pub fn rules(&self) -> Result<Rules, Undetected> {
        detect(&self.server, self.subnet)
    }

    /// The server's version.
    pub fn version(&self) -> Version {
        self.server.version()
    }
}

impl Target for PocketIc {
    fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure> {
        let instance = Instance::create(&self.server, self.subnet)?;
        let id = instance.create_canister(CALLER)?;
        let canister = Installation { instance, id, wasm: wasm.to_vec() };
        let answer = canister.paid(|canister| canister.put(Mode::Install, &[]))?;
        Ok(match answer.outcome {
            Ok(_) => Installed::Canister(Box::new(canister)),
            Err(_) => Installed::Refused(answer),
        })
    }

    fn create(
        &mut self,
        case: &SubnetCase,
        modules: &[Vec<u8>],
    ) -> Result<Box<dyn RunningSubnet>, Failure> {
        let subnet = if case.keys { Subnet::WithKeys } else { self.subnet };
        let instance = Instance::create(&self.server, subnet)?;
        let mut ids = Vec::new();
        for _ in modules {
            let id = instance.create_canister(CALLER)?;
            // A small part for the fees of installing, which only the server charges.
            instance.add_cycles(id, EXTRA)?;
            ids.push(id);
        }
        for (id, wasm) in ids.iter().zip(modules) {
            let installed = instance.install(*id, CALLER, Mode::Install, wasm, &[])?;
            installed.map_err(|reject| format!("a module was refused: {reject}"))?;
        }
        Ok(Box::new(Canisters { instance, ids }))
    }
}

/// Cycles of canisters that call each other, in addition to those of a single one.
const EXTRA: u128 = 100_000_000_000_000;

struct Canisters {
    instance: Instance,
    ids: Vec<Principal>,
}

impl RunningSubnet for Canisters {
    fn ids(&self) -> Vec<Principal> {
        self.ids.clone()
    }

    fn balances(&self) -> Result<Vec<u128>, Failure> {
        let balances = self.ids.iter().map(|id| self.instance.balance(*id));
        Ok(balances.collect::<Result<_, _>>()?)
    }

    fn call(
        &mut self,
        to: Principal,
        kind: Kind,
        method: &str,
        argument: &[u8],
        outcalls: &[Outcall],
    ) -> Result<Expected, Failure> {
        let outcome = match kind {
            Kind::Update => {
                let answers: Vec<_> = outcalls.iter().map(answer).collect();
                self.instance.update_with_outcalls(to, CALLER, method, argument, &answers)?
            }
            Kind::Query => self.instance.query(to, CALLER, method, argument)?,
            Kind::Management => self.instance.manage(to, CALLER, method, argument)?,
            Kind::Upgrade | Kind::Reinstall => return Err("a case only has calls".into()),
        };
        Ok(match outcome {
            Ok(reply) => Expected::Reply(reply),
            Err(reject) => Expected::Reject { code: reject.code, message: reject.message },
        })
    }

    fn tick(&mut self, advance_ns: u64) -> Result<(), Failure> {
        if advance_ns > 0 {
            self.instance.advance(Duration::from_nanos(advance_ns))?;
        }
        Ok(self.instance.round()?)
    }
}

fn answer(outcall: &Outcall) -> HttpAnswer {
    match outcall.clone() {
        Outcall::Response { status, headers, body } => {
            HttpAnswer::Response { status, headers, body }
        }
        Outcall::Reject { code, message } => HttpAnswer::Reject { code: code.into(), message },
    }
}

struct Installation {
    instance: Instance,
    id: Principal,
    wasm: Vec<u8>,
}

type Outcome = Result<Vec<u8>, stablebench_pocket_ic::Reject>;

impl Installation {
    fn put(&self, mode: Mode, arg: &[u8]) -> Result<Outcome, Error> {
        let done = self.instance.install(self.id, CALLER, mode, &self.wasm, arg)?;
        Ok(done.map(|()| Vec::new()))
    }

    /// Sends a message. Returns the answer with the decrease of the balance.
    fn paid(
        &self,
        message: impl FnOnce(&Self) -> Result<Outcome, Error>,
    ) -> Result<Answer, Failure> {
        let before = self.instance.balance(self.id)?;
        let outcome = message(self)?;
        let after = self.instance.balance(self.id)?;
        let outcome =
            outcome.map_err(|reject| Reject { code: reject.code, message: reject.message });
        Ok(Answer { outcome, cycles: Some(before.saturating_sub(after)) })
    }
}

impl Canister for Installation {
    fn call(&mut self, kind: Kind, method: &str, arg: &[u8]) -> Result<Answer, Failure> {
        if kind == Kind::Management {
            return Err(ONLY_ON_SUBNETS.into());
        }
        self.paid(|canister| match kind {
            Kind::Update => canister.instance.update(canister.id, CALLER, method, arg),
            Kind::Query => canister.instance.query(canister.id, CALLER, method, arg),
            Kind::Upgrade => canister.put(Mode::Upgrade, arg),
            Kind::Reinstall | Kind::Management => canister.put(Mode::Reinstall, arg),
        })
    }
}
