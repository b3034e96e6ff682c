//! A model of one execution: the state after it, its answer, the pages that it touched, and its count.
//!
//! It follows `docs/metering.md` and calls nothing of the replica.

use std::collections::BTreeSet;
use std::ops::Range;

use stablebench_replica::{ErrorCode, Principal, Rules};

use super::module::{FUNCTION, ID, METHOD, Operators, Pages, id_at, method_at, names, system};
use super::program::{Access, Api, Body, Call, End, Op, Program, Value, Width};
use crate::fuzzing::content::{Memory, WASM_PAGE, changed};

const OS_PAGE: u64 = 4_096;
const LONGEST_PRINCIPAL: u64 = 29;
const LONGEST_CERTIFIED: u64 = 32;
/// Longest copy from stable memory that the rewritten module makes in words.
const LONGEST_IN_WORDS: u64 = 128;

/// The state of a canister.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct State {
    pub heap: Memory,
    pub stable: Memory,
    pub result: u64,
    pub turns: u64,
    pub certified: Vec<u8>,
    pub timer: u64,
}

impl State {
    /// The state before the first function of a program runs.
    pub fn initial(program: &Program, stable: Memory, certified: Vec<u8>) -> Self {
        let mut heap = Memory { size: program.pages, ..Memory::default() };
        heap.write(program.names_at, &names());
        Self { heap, stable, result: program.seed, certified, ..Self::default() }
    }
}

/// The role in which a function runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    Update,
    /// A query, also one that is called as an update.
    Query,
    CompositeQuery,
    /// `canister_init`, `canister_post_upgrade`.
    Init,
    PreUpgrade,
    Reply,
    Reject,
    Cleanup,
    Timer,
}

impl Mode {
    pub fn keeps_changes(self) -> bool {
        self != Self::Query
    }

    fn may_reply(self) -> bool {
        matches!(
            self,
            Self::Update | Self::Query | Self::CompositeQuery | Self::Reply | Self::Reject
        )
    }

    fn may_call(self) -> bool {
        matches!(self, Self::Update | Self::Reply | Self::Reject | Self::Timer)
    }

    fn has_argument(self) -> bool {
        !matches!(self, Self::PreUpgrade | Self::Reject | Self::Cleanup | Self::Timer)
    }

    fn may_certify(self) -> bool {
        !matches!(self, Self::Query | Self::CompositeQuery | Self::Cleanup)
    }

    fn may_set_timer(self) -> bool {
        !matches!(self, Self::Query | Self::CompositeQuery)
    }
}

/// The input of an execution.
#[derive(Clone, Copy, Debug)]
pub struct Message<'a> {
    pub mode: Mode,
    pub argument: &'a [u8],
    /// Largest number of instructions.
    pub limit: u64,
    /// True if an earlier message of the call answered it.
    pub answered: bool,
}

/// The end of an execution.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    Reply(Vec<u8>),
    Reject,
    /// It returned without an answer.
    Silence,
    Failed(ErrorCode),
}

impl Outcome {
    pub fn is_failure(&self) -> bool {
        matches!(self, Self::Failed(_))
    }
}

/// Pages of a memory.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Touched {
    pub touched: BTreeSet<u64>,
    pub written: BTreeSet<u64>,
}

impl Touched {
    /// Adds pages. Returns how many were touched, and written, for the first time.
    fn touch(&mut self, pages: Range<u64>, writes: bool) -> u64 {
        let mut new = 0;
        for page in pages {
            new += u64::from(self.touched.insert(page));
            new += u64::from(writes && self.written.insert(page));
        }
        new
    }
}

/// The result of an execution.
#[derive(Clone, Debug)]
pub struct Predicted {
    pub outcome: Outcome,
    pub instructions: u64,
    pub charge: u64,
    /// Charges for pages of the heap, and of stable memory.
    pub pages: [u64; 2],
    /// Wasm pages of the heap, and of stable memory, if they are charged.
    pub wasm_pages: Option<[Touched; 2]>,
    /// Pages of 4 KiB that changed.
    pub changed: Vec<u64>,
    /// Stable pages of 4 KiB.
    pub stable: Touched,
    /// Calls that read, bytes read, calls that wrote, bytes written.
    pub stable_calls: [u64; 4],
    /// Sizes of heap and stable memory in Wasm pages.
    pub sizes: [u64; 2],
    /// The calls made.
    pub calls: Vec<(Call, Vec<u8>)>,
    /// The count at each comparison with the limit, after loops that only use instructions.
    pub checks: Vec<u64>,
    /// True if it ended at a copy in words from a charged page, of which only a part fits into the
    /// heap.
    pub cut_off: bool,
}

