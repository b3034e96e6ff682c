//! The embedded replica as a target of cases.

use ic_management_canister_types::{HttpHeader, HttpRequestResult};
use stablebench_replica::subnet::{Executed, HttpResponse, Subnet};
use stablebench_replica::{
    self as replica, Cycles, ErrorCode, Execution, Module, Principal, RejectCode, Replica, Rules,
    Settings,
};
use tempfile::TempDir;

use crate::case::{Failure, Kind};
use crate::subnet::{Expected, Outcall, SubnetCase};
use crate::target::{Answer, Canister, Installed, Reject, RunningSubnet, Target, amount};

const CALLER: Principal = Principal::anonymous();

/// Cycles of each canister of several, before it gets those that were recorded.
const BALANCE: Cycles = Cycles(1_000_000_000_000_000);

/// Their balances, if none were recorded.
const USUAL_BALANCE: i128 = 1_100_000_000_000_000;

/// The most rounds that a message waits.
const MAX_ROUNDS: u32 = 100;

/// The embedded replica. Cases that share a module compile it once.
pub struct Embedded {
    replica: Replica,
    /// The folder of compiled modules; `None` if no folder could be created.
    _cache: Option<TempDir>,
}

impl Embedded {
    /// Starts a replica with the given rules.
    ///
    /// # Errors
    ///
    /// If the engine does not support this machine.
    pub fn new(rules: Rules) -> Result<Self, Failure> {
        let cache = tempfile::tempdir().ok();
        let folder = cache.as_ref().map(|cache| cache.path().to_owned());
        let replica = Replica::new(rules, folder)?;
        Ok(Self { replica, _cache: cache })
    }
}

impl Target for Embedded {
    fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure> {
        let module = match self.replica.compile(wasm) {
            Ok(module) => module,
            Err(reject) => return Ok(refused(reject)),
        };
        let mut canister = self.replica.create_canister()?;
        // An image that is too large for this machine is refused like on the network.
        let outcome = match canister.install(&module, CALLER, &[]) {
            Ok(execution) => execution.outcome,
            Err(error) => Err(replica::Reject {
                code: ErrorCode::CanisterOutOfMemory,
                message: error.to_string(),
            }),
        };
        Ok(match outcome {
            Ok(_) => Installed::Canister(Box::new(Installation { canister, module })),
            Err(reject) => refused(reject),
        })
    }

    fn create(
        &mut self,
        case: &SubnetCase,
        modules: &[Vec<u8>],
    ) -> Result<Box<dyn RunningSubnet>, Failure> {
        Ok(Box::new(EmbeddedSubnet::new(&self.replica, case, modules)?))
    }
}

/// The error of a case of one canister that calls the management canister.
pub const ONLY_ON_SUBNETS: &str =
    "only cases of several canisters have calls of the management canister";

struct Installation {
    canister: replica::Canister,
    module: Module,
}

impl Canister for Installation {
    fn call(&mut self, kind: Kind, method: &str, arg: &[u8]) -> Result<Answer, Failure> {
        let Self { canister, module } = self;
        let Execution { outcome, cycles, .. } = match kind {
            Kind::Update => canister.update(CALLER, method, arg)?,
            Kind::Query => canister.query(CALLER, method, arg)?,
            Kind::Upgrade => canister.upgrade(module, CALLER, arg)?,
            Kind::Reinstall => canister.install(module, CALLER, arg)?,
            Kind::Management => return Err(ONLY_ON_SUBNETS.into()),
        };
        Ok(Answer { outcome: outcome.map_err(reject), cycles: Some(cycles.get()) })
    }
}

fn refused(refusal: replica::Reject) -> Installed {
    Installed::Refused(Answer { outcome: Err(reject(refusal)), cycles: None })
}

fn reject(reject: replica::Reject) -> Reject {
    Reject { code: reject.code.name().to_owned(), message: reject.message }
}

/// Canisters on an embedded subnet.
#[derive(Debug)]
pub struct EmbeddedSubnet {
    /// The subnet.
    pub subnet: Subnet,
    /// The executions of the last call or round.
    pub executions: Vec<Executed>,
    ids: Vec<Principal>,
}

/// The id of the canister with this number, on a new subnet.
fn canister_id(number: u8) -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, number, 1, 1])
}

