//! Calls in any order, compared with models.
//!
//! ```text
//!   call_sequence   calls, forks, saved files, installs and upgrades of several canisters at once;
//!                   each canister and its model execute the same operations
//!   subnet_calls    calls between three canisters
//! ```

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock};

use arbitrary::{Result, Unstructured};
use stablebench_replica::subnet::Subnet;
use stablebench_replica::{
    Canister, ErrorCode, Execution, Instructions, Module, Principal, Settings,
};

use super::bounded::met;
use super::content::{CALLER, Content, Memory, Saved, changed, replica, same_pages};
use super::machine::{
    Action, Done, End, Ended, Kind, Mode, Model, POISON, Script, State, Version, execute,
};
use super::modules::same;

const CALL_SEQUENCE: &str = "call_sequence";

/// Time of the first message in nanoseconds, and time between messages.
const BEGINNING: u64 = 1_620_328_630_000_000_000;
const ROUND: u64 = 1;

/// A canister and its model.
pub struct Pair {
    canister: Canister,
    model: Model,
}

impl Pair {
    pub fn new() -> Self {
        let mut canister = replica().create_canister().unwrap();
        let script = Script { end: End::Reply, actions: Vec::new() };
        let module = Version::First;
        let balance = canister.balance().get();
        let installed = canister.install(module.module(), CALLER, &script.argument()).unwrap();
        assert_eq!(installed.outcome, Ok(vec![]));
        let empty = State {
            heap: Memory::default(),
            stable: Memory::default(),
            kept: 0,
            float: 0,
            certified: Vec::new(),
            timer: 0,
        };
        let mut model = Model { module, state: empty, version: 0, time: BEGINNING, balance };
        let (state, _) = model.install(module, &script).expect("nothing that fails");
        model.state = state;
        model.version += 1;
        model.time += ROUND;
        model.balance -= installed.cycles.get();
        let pair = Self { canister, model };
        pair.check();
        pair
    }

    pub fn fork(&self) -> Self {
        Self { canister: self.canister.fork(), model: self.model.clone() }
    }

    pub fn update(&mut self, script: &Script) {
        self.replicated(script, "act", Mode::Update);
    }

    pub fn replicated_query(&mut self, script: &Script) {
        self.replicated(script, "look", Mode::ReplicatedQuery);
    }

    fn replicated(&mut self, script: &Script, method: &str, mode: Mode) {
        let argument = script.argument();
        let mut fork = self.canister.fork();
        let execution = self.canister.update(CALLER, method, &argument).unwrap();
        same(&execution, &fork.update(CALLER, method, &argument).unwrap());

        let mut state = self.model.state.clone();
        let (ended, done) = execute(&mut state, self.model.about(mode), script);
        self.held(&execution, script, mode, &ended, &done, &state);
        let keeps = mode == Mode::Update;
        let pages = match keeps {
            true => changed(&self.model.state.heap, &state.heap).len() as u64,
            false => 0,
        };
        met(CALL_SEQUENCE, if ended.well() { "kept" } else { "undone" });
        if ended.well() {
            // A failed message is charged for changed pages too. Their number is not modelled if
            // the message ran out of stack or of instructions.
            assert_eq!(execution.memory.heap_changed.get(), pages);
            assert_eq!(execution.charge.get(), execution.instructions.get() + 1_000 * pages);
            self.model.version += 1;
            if keeps {
                self.model.state = state;
            }
        }
        let burned = if ended.well() { done.burned } else { 0 };
        let expected = self.price(method, &argument, execution.charge) + burned;
        assert_eq!(execution.cycles.get(), expected);
        self.model.balance -= expected;
        self.model.time += ROUND;
        self.check();
    }

    pub fn query(&mut self, script: &Script) {
        let argument = script.argument();
        let execution = self.canister.query(CALLER, "look", &argument).unwrap();
        same(&execution, &self.canister.fork().query(CALLER, "look", &argument).unwrap());
        same(&execution, &self.canister.query_all(CALLER, "look", &argument).unwrap());
        let mut state = self.model.state.clone();
        let (ended, done) = execute(&mut state, self.model.about(Mode::Query), script);
        self.held(&execution, script, Mode::Query, &ended, &done, &state);
        assert_eq!(execution.cycles.get(), 0);
        self.check();
    }

