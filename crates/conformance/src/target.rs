//! Runs cases on targets, of which the embedded replica is one.
//!
//! ```text
//!   Target        a replica
//!    ├ Canister      with the case's module; receives its messages in order
//!    └ RunningSubnet the canisters of a case of several
//!   Embedded      the embedded replica
//! ```
//!
//! All answers that are compared or recorded come from [`run`] and [`answered`].

use std::path::Path;

use ic_management_canister_types::{HttpHeader, HttpRequestResult};
use stablebench_replica::subnet::{Executed, HttpResponse, Subnet};
use stablebench_replica::{
    self as replica, Cycles, ErrorCode, Execution, Module, Principal, RejectCode, Replica, Rules,
    Settings, files,
};
use tempfile::TempDir;

use crate::case::{Case, Error, Failure, MAX_FILE, MessageKind};
use crate::subnet::{ArgumentPart, Expected, Outcall, SubnetCase, SubnetStep};

/// A replica that creates a canister for each case. The anonymous principal is the caller of all
/// messages and the only controller.
pub trait Target {
    /// Creates a canister with the module, or returns the reject.
    ///
    /// # Errors
    ///
    /// If the replica itself failed.
    fn install(&mut self, wasm: &[u8]) -> Result<Installed, Failure>;

    /// Creates the canisters of a case on one subnet, and installs these modules.
    ///
    /// # Errors
    ///
    /// If the replica itself failed, or refused a module.
    fn create(
        &mut self,
        _case: &SubnetCase,
        _modules: &[Vec<u8>],
    ) -> Result<Box<dyn RunningSubnet>, Failure> {
        Err("this replica runs one canister for each case".into())
    }
}

/// The result of an install.
pub enum Installed {
    /// The canister accepts messages.
    Canister(Box<dyn Canister>),
    /// The module was refused.
    Refused(Answer),
}

/// A canister with a module.
pub trait Canister {
    /// Sends one message and waits for its answer.
    ///
    /// # Errors
    ///
    /// If the replica itself failed.
    fn call(&mut self, kind: MessageKind, method: &str, arg: &[u8]) -> Result<Answer, Failure>;
}

/// The canisters of a case.
pub trait RunningSubnet {
    /// Their ids.
    fn ids(&self) -> Vec<Principal>;

    /// Their balances.
    ///
    /// # Errors
    ///
    /// If the replica failed.
    fn balances(&self) -> Result<Vec<u128>, Failure>;

    /// Gives the canisters these balances, if the replica can.
    fn set_balances(&mut self, _balances: &[i128]) {}

    /// Calls a canister. HTTPS outcalls get these answers.
    ///
    /// # Errors
    ///
    /// If the replica failed.
    fn call(
        &mut self,
        to: Principal,
        kind: MessageKind,
        method: &str,
        argument: &[u8],
        outcalls: &[Outcall],
    ) -> Result<Expected, Failure>;

    /// Advances the time and executes a round.
    ///
    /// # Errors
    ///
    /// If the replica failed.
    fn tick(&mut self, advance_ns: u64) -> Result<(), Failure>;
}

/// The answer to a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// The reply, or the reject.
    pub outcome: Result<Vec<u8>, Reject>,
    /// The decrease of the canister's balance, if known.
    pub cycles: Option<u128>,
}

/// A reject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// Name of the replica's error code.
    pub code: String,
    /// The message.
    pub message: String,
}

/// The answers to a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answers {
    /// The module was refused.
    Refused(Answer),
    /// The answers to the calls, in order.
    Calls(Vec<Answer>),
}

/// Runs a case whose module is `wasm`.
///
/// # Errors
///
/// If the target failed. Errors of the canister are in the answers.
pub fn run(target: &mut dyn Target, case: &Case, wasm: &[u8]) -> Result<Answers, Failure> {
    let mut canister = match target.install(wasm)? {
        Installed::Canister(canister) => canister,
        Installed::Refused(answer) => return Ok(Answers::Refused(answer)),
    };
    case.calls
        .iter()
        .map(|call| canister.call(call.kind, &call.method, &call.arg))
        .collect::<Result<_, _>>()
        .map(Answers::Calls)
}

