//! Scripts for the canister `scripted.wat`, and cases that are built with them, step by step.
//!
//! A script is a sequence of operations, each a byte and its operands, and ends with a zero byte or
//! with the argument. Numbers are little-endian; `text` is a length of two bytes and the bytes.
//!
//! Calls go through canister 0, which returns the reply or the reject, and the cycles that came back.
//! Some cases have a subject, which canister 0 creates first.

use candid::utils::ArgumentEncoder;
use candid::{Nat, Principal, encode_args};
use ic_management_canister_types::{
    CanisterIdRecord, CanisterSettings, CreateCanisterArgs, UpdateSettingsArgs,
};
use stablebench_conformance::Kind;
use stablebench_conformance::subnet::{Outcall, Part, Step, SubnetCall, SubnetCase, Ticks};

/// The canister.
pub const SCRIPTED: &str = include_str!("scripted.wat");

/// Bytes, some of which are ids of canisters.
#[derive(Clone, Debug, Default)]
pub struct Script {
    parts: Vec<Part>,
    length: usize,
}

/// The operations without operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Op {
    /// `msg_reply`
    Reply = 2,
    /// Appends `performance_counter(0)`, as 8 bytes.
    Counter0 = 4,
    /// Appends `performance_counter(1)`.
    Counter1 = 5,
    /// Appends `time`.
    Time = 6,
    /// Appends `msg_cycles_available128`.
    Available = 7,
    /// Appends `msg_cycles_available`.
    Available64 = 8,
    /// Appends `msg_cycles_refunded128`.
    Refunded = 11,
    /// Appends `msg_cycles_refunded`.
    Refunded64 = 12,
    /// Appends the caller.
    Caller = 13,
    /// Appends the argument, or the reply in a callback.
    Argument = 14,
    /// Appends `msg_reject_code`.
    RejectCode = 15,
    /// Appends the message of a reject.
    RejectMessage = 16,
    /// Appends `msg_deadline`.
    Deadline = 17,
    /// Appends the count.
    Count = 18,
    /// Adds 1 to the count.
    Bump = 19,
    /// `unreachable`
    Unreachable = 21,
    /// Appends `in_replicated_execution`.
    Replicated = 29,
    /// Appends `data_certificate_present`.
    Certificate = 30,
    /// Appends whether the caller is a controller.
    IsController = 31,
    /// Appends `cost_call` for 10 and 1 000 bytes.
    Cost = 33,
    /// Appends `canister_status`.
    Status = 35,
    /// Appends `canister_version`.
    Version = 36,
}

/// The operations with a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Number {
    /// `msg_cycles_accept128`; appends what was accepted.
    Accept(u64),
    /// `msg_cycles_accept`
    Accept64(u64),
    /// This number of iterations of a loop.
    Spin(u32),
    /// Writes to this number of new 4 KiB pages of the heap.
    Touch(u16),
    /// Grows stable memory by a page and writes this number of bytes there.
    Stable(u16),
    /// Sets the timer to this number of nanoseconds from now, or switches it off; appends its last value.
    Timer(u64),
    /// `certified_data_set` with this number of bytes.
    Certify(u16),
    /// `cycles_burn128`; appends what was burned.
    Burn(u64),
}

/// The operations with a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Text {
    /// Appends the text.
    Data = 1,
    /// `msg_reject`
    Reject = 3,
    /// `trap`
    Trap = 20,
}

/// A call to another canister.
#[derive(Clone, Debug, Default)]
pub struct Send {
    /// The canister.
    pub callee: Script,
    /// The method.
    pub method: &'static str,
    /// The argument.
    pub argument: Script,
    /// The script of the callback of a reply.
    pub on_reply: Script,
    /// The script of the callback of a reject.
    pub on_reject: Script,
    /// The script of the cleanup.
    pub on_cleanup: Option<Script>,
    /// Cycles to send.
    pub cycles: Option<u64>,
    /// True if `call_cycles_add` sends them.
    pub narrow: bool,
    /// Seconds until a best-effort call expires.
    pub timeout: Option<u32>,
    /// True if the callbacks have the index -1.
    pub one_way: bool,
    /// True if `call_perform` is not called.
    pub dropped: bool,
}

