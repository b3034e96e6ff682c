//! Calls between three canisters, compared with a model.
//!
//! Each message counts, makes at most one call, and then replies, rejects, traps, or leaves the
//! answer to a callback. With one call at a time, the messages of a user's call form one sequence, so
//! that the model is a plain recursion.

use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{Canister, Module, Principal, Settings};

use super::{CALLER, met, replica};

const NAME: &str = "subnet_calls";
const CANISTERS: usize = 3;
const STEPS: usize = 8;
/// Deepest nesting of calls.
const DEPTH: u32 = 4;
/// What the cleanup adds to the count.
const CLEANED: u64 = 1_000_000;

/// A message, encoded as `count, end, 0`, or with a call as `count, end, 1, to, cleanup` and three
/// encoded messages, each after its length in two bytes.
const MODULE: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reject" (func $reject (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_data_append" (func $data (param i32 i32)))
    (import "ic0" "call_on_cleanup" (func $cleanup (param i32 i32)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (memory 16) (table 2 funcref) (elem (i32.const 0) $message $clean)
    (data (i32.const 16) "\ff\ff\ff\ff\ff\e0\00\00\01\01go")
    (global $count (mut i64) (i64.const 0))
    (global $free (mut i32) (i32.const 64))
    (func $clean (param i32)
        (global.set $count (i64.add (global.get $count) (i64.const 1000000))))
    (func $next (param $part i32) (result i32)
        (i32.add (i32.add (local.get $part) (i32.const 2)) (i32.load16_u (local.get $part))))
    (func $call (param $at i32) (local $answer i32) (local $refusal i32)
        (local.set $answer (call $next (i32.add (local.get $at) (i32.const 2))))
        (local.set $refusal (call $next (local.get $answer)))
        (i32.store8 (i32.const 23) (i32.load8_u (local.get $at)))
        (call $new (i32.const 16) (i32.const 10) (i32.const 26) (i32.const 2)
            (i32.const 0) (i32.add (local.get $answer) (i32.const 2))
            (i32.const 0) (i32.add (local.get $refusal) (i32.const 2)))
        (call $data (i32.add (local.get $at) (i32.const 4))
            (i32.load16_u (i32.add (local.get $at) (i32.const 2))))
        (if (i32.load8_u (i32.add (local.get $at) (i32.const 1)))
            (then (call $cleanup (i32.const 1) (i32.const 0))))
        (if (call $perform) (then (unreachable))))
    (func $message (param $at i32) (local $end i32)
        (global.set $count
            (i64.add (global.get $count) (i64.load8_u (local.get $at))))
        (if (i32.load8_u (i32.add (local.get $at) (i32.const 2)))
            (then (call $call (i32.add (local.get $at) (i32.const 3)))))
        (local.set $end (i32.load8_u (i32.add (local.get $at) (i32.const 1))))
        (if (i32.eq (local.get $end) (i32.const 1)) (then (call $reply)))
        (if (i32.eq (local.get $end) (i32.const 2)) (then (call $reject (i32.const 26) (i32.const 2))))
        (if (i32.eq (local.get $end) (i32.const 3)) (then (unreachable))))
    (func (export "canister_update go") (local $at i32)
        (local.set $at (global.get $free))
        (call $copy (local.get $at) (i32.const 0) (call $size))
        (global.set $free (i32.add (local.get $at) (call $size)))
        (call $message (local.get $at)))
    (func (export "canister_query count")
        (i64.store (i32.const 0) (global.get $count))
        (call $append (i32.const 0) (i32.const 8)) (call $reply)))"#;

/// A message.
#[derive(Debug)]
struct Message {
    count: u8,
    call: Option<Box<Call>>,
    end: End,
}

/// The end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Silence,
    Reply,
    Reject,
    Trap,
}

#[derive(Debug)]
struct Call {
    to: usize,
    message: Message,
    on_reply: Message,
    on_reject: Message,
    cleanup: bool,
}