    pub fn missing_method(&mut self) {
        let execution = self.canister.update(CALLER, "missing", &[]).unwrap();
        let code = execution.outcome.unwrap_err().code;
        assert_eq!(code, ErrorCode::CanisterMethodNotFound);
        let expected = self.price("missing", &[], Instructions(0));
        assert_eq!(execution.cycles.get(), expected);
        self.model.balance -= expected;
        self.model.time += ROUND;
    }

    /// Cost of an update without burned cycles.
    fn price(&self, method: &str, argument: &[u8], charge: Instructions) -> u128 {
        let head = |length: usize| match length {
            0..=23 => 0,
            24..=255 => 1,
            _ => 2,
        };
        let bytes = 121 + method.len() + argument.len() + head(method.len()) + head(argument.len());
        5_000_000 + 1_200_000 + 2_000 * bytes as u128 + u128::from(charge.get())
    }

    /// Compares an execution with the model.
    fn held(
        &self,
        execution: &Execution,
        script: &Script,
        mode: Mode,
        ended: &Ended,
        done: &Done,
        state: &State,
    ) {
        let expected = match ended {
            Ended::Replied => Ok(done.reply.as_slice()),
            Ended::Silent => Err((ErrorCode::CanisterDidNotReply, None)),
            Ended::Rejected(text) => Err((ErrorCode::CanisterRejectedMessage, Some(text.as_str()))),
            Ended::Failed(code) => Err((*code, None)),
        };
        match (&execution.outcome, expected) {
            (Ok(reply), Ok(expected)) => assert_eq!(reply, expected),
            (Err(reject), Err((code, text))) => {
                assert_eq!(reject.code, code, "{reject}");
                assert!(text.is_none_or(|text| text == reject.message), "{reject}");
            }
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
        assert_eq!(execution.printed, done.printed);
        assert_eq!(execution.stable_calls, done.stable_calls);
        assert_eq!(execution.memory.stable_written, done.written());
        assert_eq!(execution.memory.stable_accessed, done.accessed());
        let sizes = (execution.memory.heap.get(), execution.memory.stable.get());
        // A heap that exceeded the canister's limit has grown nevertheless.
        assert_eq!(sizes, (state.heap.size, state.stable.size));
        self.priced_as_ever(execution, script, mode, ended);
    }

    /// Checks that the cost of a message depends only on its script, the sizes of the memories and its
    /// end, and not on other state or earlier messages.
    fn priced_as_ever(&self, execution: &Execution, script: &Script, mode: Mode, ended: &Ended) {
        type Key = (Vec<u8>, Mode, bool, u64, u64);
        static SEEN: Mutex<BTreeMap<Key, Instructions>> = Mutex::new(BTreeMap::new());
        // The depth of recursion varies.
        if script.end == End::Recursion {
            return;
        }
        let (heap, stable) = (self.model.state.heap.size, self.model.state.stable.size);
        let key = (script.argument(), mode, ended.well(), heap, stable);
        let mut seen = SEEN.lock().unwrap();
        // Replies and logged texts are charged by length, which follows from the key.
        let first = *seen.entry(key).or_insert(execution.instructions);
        if seen.len() > 100_000 {
            seen.clear();
        }
        drop(seen);
        assert_eq!(execution.instructions, first);
    }

    pub fn install(&mut self, module: Version, script: &Script) {
        let result = self.model.install(module, script);
        let execution = self.canister.install(module.module(), CALLER, &script.argument()).unwrap();
        self.replaced(module, &execution, result);
    }

    pub fn upgrade(&mut self, module: Version, script: &Script) {
        let result = self.model.upgrade(module, script);
        let execution = self.canister.upgrade(module.module(), CALLER, &script.argument()).unwrap();
        self.replaced(module, &execution, result);
    }

    fn replaced(&mut self, module: Version, execution: &Execution, result: Option<(State, Done)>) {
        assert_eq!(execution.outcome.is_ok(), result.is_some(), "{:?}", execution.outcome);
        met(CALL_SEQUENCE, if result.is_some() { "installed" } else { "not installed" });
        if let Some((state, done)) = result {
            assert_eq!(execution.printed, done.printed);
            self.model.state = state;
            self.model.module = module;
            self.model.version += 1;
        }
        // The cost of an install is not modelled.
        self.model.balance -= execution.cycles.get();
        self.model.time += ROUND;
        self.check();
    }

    pub fn save_and_load(&mut self) {
        let before = Content::of(&self.canister);
        let saved = Saved::new(&self.canister);
        self.canister = replica().load(&saved.0).unwrap();
        assert_eq!(Content::of(&self.canister), before);
        // The file stays mapped after it is deleted.
        self.check();
    }

    /// Compares the state of the canister with the model.
    pub fn check(&self) {
        let Self { canister, model } = self;
        let state = &model.state;
        assert_eq!(canister.heap_size().get(), state.heap.size);
        assert_eq!(canister.stable_size().get(), state.stable.size);
        assert_eq!(canister.certified_data(), state.certified);
        assert_eq!(canister.balance().get(), model.balance);
        let hash = canister.module().map(Module::hash);
        assert_eq!(hash, Some(model.module.module().hash()));
        let content = Content::of(canister);
        assert_eq!((content.version, content.time), (model.version, model.time));
        same_pages("heap", &content.heap, &state.heap.pages);
        same_pages("stable memory", &content.stable, &state.stable.pages);
        let timer = content.header.get("timer").and_then(serde_json::Value::as_u64);
        assert_eq!(timer, Some(state.timer));
    }
}

/// Canisters that live at the same time.
const MAX_CANISTERS: usize = 4;
const STEPS: usize = 40;

/// Replays a sequence.
pub fn call_sequence(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut pairs = vec![Pair::new()];
    for _ in 0..STEPS {
        // The sequence ends when the bytes are too short for another step.
        if input.is_empty() || step(&mut input, &mut pairs).is_err() {
            break;
        }
    }
    for pair in &pairs {
        pair.check();
    }
}

fn step(input: &mut Unstructured<'_>, pairs: &mut Vec<Pair>) -> Result<()> {
    let at = input.choose_index(pairs.len())?;
    let pair = &mut pairs[at];
    match input.int_in_range(0..=15)? {
        0..=5 => pair.update(&script(input)?),
        6 => pair.query(&script(input)?),
        7 => pair.replicated_query(&script(input)?),
        8 => pair.missing_method(),
        9 | 10 => {
            let fork = pair.fork();
            if pairs.len() < MAX_CANISTERS {
                pairs.push(fork);
            } else {
                let other = input.choose_index(pairs.len())?;
                pairs[other] = fork;
            }
        }
        11 => {
            if pairs.len() > 1 {
                pairs.remove(at);
            }
        }
        12 => pair.save_and_load(),
        13 => pair.install(version(input)?, &hook(input)?),
        _ => pair.upgrade(version(input)?, &hook(input)?),
    }
    if input.ratio(1, 4)? {
        // Other canisters have not changed.
        input.choose(pairs)?.check();
    }
    Ok(())
}

fn version(input: &mut Unstructured<'_>) -> Result<Version> {
    Ok(if input.arbitrary()? { Version::First } else { Version::Second })
}

fn script(input: &mut Unstructured<'_>) -> Result<Script> {
    let end = if input.ratio(2, 3)? { End::Reply } else { *input.choose(End::ALL)? };
    let mut actions = Vec::new();
    for _ in 0..input.int_in_range(0..=6)? {
        actions.push(action(input)?);
    }
    Ok(Script { end, actions })
}

fn action(input: &mut Unstructured<'_>) -> Result<Action> {
    let kind = match input.int_in_range(0..=9)? {
        0 => Kind::Grow,
        1 => Kind::StableGrow,
        _ => *input.choose(Kind::ALL)?,
    };
    let a = match kind {
        Kind::Grow | Kind::StableGrow => {
            if input.ratio(3, 4)? {
                input.int_in_range(0..=3)?
            } else {
                *input.choose(&[0xffff, 0x10000, 0xffff_ffff, u64::MAX])?
            }
        }
        Kind::Certify => *input.choose(&[0, 1, 7, 8, 20, 32, 33, 100_000])?,
        // Around the ends of OS pages, Wasm pages and memories.
        Kind::Store | Kind::Load | Kind::Fill if input.ratio(3, 4)? => {
            *input.choose(&[0, 0x1000, 0x1ffc, 0x2000, 0x3008, 0xfffc, 0x1_0000])?
        }
        Kind::Store | Kind::Load | Kind::Fill => {
            *input.choose(&[0x1_fff8, 0x1_fff9, 0x2_0000, 0x3_fff8, 0xffff_fff8, u64::MAX])?
        }
        _ if input.ratio(3, 4)? => *input.choose(&[0, 8, 0xff8, 0xffc, 0x1000, 0x8000])?,
        _ => *input.choose(&[
            0xfff8,
            0xfffc,
            0x1_0000,
            0x2_fff8,
            0x2_fff9,
            500 << 30,
            u64::MAX - 7,
            u64::MAX,
        ])?,
    };
    let b = match kind {
        Kind::Keep if input.ratio(1, 8)? => POISON,
        Kind::Keep | Kind::Store => *input.choose(&[0, 1, 7, 0x1234_5678_9abc_def0, u64::MAX])?,
        _ => input.arbitrary()?,
    };
    Ok(Action { kind, a, b })
}

/// The script of a hook, usually without actions that append to the reply.
fn hook(input: &mut Unstructured<'_>) -> Result<Script> {
    let mut script = script(input)?;
    if input.ratio(3, 4)? {
        script.actions.retain(|action| {
            matches!(
                action.kind,
                Kind::Store
                    | Kind::Keep
                    | Kind::StableWrite
                    | Kind::Certify
                    | Kind::Fill
                    | Kind::Print
                    | Kind::StableCopy
            )
        });
    }
    Ok(script)
}

const SUBNET_CALLS: &str = "subnet_calls";
const CANISTERS: usize = 3;
const USER_CALLS: usize = 8;
/// Deepest nesting of calls.
const DEPTH: u32 = 4;
/// What the cleanup adds to the count.
const CLEANED: u64 = 1_000_000;

/// Each message counts, makes at most one call, and then replies, rejects, traps, or leaves the
/// answer to a callback. With one call at a time, the messages of a user's call form one sequence,
/// so that the model is a plain recursion.
///
/// A message is encoded as `count, end, 0`, or with a call as `count, end, 1, to, cleanup` and three
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
    end: Ending,
}

