//! The canister of the sequences and its model: effects, reply and cost of a message, except its
//! instructions. The argument of each message is a script.
//!
//! ```text
//!   argument   end: u8 │ kind: u8, a: u64, b: u64 │ kind, a, b │ …
//!   heap       0 the current action │ 32 a number for the reply │ 8192 text of the module
//! ```

use std::collections::BTreeSet;
use std::sync::OnceLock;

use stablebench_replica::{Bytes, ErrorCode, Module, OsPages, StableCalls};

use super::content::{Memory, PAGE, WASM_PAGE, replica};

/// Address of the text of the module.
pub const TEXT_AT: u64 = 8_192;
/// Address of a number that is appended to the reply.
pub const NUMBER_AT: u64 = 32;
/// Address of an action's `b`.
pub const B_AT: u64 = 9;
/// The value of the global for which `canister_pre_upgrade` traps.
pub const POISON: u64 = 0xdead;

/// The modules. They differ in their text and in the initial value of a global, and the second one has
/// a start function.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    First,
    Second,
}

impl Version {
    pub fn text(self) -> &'static [u8; 7] {
        match self {
            Self::First => b"machine",
            Self::Second => b"machina",
        }
    }

    pub fn seed(self) -> u64 {
        match self {
            Self::First => 7,
            Self::Second => 70,
        }
    }

    /// The number that the start function adds to the global.
    pub fn start(self) -> Option<u64> {
        match self {
            Self::First => None,
            Self::Second => Some(1_000),
        }
    }

    pub fn module(self) -> &'static Module {
        static MODULES: OnceLock<[Module; 2]> = OnceLock::new();
        let modules = MODULES.get_or_init(|| {
            [Self::First, Self::Second].map(|version| {
                let wasm = wat::parse_str(version.wat()).expect("a module");
                replica().compile(&wasm).expect("a good module")
            })
        });
        &modules[self as usize]
    }

    fn wat(self) -> String {
        let text = String::from_utf8_lossy(self.text());
        let start = self.start().map_or_else(String::new, |added| {
            format!(
                "(func $start (global.set $kept (i64.add (global.get $kept) (i64.const {added}))))
                (start $start)"
            )
        });
        MACHINE
            .replace("TEXT", &text)
            .replace("SEED", &self.seed().to_string())
            .replace("START", &start)
            .replace("POISON", &POISON.to_string())
            .replace("DEAR", &"(drop (f64.min (f64.const 0) (f64.const 0)))".repeat(1_000))
    }
}

macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$each:meta])* $variant:ident),* $(,)? }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum $name { $($(#[$each])* $variant),* }

        impl $name {
            pub const ALL: &[Self] = &[$(Self::$variant),*];
        }
    };
}

numbered! {
    /// Kinds of actions, in the order of the canister's branches.
    Kind {
        /// `heap[a] = b`, eight bytes.
        Store,
        /// Sets the globals to `b`.
        Keep,
        /// `stable[a] = b`, eight bytes.
        StableWrite,
        /// Grows the heap by `a` pages and replies with the result.
        Grow,
        StableGrow,
        /// Certifies `a` bytes at the address of `b`.
        Certify,
        /// Replies with the eight bytes at `a`.
        Load,
        StableRead,
        SayKept,
        SayFloat,
        SaySize,
        SayStableSize,
        SayVersion,
        SayTime,
        /// Fills the heap from `a` with the low byte of `b`; the next two bytes are the size.
        Fill,
        /// Prints the eight bytes of `b`.
        Print,
        /// Copies from the start of the heap to stable memory at `a`; the low 16 bits of `b` are the
        /// size.
        StableCopy,
        /// Sets the timer to `b` and replies with its old value.
        Timer,
        /// Burns cycles, given by the low three bytes of `b`, and replies with the burned amount.
        Burn,
    }
}

numbered! {
    /// Ends of a message after its actions, in the order of the canister's branches.
    End {
        Reply,
        Silence,
        Trap,
        ReplyThenTrap,
        Reject,
        OutOfInstructions,
        CallTrap,
        ReplyTwice,
        Recursion,
    }
}

#[derive(Clone, Copy, Debug)]
pub struct Action {
    pub kind: Kind,
    pub a: u64,
    pub b: u64,
}

/// The script of a message.
#[derive(Clone, Debug)]
pub struct Script {
    pub end: End,
    pub actions: Vec<Action>,
}

impl Script {
    pub fn argument(&self) -> Vec<u8> {
        let mut bytes = vec![self.end as u8];
        for action in &self.actions {
            bytes.extend(action.bytes());
        }
        bytes
    }
}

impl Action {
    /// The encoding in the argument, and at address 0 of the heap.
    pub fn bytes(&self) -> Vec<u8> {
        [&[self.kind as u8][..], &self.a.to_le_bytes(), &self.b.to_le_bytes()].concat()
    }
}

const MACHINE: &str = r#"(module
    (import "ic0" "canister_version" (func $version (result i64)))
    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
    (import "ic0" "cycles_burn128" (func $burn (param i64 i64 i32)))
    (import "ic0" "debug_print" (func $print (param i32 i32)))
    (import "ic0" "global_timer_set" (func $timer (param i64) (result i64)))
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $argument_size (result i32)))
    (import "ic0" "msg_reject" (func $reject (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "stable64_grow" (func $stable_grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $stable_read (param i64 i64 i64)))
    (import "ic0" "stable64_size" (func $stable_size (result i64)))
    (import "ic0" "stable64_write" (func $stable_write (param i64 i64 i64)))
    (import "ic0" "time" (func $time (result i64)))
    (import "ic0" "trap" (func $trap (param i32 i32)))
    (memory 2)
    (data (i32.const 8192) "TEXT")
    (global $kept (mut i64) (i64.const SEED))
    (global $float (mut f64) (f64.const 0.5))
    START

    (func $say (param i64)
        (i64.store (i32.const 32) (local.get 0))
        (call $append (i32.const 32) (i32.const 8)))
    (func $recur (call $recur))

    (func $one (local $a i64) (local $b i64)
        (local.set $a (i64.load (i32.const 1)))
        (local.set $b (i64.load (i32.const 9)))
        (block $18 (block $17 (block $16 (block $15 (block $14 (block $13 (block $12 (block $11
        (block $10 (block $9 (block $8 (block $7 (block $6 (block $5 (block $4 (block $3 (block $2
        (block $1 (block $0
            (br_table $0 $1 $2 $3 $4 $5 $6 $7 $8 $9 $10 $11 $12 $13 $14 $15 $16 $17 $18
                (i32.load8_u (i32.const 0))))
        (i64.store (i32.wrap_i64 (local.get $a)) (local.get $b)) (return))
        (global.set $kept (local.get $b))
            (global.set $float (f64.reinterpret_i64 (local.get $b))) (return))
        (call $stable_write (local.get $a) (i64.const 9) (i64.const 8)) (return))
        (call $say (i64.extend_i32_s (memory.grow (i32.wrap_i64 (local.get $a))))) (return))
        (call $say (call $stable_grow (local.get $a))) (return))
        (call $certify (i32.const 9) (i32.wrap_i64 (local.get $a))) (return))
        (call $say (i64.load (i32.wrap_i64 (local.get $a)))) (return))
        (call $stable_read (i64.const 32) (local.get $a) (i64.const 8))
            (call $say (i64.load (i32.const 32))) (return))
        (call $say (global.get $kept)) (return))
        (call $say (i64.reinterpret_f64 (global.get $float))) (return))
        (call $say (i64.extend_i32_u (memory.size))) (return))
        (call $say (call $stable_size)) (return))
        (call $say (call $version)) (return))
        (call $say (call $time)) (return))
        (memory.fill (i32.wrap_i64 (local.get $a)) (i32.wrap_i64 (local.get $b))
            (i32.wrap_i64 (i64.and (i64.shr_u (local.get $b) (i64.const 8)) (i64.const 0xffff))))
            (return))
        (call $print (i32.const 9) (i32.const 8)) (return))
        (call $stable_write (local.get $a) (i64.const 0)
            (i64.and (local.get $b) (i64.const 0xffff))) (return))
        (call $say (call $timer (local.get $b))) (return))
        (call $burn (i64.const 0) (i64.and (local.get $b) (i64.const 0xffffff)) (i32.const 32))
            (call $say (i64.load (i32.const 32))))

    (func $act (result i32) (local $at i32) (local $size i32)
        (local.set $size (call $argument_size))
        (local.set $at (i32.const 1))
        (block $done (loop $next
            (br_if $done (i32.gt_u (i32.add (local.get $at) (i32.const 17)) (local.get $size)))
            (call $argument (i32.const 0) (local.get $at) (i32.const 17))
            (call $one)
            (local.set $at (i32.add (local.get $at) (i32.const 17)))
            (br $next)))
        (call $argument (i32.const 0) (i32.const 0) (i32.const 1))
        (i32.load8_u (i32.const 0)))

    (func $message
        (block $8 (block $7 (block $6 (block $5 (block $4 (block $3 (block $2 (block $1 (block $0
            (br_table $0 $1 $2 $3 $4 $5 $6 $7 $8 (call $act)))
        (call $reply) (return))
        (return))
        (unreachable))
        (call $reply) (unreachable))
        (call $reject (i32.const 8192) (i32.const 7)) (return))
        (loop $again DEAR (br $again)) (return))
        (call $trap (i32.const 8192) (i32.const 7)) (return))
        (call $reply) (call $reply) (return))
        (call $recur))
    (export "canister_update act" (func $message))
    (export "canister_query look" (func $message))

    ;; Where nobody is answered, replying is left out.
    (func $hook
        (block $8 (block $6 (block $5 (block $2 (block $0
            (br_table $0 $0 $2 $2 $0 $5 $6 $0 $8 (call $act)))
        (return))
        (unreachable))
        (loop $again DEAR (br $again)) (return))
        (call $trap (i32.const 8192) (i32.const 7)) (return))
        (call $recur))
    (export "canister_init" (func $hook))
    (export "canister_post_upgrade" (func $hook))

    (func (export "canister_pre_upgrade")
        (if (i64.eq (global.get $kept) (i64.const POISON)) (then (unreachable)))
        (if (i64.ne (call $stable_size) (i64.const 0)) (then
            (i64.store (i32.const 32) (global.get $kept))
            (call $stable_write (i64.const 0) (i64.const 32) (i64.const 8))))))"#;

const MAX_HEAP: u64 = 65_536;
const HEAP_LIMIT: u64 = 3 << 30;
const MAX_STABLE: u64 = 500 << 14;

/// The mode in which a message is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mode {
    Update,
    ReplicatedQuery,
    Query,
    /// `canister_init` and `canister_post_upgrade`.
    Hook,
}