impl Script {
    /// The id of a canister, by its number.
    pub fn id(number: usize) -> Self {
        const ID: usize = 10;
        Self { parts: vec![Part::Id(number)], length: ID }
    }

    /// Bytes as they are.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self { parts: vec![Part::Bytes(bytes.to_vec())], length: bytes.len() }
    }

    /// The parts of an argument.
    pub fn into_parts(self) -> Vec<Part> {
        self.parts
    }

    /// Number of bytes.
    pub fn length(&self) -> usize {
        self.length
    }

    /// Adds an operation.
    pub fn op(&mut self, op: Op) {
        self.push(&[op as u8]);
    }

    /// Adds an operation with a number.
    pub fn number(&mut self, number: Number) {
        let (op, operand): (u8, Vec<u8>) = match number {
            Number::Accept(cycles) => (9, cycles.to_le_bytes().into()),
            Number::Accept64(cycles) => (10, cycles.to_le_bytes().into()),
            Number::Spin(iterations) => (22, iterations.max(1).to_le_bytes().into()),
            Number::Touch(pages) => (23, pages.max(1).to_le_bytes().into()),
            Number::Stable(bytes) => (24, bytes.to_le_bytes().into()),
            Number::Timer(nanoseconds) => (26, nanoseconds.to_le_bytes().into()),
            Number::Certify(bytes) => (32, bytes.to_le_bytes().into()),
            Number::Burn(cycles) => (34, cycles.to_le_bytes().into()),
        };
        self.push(&[op]);
        self.push(&operand);
    }

    /// Adds an operation with a text.
    pub fn text(&mut self, op: Text, text: &[u8]) {
        self.push(&[op as u8]);
        self.nested(&Self::bytes(text));
    }

    /// Stores the script that heartbeats run.
    pub fn on_heartbeat(&mut self, script: &Self) {
        self.push(&[27]);
        self.nested(script);
    }

    /// Stores the script that timers run.
    pub fn on_timer(&mut self, script: &Self) {
        self.push(&[28]);
        self.nested(script);
    }

    /// Adds a call.
    pub fn send(&mut self, send: &Send) {
        let flags = u8::from(send.on_cleanup.is_some())
            | u8::from(send.cycles.is_some()) << 1
            | u8::from(send.timeout.is_some()) << 2
            | u8::from(send.one_way) << 3
            | u8::from(send.dropped) << 4
            | u8::from(send.narrow) << 5;
        self.push(&[25, flags]);
        self.nested(&send.callee);
        self.nested(&Self::bytes(send.method.as_bytes()));
        for script in [&send.argument, &send.on_reply, &send.on_reject] {
            self.nested(script);
        }
        self.nested(&send.on_cleanup.clone().unwrap_or_default());
        self.push(&send.cycles.unwrap_or_default().to_le_bytes());
        self.push(&send.timeout.unwrap_or_default().to_le_bytes());
    }

    fn nested(&mut self, script: &Self) {
        self.push(&(script.length as u16).to_le_bytes());
        self.parts.extend(script.parts.iter().cloned());
        self.length += script.length;
    }

    fn push(&mut self, bytes: &[u8]) {
        self.length += bytes.len();
        match self.parts.last_mut() {
            Some(Part::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.parts.push(Part::Bytes(bytes.to_vec())),
        }
    }
}

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

/// A number in Candid, for an option.
pub fn nat(number: u64) -> Option<Nat> {
    Some(Nat::from(number))
}

/// Settings of which none is changed.
pub fn none() -> CanisterSettings {
    CanisterSettings::default()
}

/// The user changes settings of canister 1.
pub fn set(case: &mut Case, settings: CanisterSettings) {
    let args = UpdateSettingsArgs { canister_id: id(1), settings, sender_canister_version: None };
    case.user(1, "update_settings", (args,));
}

/// The user asks for the status of canister 1.
pub fn status(case: &mut Case) {
    case.user(1, "canister_status", (CanisterIdRecord { canister_id: id(1) },));
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