/// Executes a function on `state`, which is changed even if the function fails.
pub fn execute(
    program: &Program,
    rules: Rules,
    state: &mut State,
    body: &Body,
    message: Message<'_>,
) -> Predicted {
    let before = state.heap.clone();
    let mut run = Run {
        program,
        prices: Pages::of(rules, program.width),
        operators: Operators(program.width),
        message,
        state,
        used: 0,
        reply: Vec::new(),
        heap: Touched::default(),
        stable: Touched::default(),
        stable_wasm: Touched::default(),
        stable_calls: [0; 4],
        calls: Vec::new(),
        checks: Vec::new(),
        cut_off: false,
    };
    let outcome = run.function(&body.ops, body.end);
    let outcome = outcome.unwrap_or_else(|Failure(code)| Outcome::Failed(code));
    let keeps = message.mode.keeps_changes();
    let changed = if keeps { changed(&before, &run.state.heap) } else { Vec::new() };
    let for_changed = run.prices.heap_changed * changed.len() as u64;
    let prices = run.prices;
    let charged = |pages: &Touched| match prices.touched {
        Some(price) => price * (pages.touched.len() + pages.written.len()) as u64,
        None => 0,
    };
    let stable = match prices.touched {
        Some(_) => charged(&run.stable_wasm),
        None => prices.stable_written * run.stable.written.len() as u64,
    };
    Predicted {
        outcome,
        instructions: run.used,
        charge: (run.used + for_changed).min(message.limit),
        pages: [charged(&run.heap) + for_changed, stable],
        changed,
        sizes: [run.state.heap.size, run.state.stable.size],
        wasm_pages: prices.touched.map(|_| [run.heap, run.stable_wasm]),
        stable: run.stable,
        stable_calls: run.stable_calls,
        calls: run.calls,
        checks: run.checks,
        cut_off: run.cut_off,
    }
}

#[derive(Debug)]
struct Failure(ErrorCode);

type Step = Result<(), Failure>;

fn trap_unless(condition: bool) -> Step {
    if condition { Ok(()) } else { Err(Failure(ErrorCode::CanisterTrapped)) }
}

fn contract_unless(condition: bool) -> Step {
    if condition { Ok(()) } else { Err(Failure(ErrorCode::CanisterContractViolation)) }
}

struct Run<'r> {
    program: &'r Program,
    prices: Pages,
    operators: Operators,
    message: Message<'r>,
    state: &'r mut State,
    used: u64,
    reply: Vec<u8>,
    /// Wasm pages of the heap.
    heap: Touched,
    /// Stable pages of 4 KiB.
    stable: Touched,
    /// Wasm pages of stable memory.
    stable_wasm: Touched,
    stable_calls: [u64; 4],
    calls: Vec<(Call, Vec<u8>)>,
    checks: Vec<u64>,
    cut_off: bool,
}

