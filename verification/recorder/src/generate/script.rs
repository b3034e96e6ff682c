//! Scripts for a canister that executes them, and cases that are built with them, step by step.
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
use stablebench_conformance::MessageKind;
use stablebench_conformance::subnet::{
    ArgumentPart, Outcall, SubnetCall, SubnetCase, SubnetStep, Ticks,
};

/// Bytes, some of which are ids of canisters.
#[derive(Clone, Debug, Default)]
pub struct Script {
    parts: Vec<ArgumentPart>,
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
        Self { parts: vec![ArgumentPart::Id(number)], length: ID }
    }

    /// Bytes as they are.
    pub fn bytes(bytes: &[u8]) -> Self {
        Self { parts: vec![ArgumentPart::Bytes(bytes.to_vec())], length: bytes.len() }
    }

    /// The parts of an argument.
    pub fn into_parts(self) -> Vec<ArgumentPart> {
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
            Some(ArgumentPart::Bytes(last)) => last.extend_from_slice(bytes),
            _ => self.parts.push(ArgumentPart::Bytes(bytes.to_vec())),
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
    steps: Vec<SubnetStep>,
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
        self.steps.push(step(MessageKind::Update, from, "run", script.into_parts()));
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
        self.steps.push(step(MessageKind::Update, 0, "run", script.into_parts()));
        self.rounds(3);
    }

    /// A user calls the management canister about canister 0 or 1.
    pub fn user(&mut self, about: usize, method: &str, arguments: impl ArgumentEncoder) {
        self.management(about, method, vec![ArgumentPart::Bytes(candid(arguments))]);
    }

    /// The same with an argument in parts.
    pub fn management(&mut self, about: usize, method: &str, argument: Vec<ArgumentPart>) {
        self.steps.push(step(MessageKind::Management, about, method, argument));
    }

    /// Canister 0 or 1 runs a script.
    pub fn run(&mut self, to: usize, script: Script) {
        self.steps.push(step(MessageKind::Update, to, "run", script.into_parts()));
    }

    /// A user calls a method.
    pub fn method(&mut self, kind: MessageKind, to: usize, method: &str, argument: &[u8]) {
        self.steps.push(step(kind, to, method, vec![ArgumentPart::Bytes(argument.to_vec())]));
    }

    /// The HTTPS outcalls of the last step get these answers.
    pub fn answered_by(&mut self, outcalls: Vec<Outcall>) {
        if let Some(SubnetStep::Call(call)) = self.steps.last_mut() {
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
        self.steps.push(SubnetStep::Tick(Ticks { advance_ns, balances_fell: Vec::new(), tick }));
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
        let (name, group) = (name.to_owned(), String::new());
        SubnetCase { name, group, canisters, keys, ids: Vec::new(), balances: Vec::new(), steps }
    }
}

