//! A model of the machine: effects, reply and cost of a message, except its instructions.

use std::collections::BTreeSet;

use stablebench_replica::{Bytes, ErrorCode, OsPages, StableCalls};

use super::content::PAGE;
use super::machine::{Action, B_AT, End, Kind, NUMBER_AT, POISON, Script, TEXT_AT, Version};
use super::memory::{Memory, WASM_PAGE};

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