/// The state of the canister.
#[derive(Clone, Debug, PartialEq)]
pub struct State {
    pub heap: Memory,
    pub stable: Memory,
    pub kept: u64,
    pub float: u64,
    pub certified: Vec<u8>,
    pub timer: u64,
}

impl State {
    /// The state before the first function of a module runs.
    fn of(version: Version, stable: Memory, certified: Vec<u8>) -> Self {
        let mut heap = Memory { size: 2, ..Memory::default() };
        heap.write(TEXT_AT, version.text());
        let kept = version.seed() + version.start().unwrap_or(0);
        Self { heap, stable, kept, float: 0.5_f64.to_bits(), certified, timer: 0 }
    }
}

/// The canister's data that a message can read.
#[derive(Clone, Copy, Debug)]
pub struct About {
    pub mode: Mode,
    pub version: u64,
    pub time: u64,
}

/// Effects of a message other than state changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Done {
    pub reply: Vec<u8>,
    pub printed: Vec<String>,
    pub burned: u128,
    pub stable_calls: StableCalls,
    accessed: BTreeSet<u64>,
    written: BTreeSet<u64>,
}

impl Done {
    pub fn accessed(&self) -> OsPages {
        OsPages(self.accessed.len() as u64)
    }

    pub fn written(&self) -> OsPages {
        OsPages(self.written.len() as u64)
    }
}