impl EmbeddedSubnet {
    /// Creates the canisters of a case on an embedded subnet, with the ids that were recorded.
    ///
    /// # Errors
    ///
    /// If a canister cannot be installed.
    pub fn new(replica: &Replica, case: &SubnetCase, modules: &[Vec<u8>]) -> Result<Self, Failure> {
        let mut subnet = Subnet::new(replica);
        subnet.allow_http_requests(true);
        // The server's rounds so far: its first ones, and the creation of each canister.
        subnet.set_time(subnet.time() + 2 + modules.len() as u64);
        let mut ids = Vec::new();
        for (number, wasm) in modules.iter().enumerate() {
            let id = case.ids.get(number).copied().unwrap_or_else(|| canister_id(number as u8));
            let module = replica.compile_for_subnet(&id, wasm)?;
            let usual = replica.create_canister()?;
            let settings = Settings { id, balance: BALANCE, ..usual.settings().clone() };
            let mut canister = replica::Canister::new(settings)?;
            canister.install(&module, CALLER, &[])?.outcome?;
            subnet.add(canister)?;
            // The server installs in a round.
            subnet.tick()?;
            ids.push(id);
        }
        Ok(Self { subnet, executions: Vec::new(), ids })
    }

    /// Sends an update and executes rounds until it is answered.
    fn update(
        &mut self,
        to: Principal,
        method: &str,
        argument: &[u8],
        outcalls: &[Outcall],
    ) -> Result<Result<Vec<u8>, replica::Reject>, Failure> {
        self.subnet.take_executions();
        self.executions.clear();
        let id = match self.subnet.submit(CALLER, to, method, argument)? {
            Ok(id) => id,
            Err(reject) => return Ok(Err(reject)),
        };
        let mut outcalls = outcalls.iter();
        for _ in 0..MAX_ROUNDS {
            self.subnet.tick()?;
            if let Some(response) = self.subnet.take_answer(id) {
                self.executions = self.subnet.take_executions();
                return Ok(response);
            }
            let waiting: Vec<_> = self.subnet.http_requests().map(|it| it.id).collect();
            for (request, outcall) in waiting.into_iter().zip(&mut outcalls) {
                self.subnet.answer_http_request(request, outcall.response())?;
            }
        }
        Err("the call was not answered".into())
    }
}

impl Outcall {
    /// The answer in the types of the embedded replica.
    fn response(&self) -> HttpResponse {
        match self.clone() {
            Self::Response { status, headers, body } => {
                let header = |(name, value)| HttpHeader { name, value };
                let headers = headers.into_iter().map(header).collect();
                Ok(HttpRequestResult { status: status.into(), headers, body })
            }
            Self::Reject { code, message } => Err((RejectCode::of(code), message)),
        }
    }
}

impl RunningSubnet for EmbeddedSubnet {
    fn ids(&self) -> Vec<Principal> {
        self.ids.clone()
    }

    fn balances(&self) -> Result<Vec<u128>, Failure> {
        let balance = |id| self.subnet.canister(id).map_or(0, |it| it.balance().get());
        Ok(self.ids.iter().map(balance).collect())
    }

    fn set_balances(&mut self, balances: &[i128]) {
        for (id, balance) in self.ids.iter().zip(balances) {
            let Some(canister) = self.subnet.canister_mut(id) else { continue };
            let missing = balance - amount(canister.balance().get());
            canister.add_cycles(Cycles(missing.max(0).cast_unsigned()));
        }
        if balances.is_empty() {
            self.set_balances(&vec![USUAL_BALANCE; self.ids.len()]);
        }
    }

    fn call(
        &mut self,
        to: Principal,
        kind: Kind,
        method: &str,
        argument: &[u8],
        outcalls: &[Outcall],
    ) -> Result<Expected, Failure> {
        let response = match kind {
            Kind::Update => self.update(to, method, argument, outcalls)?,
            Kind::Management => {
                self.update(Principal::management_canister(), method, argument, outcalls)?
            }
            Kind::Query => {
                let call = self.subnet.query(CALLER, to, method, argument)?;
                self.executions = call.executions;
                call.response
            }
            Kind::Upgrade | Kind::Reinstall => return Err("a case only has calls".into()),
        };
        Ok(match response {
            Ok(reply) => Expected::Reply(reply),
            Err(reject) => {
                Expected::Reject { code: reject.code.name().to_owned(), message: reject.message }
            }
        })
    }

    fn tick(&mut self, advance_ns: u64) -> Result<(), Failure> {
        self.subnet.set_time(self.subnet.time() + advance_ns);
        self.subnet.tick()?;
        self.executions = self.subnet.take_executions();
        Ok(())
    }
}