/// Replays calls of users.
pub fn subnet_calls(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut subnet = subnet();
    let mut counts = [0; CANISTERS];
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        let Ok(to) = input.choose_index(CANISTERS) else { break };
        let Ok(message) = message(&mut input, DEPTH, false) else { break };
        let call = subnet.update(CALLER, id(to), "go", &message.encoded()).expect("an answer");
        let expected = model(&message, to, &mut counts, None);
        assert_eq!(call.response.is_ok(), expected == Some(true), "{message:?}");
        met(NAME, if call.response.is_ok() { "replied" } else { "rejected" });
        for (number, count) in counts.iter().enumerate() {
            let answer = subnet.query(CALLER, id(number), "count", &[]).expect("an answer");
            assert_eq!(answer.response.expect("a count"), count.to_le_bytes(), "{message:?}");
        }
    }
}

/// Executes a message of a call, and all that follow from it. Returns the answer to the call, if it
/// has one: true for a reply.
fn model(
    message: &Message,
    canister: usize,
    counts: &mut [u64; CANISTERS],
    answered: Option<bool>,
) -> Option<bool> {
    // A second answer is an error.
    let answers = matches!(message.end, End::Reply | End::Reject);
    if message.end == End::Trap || (answers && answered.is_some()) {
        met(NAME, "failed");
        // What the message did is undone, its call included.
        return if answered.is_some() { answered } else { Some(false) };
    }
    counts[canister] += u64::from(message.count);
    let answered = match message.end {
        End::Reply => Some(true),
        End::Reject => Some(false),
        End::Silence | End::Trap => answered,
    };
    let Some(call) = &message.call else { return answered.or(Some(false)) };
    let replied = model(&call.message, call.to, counts, None) == Some(true);
    let callback = if replied { &call.on_reply } else { &call.on_reject };
    let answers = matches!(callback.end, End::Reply | End::Reject);
    if call.cleanup && (callback.end == End::Trap || (answers && answered.is_some())) {
        met(NAME, "cleaned up");
        counts[canister] += CLEANED;
    }
    model(callback, canister, counts, answered)
}

fn message(input: &mut Unstructured<'_>, depth: u32, callback: bool) -> Result<Message> {
    let calls = depth > 0 && input.ratio(if callback { 1 } else { 3 }, 4)?;
    let call = match calls {
        true => Some(Box::new(Call {
            to: input.choose_index(CANISTERS)?,
            message: message(input, depth - 1, false)?,
            on_reply: message(input, depth - 1, true)?,
            on_reject: message(input, depth - 1, true)?,
            cleanup: input.arbitrary()?,
        })),
        false => None,
    };
    let end = match (input.int_in_range(0..=9)?, calls) {
        (0, _) => End::Trap,
        (1, _) => End::Reject,
        (2, true) | (2..=7, false) => End::Reply,
        _ => End::Silence,
    };
    Ok(Message { count: input.int_in_range(0..=9)?, call, end })
}

impl Message {
    fn encoded(&self) -> Vec<u8> {
        let mut bytes = vec![self.count, self.end as u8, u8::from(self.call.is_some())];
        if let Some(call) = &self.call {
            bytes.extend([call.to as u8, u8::from(call.cleanup)]);
            for part in [&call.message, &call.on_reply, &call.on_reject] {
                let part = part.encoded();
                bytes.extend((part.len() as u16).to_le_bytes());
                bytes.extend(part);
            }
        }
        bytes
    }
}

fn id(number: usize) -> Principal {
    Principal::from_slice(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xe0, 0, number as u8, 1, 1])
}

fn subnet() -> Subnet {
    static MODULE_OF_ALL: OnceLock<Module> = OnceLock::new();
    let module = MODULE_OF_ALL.get_or_init(|| {
        let wasm = wat::parse_str(MODULE).expect("a module");
        replica().compile_for_subnet(&id(0), &wasm).expect("a valid module")
    });
    let mut subnet = Subnet::new(replica());
    for number in 0..CANISTERS {
        let usual = replica().create_canister().expect("memory");
        let settings = Settings { id: id(number), ..usual.settings().clone() };
        let mut canister = Canister::new(settings).expect("memory");
        canister.install(module, CALLER, &[]).expect("memory").outcome.expect("an install");
        subnet.add(canister).expect("a new id");
    }
    subnet
}