impl Run<'_> {
    /// Runs of operators are charged where they begin.
    fn function(&mut self, ops: &[Op], end: End) -> Result<Outcome, Failure> {
        self.used += FUNCTION;
        self.begin_run(ops, end);
        self.check()?;
        for (number, op) in ops.iter().enumerate() {
            self.execute(op)?;
            if ends_run(op) {
                self.begin_run(&ops[number + 1..], end);
            }
        }
        self.end(end)
    }

    fn begin_run(&mut self, ops: &[Op], end: End) {
        let last = ops.iter().position(ends_run);
        let run = last.map_or(ops, |last| &ops[..=last]);
        self.used += run.iter().map(|op| self.operators.of(op)).sum::<u64>();
        if last.is_none() {
            self.used += self.operators.of_end(end);
        }
    }

    fn check(&mut self) -> Step {
        self.checks.push(self.used);
        if self.used > self.message.limit {
            return Err(Failure(ErrorCode::CanisterInstructionLimitExceeded));
        }
        Ok(())
    }

    /// The price of a System API call.
    fn fee(&mut self, fee: u64) -> Step {
        self.check()?;
        self.used += fee;
        self.check()
    }

    fn end(&mut self, end: End) -> Result<Outcome, Failure> {
        match end {
            End::Return => Ok(Outcome::Silence),
            End::Reply => self.finish(),
            End::ReplyResult => {
                self.store(self.program.result_at, &self.state.result.to_le_bytes())?;
                self.append(self.program.result_at, 8)?;
                self.finish()
            }
            End::Reject => {
                self.fee(system::MOST)?;
                contract_unless(self.message.mode.may_reply() && !self.message.answered)?;
                Ok(Outcome::Reject)
            }
            End::Unreachable => Err(Failure(ErrorCode::CanisterTrapped)),
            End::CallTrap => {
                self.fee(system::MOST)?;
                Err(Failure(ErrorCode::CanisterCalledTrap))
            }
        }
    }

    fn finish(&mut self) -> Result<Outcome, Failure> {
        self.fee(system::MOST)?;
        contract_unless(self.message.mode.may_reply() && !self.message.answered)?;
        Ok(Outcome::Reply(std::mem::take(&mut self.reply)))
    }

    fn execute(&mut self, op: &Op) -> Step {
        let mode = self.message.mode;
        match *op {
            Op::Store { at, size, value } => {
                let bytes = self.value(value).to_le_bytes();
                self.store(at, &bytes[..size.bytes() as usize])?;
            }
            Op::Load { at, size } => {
                let value = self.load(at, size.bytes())?;
                self.mix(value);
            }
            Op::Fill { at, byte, length } => {
                self.used += length;
                self.check()?;
                trap_unless(self.state.heap.contains(at, length))?;
                self.touch(at, length, true);
                self.state.heap.write(at, &vec![byte; length as usize]);
            }
            Op::Copy { to, from, length } => self.copy(to, from, length)?,
            Op::Grow { pages } => {
                let before = self.state.heap.grow(pages, self.program.largest);
                self.mix(before);
            }
            Op::StableGrow { pages, .. } => {
                self.fee(system::STABLE_GROW)?;
                let before = self.state.stable.grow(pages, u64::MAX);
                self.mix(before);
            }
            Op::StableRead { api, to, from, length } => self.stable_read(api, to, from, length)?,
            Op::StableWrite { api, to, from, length } => {
                self.stable_write(api, to, from, length)?;
            }
            Op::ArgumentCopy { to, from, length } => self.argument(to, from, length)?,
            Op::ArgumentPart { to, length_at } => {
                let length = self.load(length_at, 4)?;
                self.argument(to, 0, length)?;
            }
            Op::Append { at, length } => self.append(at, length)?,
            Op::Counter => {
                self.fee(system::PERFORMANCE_COUNTER)?;
                self.mix(self.used);
            }
            Op::IsController { at, length } => {
                self.fee(system::IS_CONTROLLER + length)?;
                let bytes = self.principal(at, length)?;
                self.mix(u64::from(bytes == Principal::anonymous().as_slice()));
            }
            Op::Certify { at, length } => {
                self.fee(system::MOST + length)?;
                contract_unless(mode.may_certify() && length <= LONGEST_CERTIFIED)?;
                self.state.certified = self.read(at, length)?;
            }
            Op::Turn => self.state.turns = self.state.turns.wrapping_add(1),
            Op::Cut => {}
            Op::Helper => {
                let helper = &self.program.helper;
                self.function(helper, End::Return)?;
            }
            Op::Stride { first, step, count, access } => {
                let addresses = (0..u64::from(count)).map(|round| {
                    let at = first.wrapping_add(round.wrapping_mul(step));
                    if self.program.width == Width::Bits32 { at & 0xffff_ffff } else { at }
                });
                for at in addresses.collect::<Vec<_>>() {
                    self.used += self.operators.stride(access);
                    self.check()?;
                    self.round(at, access)?;
                }
            }
            Op::Burn { at } => self.burn(at)?,
            Op::Call(call) => self.call(call)?,
            Op::SetTimer { at } => {
                self.fee(system::MOST)?;
                contract_unless(mode.may_set_timer())?;
                let before = std::mem::replace(&mut self.state.timer, at);
                self.mix(before);
            }
        }
        Ok(())
    }

    fn round(&mut self, at: u64, access: Access) -> Step {
        if matches!(access, Access::Load | Access::LoadAndStore(_)) {
            let value = self.load(at, 8)?;
            self.mix(value);
        }
        if let Access::Store(value) | Access::LoadAndStore(value) = access {
            let bytes = self.value(value).to_le_bytes();
            self.store(at, &bytes)?;
        }
        Ok(())
    }

    fn value(&self, value: Value) -> u64 {
        match value {
            Value::Constant(value) => value,
            Value::Turn(value) => self.state.turns ^ value,
        }
    }

    fn mix(&mut self, value: u64) {
        self.state.result = (self.state.result ^ value).rotate_left(1);
    }

    /// Charges for the pages of a range of the heap that is read or written. The limit is not checked.
    fn touch(&mut self, at: u64, length: u64, writes: bool) {
        let writes = writes && self.message.mode.keeps_changes();
        let new = self.heap.touch(pages(at, length, WASM_PAGE), writes);
        self.used += new * self.prices.touched.unwrap_or(0);
    }

    /// A load or store. One that begins inside of the heap and ends outside touches the last page.
    fn access(&mut self, at: u64, size: u64, writes: bool) -> Step {
        let inside = (self.state.heap.size * WASM_PAGE).saturating_sub(at).min(size);
        self.touch(at, inside, writes);
        trap_unless(inside == size)
    }

    fn store(&mut self, at: u64, bytes: &[u8]) -> Step {
        self.access(at, bytes.len() as u64, true)?;
        self.state.heap.write(at, bytes);
        Ok(())
    }

    fn load(&mut self, at: u64, size: u64) -> Result<u64, Failure> {
        self.access(at, size, false)?;
        let mut bytes = self.state.heap.read(at, size);
        bytes.resize(8, 0);
        Ok(bytes.iter().rev().fold(0, |number, byte| number << 8 | u64::from(*byte)))
    }

    fn copy(&mut self, to: u64, from: u64, length: u64) -> Step {
        self.used += length;
        self.check()?;
        trap_unless(self.state.heap.contains(to, length))?;
        trap_unless(self.state.heap.contains(from, length))?;
        if to == from {
            // The C library of the real replica's hosts returns after it has read the first bytes.
            self.touch(from, length.min(1), false);
        } else {
            self.touch(from, length, false);
            self.touch(to, length, true);
        }
        let bytes = self.state.heap.read(from, length);
        self.state.heap.write(to, &bytes);
        Ok(())
    }

    /// The host reads a range of the heap.
    fn read(&mut self, at: u64, length: u64) -> Result<Vec<u8>, Failure> {
        contract_unless(self.state.heap.contains(at, length))?;
        self.touch(at, length, false);
        Ok(self.state.heap.read(at, length))
    }

    /// The length of a principal is checked before it is read.
    fn principal(&mut self, at: u64, length: u64) -> Result<Vec<u8>, Failure> {
        contract_unless(self.state.heap.contains(at, length) && length <= LONGEST_PRINCIPAL)?;
        self.read(at, length)
    }

    fn argument(&mut self, to: u64, from: u64, length: u64) -> Step {
        self.fee(system::MOST + length)?;
        contract_unless(self.message.mode.has_argument())?;
        contract_unless(self.state.heap.contains(to, length))?;
        let argument = self.message.argument;
        let end = from.checked_add(length).filter(|end| *end <= argument.len() as u64);
        contract_unless(end.is_some())?;
        self.touch(to, length, true);
        self.state.heap.write(to, &argument[from as usize..][..length as usize]);
        Ok(())
    }

    fn append(&mut self, at: u64, length: u64) -> Step {
        self.fee(system::MOST + system::BYTE_TRANSMITTED * length)?;
        contract_unless(self.message.mode.may_reply() && !self.message.answered)?;
        let bytes = self.read(at, length)?;
        self.reply.extend(bytes);
        Ok(())
    }

    fn call(&mut self, call: Call) -> Step {
        let names = names();
        self.used += names.len() as u64;
        self.check()?;
        self.touch(self.program.names_at, names.len() as u64, true);
        self.state.heap.write(self.program.names_at, &names);
        let may_call = self.message.mode.may_call();
        self.fee(system::CALL_NEW + ID + METHOD)?;
        contract_unless(may_call)?;
        self.read(method_at(self.program, call.method), METHOD)?;
        self.read(id_at(self.program, call.canister), ID)?;
        if call.on_cleanup.is_some() {
            self.fee(system::MOST)?;
        }
        self.fee(system::MOST + system::BYTE_TRANSMITTED * call.length)?;
        let argument = self.read(call.at, call.length)?;
        self.fee(system::CALL_PERFORM)?;
        self.mix(0);
        self.calls.push((call, argument));
        Ok(())
    }

    fn burn(&mut self, at: u64) -> Step {
        self.argument(at, 0, 12)?;
        for (number, cost) in self.operators.burns().into_iter().enumerate() {
            if number > 0 {
                self.used += self.operators.rounds();
            }
            let rounds = self.load(at + 4 * number as u64, 4)?;
            for _ in 0..rounds {
                self.used += cost;
                if self.used > self.message.limit {
                    return Err(Failure(ErrorCode::CanisterInstructionLimitExceeded));
                }
            }
        }
        self.checks.clear();
        Ok(())
    }

    fn stable_read(&mut self, api: Api, to: u64, from: u64, length: u64) -> Step {
        self.stable_calls[0] += 1;
        self.stable_fee(length)?;
        if length == 0 {
            return Ok(());
        }
        self.check_stable(api, from, to, length)?;
        let range: Vec<u64> = pages(from, length, OS_PAGE).collect();
        // A first read is served without touching stable memory.
        let first = range.iter().all(|page| !self.stable.touched.contains(page));
        self.stable.touched.extend(range);
        let fits = self.state.heap.contains(to, length);
        self.cut_off =
            !fits && !first && length <= LONGEST_IN_WORDS && self.state.heap.contains(to, 1);
        trap_unless(fits)?;
        self.touch(to, length, true);
        let bytes = self.state.stable.read(from, length);
        self.state.heap.write(to, &bytes);
        if !first {
            self.touch_stable(from, length, false);
        }
        self.stable_calls[1] += length;
        Ok(())
    }

    fn stable_write(&mut self, api: Api, to: u64, from: u64, length: u64) -> Step {
        self.stable_calls[2] += 1;
        self.stable_fee(length)?;
        // The 32-bit function checks its bounds even if it writes nothing.
        if length == 0 && api == Api::Stable64 {
            return Ok(());
        }
        self.check_stable(api, to, from, length)?;
        if length == 0 {
            return Ok(());
        }
        let range = pages(to, length, OS_PAGE);
        let new = range.clone().filter(|page| !self.stable.written.contains(page)).count();
        self.used += self.prices.stable_written * new as u64;
        self.check()?;
        self.stable.touched.extend(range.clone());
        self.stable.written.extend(range);
        trap_unless(self.state.heap.contains(from, length))?;
        self.touch(from, length, false);
        let bytes = self.state.heap.read(from, length);
        self.state.stable.write(to, &bytes);
        self.touch_stable(to, length, true);
        self.stable_calls[3] += length;
        Ok(())
    }

    fn stable_fee(&mut self, length: u64) -> Step {
        self.used += system::STABLE_COPY + length;
        self.check()
    }

    fn check_stable(&self, api: Api, stable: u64, heap: u64, length: u64) -> Step {
        trap_unless(self.state.stable.contains(stable, length))?;
        let narrow = |number: u64| number <= u64::from(u32::MAX);
        let both = narrow(heap) && narrow(length);
        trap_unless(both || api == Api::Stable32 || self.program.width == Width::Bits64)
    }

    /// Charges for the Wasm pages of a range of stable memory.
    fn touch_stable(&mut self, at: u64, length: u64, writes: bool) {
        let writes = writes && self.message.mode.keeps_changes();
        let new = self.stable_wasm.touch(pages(at, length, WASM_PAGE), writes);
        self.used += new * self.prices.touched.unwrap_or(0);
    }
}

fn ends_run(op: &Op) -> bool {
    matches!(op, Op::Cut | Op::Stride { .. } | Op::Burn { .. })
}

/// The pages of a range.
fn pages(at: u64, length: u64, page: u64) -> Range<u64> {
    if length == 0 { 0..0 } else { at / page..(at + length - 1) / page + 1 }
}