/// The end of a message, and whether its changes are committed.
#[derive(Clone, Debug, PartialEq)]
pub enum Ended {
    Replied,
    Silent,
    Rejected(String),
    Failed(ErrorCode),
}

impl Ended {
    pub fn well(&self) -> bool {
        !matches!(self, Self::Failed(_))
    }
}

/// Executes a message on `state`, which is changed even if the message fails.
pub fn execute(state: &mut State, about: About, script: &Script) -> (Ended, Done) {
    let mut running = Running { state, about, done: Done::default() };
    for action in &script.actions {
        running.state.heap.write(0, &action.bytes());
        if let Err(code) = running.act(action) {
            return (Ended::Failed(code), running.done);
        }
    }
    running.state.heap.write(0, &[script.end as u8]);
    let ended = match (script.end, about.mode) {
        (End::Trap | End::ReplyThenTrap | End::Recursion, _) => {
            Ended::Failed(ErrorCode::CanisterTrapped)
        }
        (End::OutOfInstructions, _) => Ended::Failed(ErrorCode::CanisterInstructionLimitExceeded),
        (End::CallTrap, _) => Ended::Failed(ErrorCode::CanisterCalledTrap),
        (_, Mode::Hook) | (End::Silence, _) => Ended::Silent,
        (End::Reply, _) => Ended::Replied,
        (End::Reject, _) => {
            let text = running.state.heap.read(TEXT_AT, 7);
            match String::from_utf8(text) {
                Ok(text) => Ended::Rejected(text),
                Err(_) => Ended::Failed(ErrorCode::CanisterContractViolation),
            }
        }
        (End::ReplyTwice, _) => Ended::Failed(ErrorCode::CanisterContractViolation),
    };
    (ended, running.done)
}

struct Running<'s> {
    state: &'s mut State,
    about: About,
    done: Done,
}

type Step = Result<(), ErrorCode>;