/// Runs a case whose paths are relative to `directory`.
///
/// # Errors
///
/// If its module cannot be read, or the target failed.
pub fn answers(target: &mut dyn Target, case: &Case, directory: &Path) -> Result<Answers, Error> {
    let wasm = case.wasm(directory)?;
    run(target, case, &wasm).map_err(|cause| Error::Target { case: case.name.clone(), cause })
}

/// Runs a case of several canisters and returns it with the answers of the target. Paths in it begin
/// at `folder`.
///
/// # Errors
///
/// If a module is not valid text, a file cannot be read, or the target failed.
pub fn answered(
    target: &mut dyn Target,
    case: &SubnetCase,
    folder: &Path,
) -> Result<SubnetCase, Error> {
    let failed = |cause| Error::Target { case: case.name.clone(), cause };
    let modules = case
        .canisters
        .iter()
        .map(wat::parse_str)
        .collect::<Result<Vec<_>, _>>()
        .map_err(|cause| Error::Wat { case: case.name.clone(), cause })?;
    let mut subnet = target.create(case, &modules).map_err(failed)?;
    let ids = subnet.ids();
    subnet.set_balances(&case.balances);
    let balances = subnet.balances().map_err(failed)?.into_iter().map(amount).collect();
    let steps = case.steps.iter().map(|step| taken(&mut *subnet, &ids, step, folder));
    let steps = steps.collect::<Result<_, _>>().map_err(failed)?;
    Ok(SubnetCase { ids, balances, steps, ..case.clone() })
}

fn taken(
    subnet: &mut dyn RunningSubnet,
    ids: &[Principal],
    step: &SubnetStep,
    folder: &Path,
) -> Result<SubnetStep, Failure> {
    let before = subnet.balances()?;
    let mut step = step.clone();
    let missing = |number: usize| format!("there is no canister number {number}");
    if let SubnetStep::Call(call) = &mut step {
        let mut argument = Vec::new();
        for part in &call.arg {
            match part {
                ArgumentPart::Bytes(bytes) => argument.extend_from_slice(bytes),
                ArgumentPart::Id(number) => {
                    let id = ids.get(*number).ok_or_else(|| missing(*number))?;
                    argument.extend_from_slice(id.as_slice());
                }
                ArgumentPart::File(path) => {
                    argument.extend(files::read(&folder.join(path), MAX_FILE)?)
                }
            }
        }
        let to = *ids.get(call.to).ok_or_else(|| missing(call.to))?;
        let answer = subnet.call(to, call.kind, &call.method, &argument, &call.outcalls)?;
        call.expect = Some(answer);
    }
    if let SubnetStep::Tick(ticks) = &step {
        for _ in 0..ticks.tick {
            subnet.tick(ticks.advance_ns)?;
        }
    }
    let fell = before.iter().zip(subnet.balances()?);
    let fell = fell.map(|(before, after)| amount(*before) - amount(after)).collect();
    match &mut step {
        SubnetStep::Call(call) => call.balances_fell = fell,
        SubnetStep::Tick(ticks) => ticks.balances_fell = fell,
    }
    Ok(step)
}

/// An amount of cycles in a case.
fn amount(balance: u128) -> i128 {
    i128::try_from(balance).unwrap_or(i128::MAX)
}

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
    fn call(&mut self, kind: MessageKind, method: &str, arg: &[u8]) -> Result<Answer, Failure> {
        let Self { canister, module } = self;
        let Execution { outcome, cycles, .. } = match kind {
            MessageKind::Update => canister.update(CALLER, method, arg)?,
            MessageKind::Query => canister.query(CALLER, method, arg)?,
            MessageKind::Upgrade => canister.upgrade(module, CALLER, arg)?,
            MessageKind::Reinstall => canister.install(module, CALLER, arg)?,
            MessageKind::Management => return Err(ONLY_ON_SUBNETS.into()),
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
        kind: MessageKind,
        method: &str,
        argument: &[u8],
        outcalls: &[Outcall],
    ) -> Result<Expected, Failure> {
        let response = match kind {
            MessageKind::Update => self.update(to, method, argument, outcalls)?,
            MessageKind::Management => {
                self.update(Principal::management_canister(), method, argument, outcalls)?
            }
            MessageKind::Query => {
                let call = self.subnet.query(CALLER, to, method, argument)?;
                self.executions = call.executions;
                call.response
            }
            MessageKind::Upgrade | MessageKind::Reinstall => {
                return Err("a case only has calls".into());
            }
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
