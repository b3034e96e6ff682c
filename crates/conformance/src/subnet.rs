//! Cases of several canisters that call each other, in rounds.
//!
//! ```text
//! name
//! canisters[]          the modules as text, in order of creation
//! keys                 true if a subnet beside this one holds threshold keys
//! ids[]                the ids of the canisters
//! balances[]           their balances before the first step
//! steps[]              in order:
//!   to, method, kind   a call of the canister number `to`; kind: update or query; management for a
//!                      call of the management canister about it
//!   arg[]              parts: hex, <n> for the id of canister number n, or @path for the bytes of a
//!                      file, from the folder of the cases
//!   outcalls[]         the answers to the HTTPS outcalls that the call makes: status, headers, body
//!                      (hex), or reject: code, message
//!   expect             the answer: reply (hex), or reject: code, message
//!   tick, advance_ns   instead of a call: so many rounds, each after advancing the time
//!   balances_fell[]    the decrease of each canister's balance during the step
//! ```
//!
//! `ids`, `expect` and `balances_fell` are missing in a case that has not been recorded.
//!
//! Rejects are compared as in cases of one canister. Balances are compared if those before the first
//! step were recorded too; otherwise not over rounds without a call, because the age of the
//! canisters, which decides on the charges for storage, is not known then.

use std::fmt;
use std::path::Path;

use ic_management_canister_types::{HttpHeader, HttpRequestResult};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};
use stablebench_replica::files;
use stablebench_replica::subnet::{Executed, HttpResponse, Subnet};
use stablebench_replica::{Canister, Cycles, Principal, Reject, RejectCode, Replica, Settings};

use crate::case::{self, Kind, MAX_FILE};
use crate::compare::{Difference, Outcome, agree};
use crate::error::{Error, Failure};
use crate::hex;
use crate::target::Target;

/// Canisters and what is done with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubnetCase {
    /// The name in lists of differences.
    pub name: String,
    /// The modules, as WebAssembly text.
    pub canisters: Vec<String>,
    /// True if a subnet beside this one holds threshold keys.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keys: bool,
    /// The ids of the canisters.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub ids: Vec<Principal>,
    /// Their balances before the first step.
    #[serde(default, with = "amounts", skip_serializing_if = "Vec::is_empty")]
    pub balances: Vec<i128>,
    /// The steps, in order.
    pub steps: Vec<Step>,
}

/// A call, or rounds without one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Step {
    /// A call.
    Call(SubnetCall),
    /// Rounds.
    Tick(Ticks),
}

/// A call of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SubnetCall {
    /// The argument.
    pub arg: Vec<Part>,
    /// The decrease of each balance.
    #[serde(default, with = "amounts", skip_serializing_if = "Vec::is_empty")]
    pub balances_fell: Vec<i128>,
    /// The answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expect: Option<Expected>,
    /// The kind of message: update, query or management.
    pub kind: Kind,
    /// The method.
    pub method: String,
    /// Answers to the HTTPS outcalls that the call makes, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub outcalls: Vec<Outcall>,
    /// The number of the canister.
    pub to: usize,
}

/// Rounds without a call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ticks {
    /// Nanoseconds by which the time is advanced before each round.
    pub advance_ns: u64,
    /// The decrease of each balance.
    #[serde(default, with = "amounts", skip_serializing_if = "Vec::is_empty")]
    pub balances_fell: Vec<i128>,
    /// The number of rounds.
    pub tick: u32,
}

/// A part of an argument.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Part {
    /// Bytes.
    Bytes(Vec<u8>),
    /// The id of a canister, by its number.
    Id(usize),
    /// The bytes of a file, by its path from the folder of the cases.
    File(String),
}

impl TryFrom<String> for Part {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix('@') {
            return Ok(Self::File(path.to_owned()));
        }
        match text.strip_prefix('<').and_then(|rest| rest.strip_suffix('>')) {
            Some(number) => number
                .parse()
                .map(Self::Id)
                .map_err(|_| format!("{text} is not the number of a canister")),
            None => hex::decode(&text).map(Self::Bytes),
        }
    }
}

impl From<Part> for String {
    fn from(part: Part) -> Self {
        match part {
            Part::Bytes(bytes) => hex::encode(&bytes),
            Part::Id(number) => format!("<{number}>"),
            Part::File(path) => format!("@{path}"),
        }
    }
}