impl Running<'_> {
    fn act(&mut self, action: &Action) -> Step {
        let &Action { kind, a, b } = action;
        let low = a & 0xffff_ffff;
        let mode = self.about.mode;
        match kind {
            Kind::Store => {
                self.in_heap(low, 8)?;
                self.state.heap.write(low, &b.to_le_bytes());
            }
            Kind::Keep => (self.state.kept, self.state.float) = (b, b),
            Kind::StableWrite => self.stable_write(a, B_AT, 8)?,
            Kind::Grow => {
                let before = self.state.heap.grow(low, MAX_HEAP);
                let limited = matches!(mode, Mode::Update | Mode::Hook);
                if limited && self.state.heap.size * WASM_PAGE > HEAP_LIMIT {
                    return Err(ErrorCode::CanisterWasmMemoryLimitExceeded);
                }
                self.say(before)?;
            }
            Kind::StableGrow => {
                let before = self.state.stable.grow(a, MAX_STABLE);
                self.say(before)?;
            }
            Kind::Certify => {
                allowed(matches!(mode, Mode::Update | Mode::Hook) && low <= 32)?;
                self.state.certified = self.state.heap.read(B_AT, low);
            }
            Kind::Load => {
                self.in_heap(low, 8)?;
                self.say(self.state.heap.number(low))?;
            }
            Kind::StableRead => {
                self.stable_read(a, NUMBER_AT, 8)?;
                self.say(self.state.heap.number(NUMBER_AT))?;
            }
            Kind::SayKept => self.say(self.state.kept)?,
            Kind::SayFloat => self.say(self.state.float)?,
            Kind::SaySize => self.say(self.state.heap.size)?,
            Kind::SayStableSize => self.say(self.state.stable.size)?,
            Kind::SayVersion => self.say(self.about.version)?,
            Kind::SayTime => self.say(self.about.time)?,
            Kind::Fill => {
                let length = b >> 8 & 0xffff;
                self.in_heap(low, length)?;
                self.state.heap.write(low, &vec![b as u8; length as usize]);
            }
            Kind::Print => {
                let text = self.state.heap.read(B_AT, 8);
                self.done.printed.push(String::from_utf8_lossy(&text).into_owned());
            }
            Kind::StableCopy => self.stable_write(a, 0, b & 0xffff)?,
            Kind::Timer => {
                allowed(matches!(mode, Mode::Update | Mode::Hook))?;
                let before = std::mem::replace(&mut self.state.timer, b);
                self.say(before)?;
            }
            Kind::Burn => {
                allowed(mode != Mode::Query)?;
                let burned = b & 0xff_ffff;
                self.done.burned += u128::from(burned);
                self.state.heap.write(NUMBER_AT, &u128::from(burned).to_le_bytes());
                self.say(burned)?;
            }
        }
        Ok(())
    }

    fn say(&mut self, number: u64) -> Step {
        self.state.heap.write(NUMBER_AT, &number.to_le_bytes());
        allowed(self.about.mode != Mode::Hook)?;
        self.done.reply.extend(number.to_le_bytes());
        Ok(())
    }

    fn in_heap(&self, at: u64, length: u64) -> Step {
        trap_unless(self.state.heap.contains(at, length))
    }

    fn stable_read(&mut self, at: u64, to: u64, length: u64) -> Step {
        self.done.stable_calls.reads += 1;
        trap_unless(self.state.stable.contains(at, length))?;
        self.done.accessed.extend(pages(at, length));
        self.state.heap.write(to, &self.state.stable.read(at, length));
        self.done.stable_calls.bytes_read += Bytes(length);
        Ok(())
    }

    fn stable_write(&mut self, at: u64, from: u64, length: u64) -> Step {
        self.done.stable_calls.writes += 1;
        if length == 0 {
            return Ok(());
        }
        trap_unless(self.state.stable.contains(at, length))?;
        self.done.accessed.extend(pages(at, length));
        self.done.written.extend(pages(at, length));
        self.state.stable.write(at, &self.state.heap.read(from, length));
        self.done.stable_calls.bytes_written += Bytes(length);
        Ok(())
    }
}

fn pages(at: u64, length: u64) -> impl Iterator<Item = u64> {
    at / PAGE as u64..(at + length).div_ceil(PAGE as u64)
}

fn allowed(condition: bool) -> Step {
    if condition { Ok(()) } else { Err(ErrorCode::CanisterContractViolation) }
}

fn trap_unless(condition: bool) -> Step {
    if condition { Ok(()) } else { Err(ErrorCode::CanisterTrapped) }
}

/// A canister: its module, state, version and time.
#[derive(Clone, Debug)]
pub struct Model {
    pub module: Version,
    pub state: State,
    pub version: u64,
    pub time: u64,
    pub balance: u128,
}

impl Model {
    pub fn about(&self, mode: Mode) -> About {
        About { mode, version: self.version, time: self.time }
    }

    /// The state and the effects of installing `module`, if it succeeds.
    pub fn install(&self, module: Version, script: &Script) -> Option<(State, Done)> {
        self.code(State::of(module, Memory::default(), Vec::new()), script)
    }

    /// The state and the effects of an upgrade, which are those of both modules.
    pub fn upgrade(&self, module: Version, script: &Script) -> Option<(State, Done)> {
        if self.state.kept == POISON {
            return None;
        }
        let mut state = self.state.clone();
        let about = self.about(Mode::Hook);
        let mut old = Running { state: &mut state, about, done: Done::default() };
        if old.state.stable.size > 0 {
            old.state.heap.write(NUMBER_AT, &old.state.kept.to_le_bytes());
            old.stable_write(0, NUMBER_AT, 8).ok()?;
        }
        self.code(State::of(module, state.stable, state.certified), script)
    }

    fn code(&self, mut state: State, script: &Script) -> Option<(State, Done)> {
        let about = About { version: self.version + 1, ..self.about(Mode::Hook) };
        let (ended, done) = execute(&mut state, about, script);
        ended.well().then_some((state, done))
    }
}