/// The cases as those of a group.
pub fn of_group(group: &str, mut cases: Vec<SubnetCase>) -> Vec<SubnetCase> {
    for case in &mut cases {
        case.group = group.to_owned();
    }
    cases
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
pub fn step(kind: MessageKind, to: usize, method: &str, arg: Vec<ArgumentPart>) -> SubnetStep {
    let method = method.to_owned();
    let (balances_fell, outcalls) = (Vec::new(), Vec::new());
    SubnetStep::Call(SubnetCall { arg, balances_fell, expect: None, kind, method, outcalls, to })
}

/// The canister.
pub const SCRIPTED: &str = r#";; A canister that executes scripts: the argument of a method, and what it stores for callbacks,
;; heartbeats and timers. `script.rs` describes the operations and writes scripts.
(module
  (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
  (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
  (import "ic0" "msg_reply" (func $reply))
  (import "ic0" "msg_reject" (func $reject (param i32 i32)))
  (import "ic0" "msg_reject_code" (func $reject_code (result i32)))
  (import "ic0" "msg_reject_msg_size" (func $reject_size (result i32)))
  (import "ic0" "msg_reject_msg_copy" (func $reject_copy (param i32 i32 i32)))
  (import "ic0" "msg_arg_data_size" (func $arg_size (result i32)))
  (import "ic0" "msg_arg_data_copy" (func $arg_copy (param i32 i32 i32)))
  (import "ic0" "msg_caller_size" (func $caller_size (result i32)))
  (import "ic0" "msg_caller_copy" (func $caller_copy (param i32 i32 i32)))
  (import "ic0" "msg_cycles_available" (func $available64 (result i64)))
  (import "ic0" "msg_cycles_available128" (func $available (param i32)))
  (import "ic0" "msg_cycles_accept" (func $accept64 (param i64) (result i64)))
  (import "ic0" "msg_cycles_accept128" (func $accept (param i64 i64 i32)))
  (import "ic0" "msg_cycles_refunded" (func $refunded64 (result i64)))
  (import "ic0" "msg_cycles_refunded128" (func $refunded (param i32)))
  (import "ic0" "msg_deadline" (func $deadline (result i64)))
  (import "ic0" "call_new" (func $call_new (param i32 i32 i32 i32 i32 i32 i32 i32)))
  (import "ic0" "call_on_cleanup" (func $on_cleanup (param i32 i32)))
  (import "ic0" "call_data_append" (func $data_append (param i32 i32)))
  (import "ic0" "call_cycles_add" (func $cycles_add64 (param i64)))
  (import "ic0" "call_cycles_add128" (func $cycles_add (param i64 i64)))
  (import "ic0" "call_with_best_effort_response" (func $best_effort (param i32)))
  (import "ic0" "call_perform" (func $perform (result i32)))
  (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
  (import "ic0" "time" (func $time (result i64)))
  (import "ic0" "trap" (func $trap (param i32 i32)))
  (import "ic0" "canister_status" (func $status (result i32)))
  (import "ic0" "canister_version" (func $version (result i64)))
  (import "ic0" "in_replicated_execution" (func $replicated (result i32)))
  (import "ic0" "data_certificate_present" (func $certificate (result i32)))
  (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
  (import "ic0" "is_controller" (func $is_controller (param i32 i32) (result i32)))
  (import "ic0" "cycles_burn128" (func $burn (param i64 i64 i32)))
  (import "ic0" "cost_call" (func $cost_call (param i64 i64 i32)))
  (import "ic0" "stable64_grow" (func $stable_grow (param i64) (result i64)))
  (import "ic0" "stable64_write" (func $stable_write (param i64 i64 i64)))
  (memory 4)
  (table 2 funcref)
  (elem (i32.const 0) $callback)
  (global $free (mut i32) (i32.const 65536))  ;; scripts are stored from here on
  (global $count (mut i64) (i64.const 0))
  (global $heartbeat (mut i32) (i32.const 0))
  (global $on_timer (mut i32) (i32.const 0))

  (func $allocate (param $size i32) (result i32) (local $at i32)
    (local.set $at (global.get $free))
    (global.set $free (i32.add (global.get $free)
      (i32.and (i32.add (local.get $size) (i32.const 15)) (i32.const -16))))
    (loop $grow
      (if (i32.gt_u (global.get $free) (i32.mul (memory.size) (i32.const 65536)))
        (then (drop (memory.grow (i32.const 1))) (br $grow))))
    (local.get $at))
  (func $keep (param $at i32) (param $size i32) (result i32) (local $copy i32)
    (local.set $copy (call $allocate (i32.add (local.get $size) (i32.const 1))))
    (memory.copy (local.get $copy) (local.get $at) (local.get $size))
    (i32.store8 (i32.add (local.get $copy) (local.get $size)) (i32.const 0))
    (local.get $copy))
  (func $put (param $value i64)
    (i64.store (i32.const 0) (local.get $value))
    (call $append (i32.const 0) (i32.const 8)))
  (func $put16 (call $append (i32.const 0) (i32.const 16)))
  (func $length (param $at i32) (result i32) (i32.load16_u (local.get $at)))
  (func $after (param $at i32) (result i32)
    (i32.add (i32.add (local.get $at) (i32.const 2)) (call $length (local.get $at))))

  ;; flags: 1 cleanup, 2 cycles, 4 best effort, 8 no callbacks, 16 not performed, 32 64-bit cycles
  (func $send (param $p i32) (result i32) (local $flags i32) (local $callee i32) (local $method i32)
      (local $payload i32) (local $reply i32) (local $reject i32) (local $cleanup i32)
    (local.set $flags (i32.load8_u (local.get $p)))
    (local.set $callee (i32.add (local.get $p) (i32.const 1)))
    (local.set $method (call $after (local.get $callee)))
    (local.set $payload (call $after (local.get $method)))
    (local.set $reply (call $after (local.get $payload)))
    (local.set $reject (call $after (local.get $reply)))
    (local.set $cleanup (call $after (local.get $reject)))
    (local.set $p (call $after (local.get $cleanup)))
    (call $call_new
      (i32.add (local.get $callee) (i32.const 2)) (call $length (local.get $callee))
      (i32.add (local.get $method) (i32.const 2)) (call $length (local.get $method))
      (select (i32.const -1) (i32.const 0) (i32.and (local.get $flags) (i32.const 8)))
      (call $keep (i32.add (local.get $reply) (i32.const 2)) (call $length (local.get $reply)))
      (select (i32.const -1) (i32.const 0) (i32.and (local.get $flags) (i32.const 8)))
      (call $keep (i32.add (local.get $reject) (i32.const 2)) (call $length (local.get $reject))))
    (call $data_append (i32.add (local.get $payload) (i32.const 2)) (call $length (local.get $payload)))
    (if (i32.and (local.get $flags) (i32.const 1)) (then
      (call $on_cleanup (i32.const 0)
        (call $keep (i32.add (local.get $cleanup) (i32.const 2)) (call $length (local.get $cleanup))))))
    (if (i32.and (local.get $flags) (i32.const 2)) (then
      (if (i32.and (local.get $flags) (i32.const 32))
        (then (call $cycles_add64 (i64.load (local.get $p))))
        (else (call $cycles_add (i64.const 0) (i64.load (local.get $p)))))))
    (if (i32.and (local.get $flags) (i32.const 4)) (then
      (call $best_effort (i32.load (i32.add (local.get $p) (i32.const 8))))))
    (if (i32.eqz (i32.and (local.get $flags) (i32.const 16))) (then
      (if (local.tee $callee (call $perform)) (then (call $put (i64.extend_i32_u (local.get $callee)))))))
    (i32.add (local.get $p) (i32.const 12)))

  (func $run (param $p i32) (local $op i32) (local $size i32) (local $at i32)
    (block $end (loop $next
      (local.set $op (i32.load8_u (local.get $p)))
      (local.set $p (i32.add (local.get $p) (i32.const 1)))
      (block $version (block $status (block $burn (block $cost (block $certify (block $is_controller
      (block $certificate (block $replicated (block $store_timer (block $store_heartbeat (block $timer
      (block $call (block $stable (block $touch (block $spin (block $unreachable (block $trap (block $bump
      (block $count (block $deadline (block $reject_msg (block $reject_code (block $argument (block $caller
      (block $refunded64 (block $refunded (block $accept64 (block $accept (block $available64
      (block $available (block $time (block $counter1 (block $counter0 (block $reject (block $reply
      (block $data
        (br_table $end $data $reply $reject $counter0 $counter1 $time $available $available64 $accept
          $accept64 $refunded $refunded64 $caller $argument $reject_code $reject_msg $deadline $count
          $bump $trap $unreachable $spin $touch $stable $call $timer $store_heartbeat $store_timer
          $replicated $certificate $is_controller $certify $cost $burn $status $version (local.get $op)))
      ;; $data
      (call $append (i32.add (local.get $p) (i32.const 2)) (call $length (local.get $p)))
      (local.set $p (call $after (local.get $p))) (br $next))
      ;; $reply
      (call $reply) (br $next))
      ;; $reject
      (call $reject (i32.add (local.get $p) (i32.const 2)) (call $length (local.get $p)))
      (local.set $p (call $after (local.get $p))) (br $next))
      (call $put (call $counter (i32.const 0))) (br $next))
      (call $put (call $counter (i32.const 1))) (br $next))
      (call $put (call $time)) (br $next))
      (call $available (i32.const 0)) (call $put16) (br $next))
      (call $put (call $available64)) (br $next))
      ;; $accept
      (call $accept (i64.const 0) (i64.load (local.get $p)) (i32.const 0)) (call $put16)
      (local.set $p (i32.add (local.get $p) (i32.const 8))) (br $next))
      ;; $accept64
      (call $put (call $accept64 (i64.load (local.get $p))))
      (local.set $p (i32.add (local.get $p) (i32.const 8))) (br $next))
      (call $refunded (i32.const 0)) (call $put16) (br $next))
      (call $put (call $refunded64)) (br $next))
      ;; $caller
      (call $caller_copy (i32.const 0) (i32.const 0) (call $caller_size))
      (call $append (i32.const 0) (call $caller_size)) (br $next))
      ;; $argument
      (local.set $size (call $arg_size))
      (local.set $at (call $allocate (local.get $size)))
      (call $arg_copy (local.get $at) (i32.const 0) (local.get $size))
      (call $append (local.get $at) (local.get $size)) (br $next))
      (call $put (i64.extend_i32_u (call $reject_code))) (br $next))
      ;; $reject_msg
      (local.set $size (call $reject_size))
      (local.set $at (call $allocate (local.get $size)))
      (call $reject_copy (local.get $at) (i32.const 0) (local.get $size))
      (call $append (local.get $at) (local.get $size)) (br $next))
      (call $put (call $deadline)) (br $next))
      (call $put (global.get $count)) (br $next))
      ;; $bump
      (global.set $count (i64.add (global.get $count) (i64.const 1))) (br $next))
      ;; $trap
      (call $trap (i32.add (local.get $p) (i32.const 2)) (call $length (local.get $p))) (br $next))
      (unreachable))
      ;; $spin
      (local.set $size (i32.load (local.get $p)))
      (loop $again (br_if $again (local.tee $size (i32.sub (local.get $size) (i32.const 1)))))
      (local.set $p (i32.add (local.get $p) (i32.const 4))) (br $next))
      ;; $touch: writes the count to so many OS pages
      (local.set $size (i32.load16_u (local.get $p)))
      (local.set $at (call $allocate (i32.mul (local.get $size) (i32.const 4096))))
      (loop $again
        (i64.store (local.get $at) (i64.add (global.get $count) (i64.const 1)))
        (local.set $at (i32.add (local.get $at) (i32.const 4096)))
        (br_if $again (local.tee $size (i32.sub (local.get $size) (i32.const 1)))))
      (local.set $p (i32.add (local.get $p) (i32.const 2))) (br $next))
      ;; $stable: grows stable memory by a page and writes so many bytes there
      (call $stable_write (i64.mul (call $stable_grow (i64.const 1)) (i64.const 65536))
        (i64.const 0) (i64.load16_u (local.get $p)))
      (local.set $p (i32.add (local.get $p) (i32.const 2))) (br $next))
      (local.set $p (call $send (local.get $p))) (br $next))
      ;; $timer: so many nanoseconds from now, or off
      (call $put (call $timer (if (result i64) (i64.eqz (i64.load (local.get $p))) (then (i64.const 0))
        (else (i64.add (call $time) (i64.load (local.get $p)))))))
      (local.set $p (i32.add (local.get $p) (i32.const 8))) (br $next))
      ;; $store_heartbeat
      (global.set $heartbeat (call $keep (i32.add (local.get $p) (i32.const 2)) (call $length (local.get $p))))
      (local.set $p (call $after (local.get $p))) (br $next))
      ;; $store_timer
      (global.set $on_timer (call $keep (i32.add (local.get $p) (i32.const 2)) (call $length (local.get $p))))
      (local.set $p (call $after (local.get $p))) (br $next))
      (call $put (i64.extend_i32_u (call $replicated))) (br $next))
      (call $put (i64.extend_i32_u (call $certificate))) (br $next))
      ;; $is_controller: of the caller
      (call $caller_copy (i32.const 0) (i32.const 0) (call $caller_size))
      (call $put (i64.extend_i32_u (call $is_controller (i32.const 0) (call $caller_size)))) (br $next))
      ;; $certify: so many bytes
      (call $certify (i32.const 0) (i32.load16_u (local.get $p)))
      (local.set $p (i32.add (local.get $p) (i32.const 2))) (br $next))
      (call $cost_call (i64.const 10) (i64.const 1000) (i32.const 0)) (call $put16) (br $next))
      ;; $burn
      (call $burn (i64.const 0) (i64.load (local.get $p)) (i32.const 0)) (call $put16)
      (local.set $p (i32.add (local.get $p) (i32.const 8))) (br $next))
      (call $put (i64.extend_i32_u (call $status))) (br $next))
      (call $put (call $version)) (br $next))))
  (func $callback (param $script i32) (call $run (local.get $script)))
  (func $method (local $size i32) (local $at i32)
    (local.set $size (call $arg_size))
    (local.set $at (call $allocate (i32.add (local.get $size) (i32.const 1))))
    (call $arg_copy (local.get $at) (i32.const 0) (local.get $size))
    (call $run (local.get $at)))
  (export "canister_update run" (func $method))
  (export "canister_query ask" (func $method))
  (export "canister_composite_query compose" (func $method))
  (func (export "canister_heartbeat")
    (if (global.get $heartbeat) (then (call $run (global.get $heartbeat)))))
  (func (export "canister_global_timer")
    (if (global.get $on_timer) (then (call $run (global.get $on_timer))))))
"#;