/// The answer to an HTTPS outcall.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum Outcall {
    /// A response.
    Response {
        /// The HTTP status code.
        status: u16,
        /// Names and values.
        headers: Vec<(String, String)>,
        /// The body.
        #[serde(with = "hex")]
        body: Vec<u8>,
    },
    /// No response.
    Reject {
        /// The reject code.
        code: u16,
        /// The reason.
        message: String,
    },
}

/// An expected answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
pub enum Expected {
    /// A reply.
    Reply(#[serde(with = "hex")] Vec<u8>),
    /// A reject.
    Reject {
        /// The name of the error code.
        code: String,
        /// The message.
        message: String,
    },
}

/// Amounts of cycles as text, because they do not fit into the numbers of JSON.
mod amounts {
    use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

    pub fn serialize<S: Serializer>(amounts: &[i128], to: S) -> Result<S::Ok, S::Error> {
        amounts.iter().map(ToString::to_string).collect::<Vec<_>>().serialize(to)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<i128>, D::Error> {
        let texts = Vec::<String>::deserialize(from)?;
        texts.iter().map(|text| text.parse().map_err(de::Error::custom)).collect()
    }
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
        kind: Kind,
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

/// Returns true if a file has such cases.
///
/// # Errors
///
/// If the file cannot be read, or is not a list of objects.
pub fn is_file_of_subnets(path: &Path) -> Result<bool, Error> {
    #[derive(Deserialize)]
    struct Shape {
        canisters: Option<IgnoredAny>,
    }
    let shapes: Vec<Shape> = case::read_list(path)?;
    Ok(shapes.first().is_some_and(|shape| shape.canisters.is_some()))
}

/// Runs the cases of a file and adds the results to `outcome`. `begin` is called before each case.
///
/// # Errors
///
/// If the file cannot be used, or the target failed. `outcome` has the results of earlier cases.
pub fn check_file(
    target: &mut dyn Target,
    path: &Path,
    outcome: &mut Outcome,
    mut begin: impl FnMut(&SubnetCase),
) -> Result<(), Error> {
    for case in read(path)? {
        begin(&case);
        let got = record(target, &case, case::directory(path))?;
        compare(outcome, &case, &got);
    }
    Ok(())
}

/// Reads a file of such cases.
///
/// # Errors
///
/// If the file cannot be read, or does not contain such cases.
pub fn read(path: &Path) -> Result<Vec<SubnetCase>, Error> {
    case::read_list(path)
}

/// Writes a file of such cases.
///
/// # Errors
///
/// If it cannot be written; an existing file is unchanged then.
pub fn write(path: &Path, cases: &[SubnetCase]) -> Result<(), Error> {
    case::write_list(path, cases)
}

/// Runs a case and returns it with the answers of the target. Paths in it begin at `folder`.
///
/// # Errors
///
/// If a module is not valid text, a file cannot be read, or the target failed.
pub fn record(
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

fn amount(balance: u128) -> i128 {
    i128::try_from(balance).unwrap_or(i128::MAX)
}

fn taken(
    subnet: &mut dyn RunningSubnet,
    ids: &[Principal],
    step: &Step,
    folder: &Path,
) -> Result<Step, Failure> {
    let before = subnet.balances()?;
    let mut step = step.clone();
    let missing = |number: usize| format!("there is no canister number {number}");
    if let Step::Call(call) = &mut step {
        let mut argument = Vec::new();
        for part in &call.arg {
            match part {
                Part::Bytes(bytes) => argument.extend_from_slice(bytes),
                Part::Id(number) => {
                    let id = ids.get(*number).ok_or_else(|| missing(*number))?;
                    argument.extend_from_slice(id.as_slice());
                }
                Part::File(path) => argument.extend(files::read(&folder.join(path), MAX_FILE)?),
            }
        }
        let to = *ids.get(call.to).ok_or_else(|| missing(call.to))?;
        let answer = subnet.call(to, call.kind, &call.method, &argument, &call.outcalls)?;
        call.expect = Some(answer);
    }
    if let Step::Tick(ticks) = &step {
        for _ in 0..ticks.tick {
            subnet.tick(ticks.advance_ns)?;
        }
    }
    let fell = before.iter().zip(subnet.balances()?);
    let fell = fell.map(|(before, after)| amount(*before) - amount(after)).collect();
    match &mut step {
        Step::Call(call) => call.balances_fell = fell,
        Step::Tick(ticks) => ticks.balances_fell = fell,
    }
    Ok(step)
}

/// Compares a recorded case with the same case on another target.
pub fn compare(outcome: &mut Outcome, recorded: &SubnetCase, got: &SubnetCase) {
    for (number, (recorded_step, got_step)) in recorded.steps.iter().zip(&got.steps).enumerate() {
        let balances = !recorded.balances.is_empty();
        let (wanted, had) = (Seen(recorded_step, balances), Seen(got_step, balances));
        let name = match recorded_step {
            Step::Call(call) => format!("{number} {} of {}", call.method, call.to),
            Step::Tick(_) => format!("{number} tick"),
        };
        if wanted.agrees_with(&had) {
            outcome.passed += 1;
            continue;
        }
        let (expected, got) = (wanted.to_string(), had.to_string());
        let case = recorded.name.clone();
        outcome.differences.push(Difference { case, call: name, expected, got });
    }
}

/// The compared parts of a step.
struct Seen<'a>(&'a Step, bool);

impl Seen<'_> {
    /// Returns true if a recorded step agrees with the actual one.
    fn agrees_with(&self, had: &Self) -> bool {
        let answers = match (self.answer(), had.answer()) {
            (
                Some(Expected::Reject { code, message: recorded }),
                Some(Expected::Reject { code: other, message }),
            ) => code == other && agree(recorded, message),
            (recorded, answer) => recorded == answer,
        };
        answers && self.balances() == had.balances()
    }

    fn answer(&self) -> Option<&Expected> {
        match self.0 {
            Step::Call(call) => call.expect.as_ref(),
            Step::Tick(_) => None,
        }
    }

    /// The decrease of the balances, if it is compared.
    fn balances(&self) -> Option<&[i128]> {
        // These also pay for compiling.
        let compiles = ["install_code", "load_canister_snapshot"];
        match self.0 {
            Step::Call(call)
                if call.kind == Kind::Management && compiles.contains(&call.method.as_str()) =>
            {
                None
            }
            Step::Call(call) => Some(&call.balances_fell),
            Step::Tick(ticks) => self.1.then_some(&ticks.balances_fell[..]),
        }
    }
}

impl fmt::Display for Seen<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.answer() {
            Some(Expected::Reply(reply)) => write!(f, "reply {}", hex::encode(reply))?,
            Some(Expected::Reject { code, message }) => write!(f, "{code}: {message}")?,
            None => f.write_str("nothing")?,
        }
        match self.balances() {
            Some(fell) => write!(f, ", balances fell by {fell:?}"),
            None => Ok(()),
        }
    }
}