/// The end of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Ending {
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
    for _ in 0..USER_CALLS {
        if input.is_empty() {
            break;
        }
        let Ok(to) = input.choose_index(CANISTERS) else { break };
        let Ok(message) = message(&mut input, DEPTH, false) else { break };
        let call = subnet.update(CALLER, id(to), "go", &message.encoded()).expect("an answer");
        let expected = model(&message, to, &mut counts, None);
        assert_eq!(call.response.is_ok(), expected == Some(true), "{message:?}");
        met(SUBNET_CALLS, if call.response.is_ok() { "replied" } else { "rejected" });
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
    let answers = matches!(message.end, Ending::Reply | Ending::Reject);
    if message.end == Ending::Trap || (answers && answered.is_some()) {
        met(SUBNET_CALLS, "failed");
        // What the message did is undone, its call included.
        return if answered.is_some() { answered } else { Some(false) };
    }
    counts[canister] += u64::from(message.count);
    let answered = match message.end {
        Ending::Reply => Some(true),
        Ending::Reject => Some(false),
        Ending::Silence | Ending::Trap => answered,
    };
    let Some(call) = &message.call else { return answered.or(Some(false)) };
    let replied = model(&call.message, call.to, counts, None) == Some(true);
    let callback = if replied { &call.on_reply } else { &call.on_reject };
    let answers = matches!(callback.end, Ending::Reply | Ending::Reject);
    if call.cleanup && (callback.end == Ending::Trap || (answers && answered.is_some())) {
        met(SUBNET_CALLS, "cleaned up");
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
        (0, _) => Ending::Trap,
        (1, _) => Ending::Reject,
        (2, true) | (2..=7, false) => Ending::Reply,
        _ => Ending::Silence,
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
