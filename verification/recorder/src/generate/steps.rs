//! Builds cases step by step.
//!
//! Calls go through canister 0, which returns the reply or the reject, and the cycles that came back.
//! Some cases have a subject, which canister 0 creates first.

use candid::utils::ArgumentEncoder;
use candid::{Principal, encode_args};
use ic_management_canister_types::{CanisterIdRecord, CreateCanisterArgs};
use stablebench_conformance::Kind;
use stablebench_conformance::subnet::{Outcall, Part, Step, SubnetCall, SubnetCase, Ticks};

use super::calls::SCRIPTED;
use super::calls::script::{Op, Script, Send};

/// Cycles of a created canister, with the fee.
pub const CREATION: u64 = 20_000_000_000_000;
/// The user who calls canisters, and controls them.
pub const USER: Principal = Principal::anonymous();

/// The id of the canister with this number.
pub fn id(number: u8) -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, number, 1, 1])
}

/// The canister that canister 0 creates.
pub fn subject() -> Principal {
    id(2)
}

/// The argument that names the subject.
pub fn record() -> CanisterIdRecord {
    CanisterIdRecord { canister_id: subject() }
}

/// A module in binary form.
pub fn wasm(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap_or_default()
}

/// Arguments in Candid.
pub fn candid(arguments: impl ArgumentEncoder) -> Vec<u8> {
    encode_args(arguments).unwrap_or_default()
}

/// A case.
#[derive(Default)]
pub struct Case {
    steps: Vec<Step>,
    keys: bool,
}

impl Case {
    /// A case whose subject exists.
    pub fn with_subject() -> Self {
        let mut case = Self::default();
        case.manage_with(CREATION, "create_canister", (CreateCanisterArgs::default(),));
        case
    }

    /// Canister 0 calls the management canister.
    pub fn manage(&mut self, method: &'static str, arguments: impl ArgumentEncoder) {
        self.manage_with(0, method, arguments);
    }

    /// Canister 0 calls it with cycles.
    pub fn manage_with(
        &mut self,
        cycles: u64,
        method: &'static str,
        arguments: impl ArgumentEncoder,
    ) {
        self.call(0, Principal::management_canister(), method, &candid(arguments), cycles);
    }

    /// Canister 1, which controls nothing, calls it.
    pub fn stranger(&mut self, method: &'static str, arguments: impl ArgumentEncoder) {
        self.call(1, Principal::management_canister(), method, &candid(arguments), 0);
    }

    /// Canister 0 calls the subject.
    pub fn subject(&mut self, method: &'static str) {
        self.call(0, subject(), method, &[], 0);
    }

    /// A canister calls another, and returns the answer.
    pub fn call(
        &mut self,
        from: usize,
        callee: Principal,
        method: &'static str,
        argument: &[u8],
        cycles: u64,
    ) {
        let mut script = Script::default();
        script.send(&send(callee, method, Script::bytes(argument), Some(cycles)));
        self.steps.push(step(Kind::Update, from, "run", script.into_parts()));
    }

    /// Canister 0 makes several calls, of which one is answered.
    pub fn calls(&mut self, answered: usize, calls: &[Send]) {
        let mut script = Script::default();
        for (number, call) in calls.iter().enumerate() {
            let mut call = call.clone();
            if number != answered {
                call.on_reply = Script::default();
                call.on_reject = Script::default();
            }
            script.send(&call);
        }
        self.steps.push(step(Kind::Update, 0, "run", script.into_parts()));
        self.rounds(3);
    }

    /// A user calls the management canister about canister 0 or 1.
    pub fn user(&mut self, about: usize, method: &str, arguments: impl ArgumentEncoder) {
        self.management(about, method, vec![Part::Bytes(candid(arguments))]);
    }

    /// The same with an argument in parts.
    pub fn management(&mut self, about: usize, method: &str, argument: Vec<Part>) {
        self.steps.push(step(Kind::Management, about, method, argument));
    }

    /// Canister 0 or 1 runs a script.
    pub fn run(&mut self, to: usize, script: Script) {
        self.steps.push(step(Kind::Update, to, "run", script.into_parts()));
    }

    /// A user calls a method.
    pub fn method(&mut self, kind: Kind, to: usize, method: &str, argument: &[u8]) {
        self.steps.push(step(kind, to, method, vec![Part::Bytes(argument.to_vec())]));
    }

    /// The HTTPS outcalls of the last step get these answers.
    pub fn answered_by(&mut self, outcalls: Vec<Outcall>) {
        if let Some(Step::Call(call)) = self.steps.last_mut() {
            call.outcalls = outcalls;
        }
    }

    /// Rounds without calls.
    pub fn rounds(&mut self, tick: u32) {
        self.rounds_after(tick, 0);
    }

    /// Rounds, each after so many seconds.
    pub fn rounds_after(&mut self, tick: u32, seconds: u64) {
        let advance_ns = seconds * 1_000_000_000;
        self.steps.push(Step::Tick(Ticks { advance_ns, balances_fell: Vec::new(), tick }));
    }

    /// The case runs beside a subnet with threshold keys.
    pub fn with_keys(mut self) -> Self {
        self.keys = true;
        self
    }

    /// The case, of two canisters that run scripts.
    pub fn named(self, name: &str) -> SubnetCase {
        self.of(name, vec![without_heartbeat(); 2])
    }

    /// The case, of these canisters.
    pub fn of(self, name: &str, canisters: Vec<String>) -> SubnetCase {
        let Self { steps, keys } = self;
        let name = name.to_owned();
        SubnetCase { name, canisters, keys, ids: Vec::new(), balances: Vec::new(), steps }
    }
}

/// The canister that runs scripts, without a heartbeat, which would cost a fee in every round.
pub fn without_heartbeat() -> String {
    SCRIPTED.replace("canister_heartbeat", "no heartbeat")
}

/// A call whose answer is the answer of the caller.
pub fn send(
    callee: Principal,
    method: &'static str,
    argument: Script,
    cycles: Option<u64>,
) -> Send {
    let mut on_reply = Script::default();
    for op in [Op::Argument, Op::Refunded, Op::Reply] {
        on_reply.op(op);
    }
    let mut on_reject = Script::default();
    for op in [Op::RejectCode, Op::RejectMessage, Op::Refunded, Op::Reply] {
        on_reject.op(op);
    }
    let callee = Script::bytes(callee.as_slice());
    Send { callee, method, argument, on_reply, on_reject, cycles, ..Send::default() }
}

/// A call of a user.
pub fn step(kind: Kind, to: usize, method: &str, arg: Vec<Part>) -> Step {
    let method = method.to_owned();
    let (balances_fell, outcalls) = (Vec::new(), Vec::new());
    Step::Call(SubnetCall { arg, balances_fell, expect: None, kind, method, outcalls, to })
}