/// Cycles of each canister, before it gets those that were recorded.
const BALANCE: Cycles = Cycles(1_000_000_000_000_000);

/// Their balances, if none were recorded.
const USUAL_BALANCE: i128 = 1_100_000_000_000_000;

/// Canisters on an embedded subnet.
#[derive(Debug)]
pub struct EmbeddedSubnet {
    /// The subnet.
    pub subnet: Subnet,
    /// The executions of the last call or round.
    pub executions: Vec<Executed>,
    ids: Vec<Principal>,
}

/// Creates the canisters of a case on an embedded subnet, with the ids that were recorded.
///
/// # Errors
///
/// If a canister cannot be installed.
pub fn embedded(
    replica: &Replica,
    case: &SubnetCase,
    modules: &[Vec<u8>],
) -> Result<EmbeddedSubnet, Failure> {
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
        let mut canister = Canister::new(settings)?;
        canister.install(&module, CALLER, &[])?.outcome?;
        subnet.add(canister)?;
        // The server installs in a round.
        subnet.tick()?;
        ids.push(id);
    }
    Ok(EmbeddedSubnet { subnet, executions: Vec::new(), ids })
}

/// The id of the canister with this number, on a new subnet.
fn canister_id(number: u8) -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, number, 1, 1])
}

const CALLER: Principal = Principal::anonymous();

/// The most rounds that a message waits.
const MAX_ROUNDS: u32 = 100;

impl EmbeddedSubnet {
    /// Sends an update and executes rounds until it is answered.
    fn update(
        &mut self,
        to: Principal,
        method: &str,
        argument: &[u8],
        outcalls: &[Outcall],
    ) -> Result<Result<Vec<u8>, Reject>, Failure> {
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
