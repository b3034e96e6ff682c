//! Canisters and their models, which execute the same messages, and whose results are compared.
//!
//! A canister by itself is compared, whose instance is reused, and a fork, which has a new one. On
//! a subnet canisters call each other: methods, callbacks, cleanups after traps, timers. There a
//! message makes one call at most, and leaves the answer to the callback. So one message runs at a
//! time, and their order is known.

use std::fmt::Write;
use std::sync::OnceLock;

use arbitrary::{Result, Unstructured};
use stablebench_replica::subnet::{Executed, Function, Subnet};
use stablebench_replica::{
    Canister, DifferingPages, Effort, ErrorCode, Execution, Module, Replica, Rules, Settings,
    StableCalls, WasmPages,
};

use super::execution::{Message, Mode, Outcome, Predicted, State, Touched, execute};
use super::module::{self, CANISTERS, Operators, id, query_name, update_name};
use super::program::{Body, DUE, Program, QUERIES, Setting, UPDATES, Width, program};
use crate::fuzzing::bounded::met;
use crate::fuzzing::content::{CALLER, Content, Memory, Saved, same_pages};

/// Name under which events are counted.
pub const MEMORIES: &str = "memories";

const UPDATE: u64 = 40_000_000_000;
const QUERY: u64 = 5_000_000_000;
const INSTALL: u64 = 300_000_000_000;
const MAX_CANISTERS: usize = 3;
const STEPS: usize = 14;

/// The replicas of both rule sets.
fn replica(rules: usize, effort: Effort) -> &'static Replica {
    static REPLICAS: OnceLock<[[Replica; 2]; 2]> = OnceLock::new();
    let replicas = REPLICAS.get_or_init(|| {
        [Effort::Full, Effort::Least].map(|effort| {
            [Rules::of_2025_10(), Rules::of_2026_08()].map(|rules| {
                Replica::with_effort(effort, rules, None, |_| {}).expect("the engine runs here")
            })
        })
    });
    &replicas[usize::from(effort == Effort::Least)][rules]
}

/// Generates the width of heap addresses.
fn width(input: &mut Unstructured<'_>) -> Result<Width> {
    Ok(if input.ratio(1, 3)? { Width::Bits64 } else { Width::Bits32 })
}

/// A program and its module.
struct Version {
    program: Program,
    module: Module,
}

impl Version {
    fn new(program: Program, replica: &Replica) -> Self {
        let module = replica.compile(&module::module(&program, false)).expect("a valid module");
        Self { program, module }
    }

    fn generated(input: &mut Unstructured<'_>, replica: &Replica) -> Result<Self> {
        let width = width(input)?;
        Ok(Self::new(program(input, Setting::Alone, width)?, replica))
    }
}

/// Calls update methods of a program one after the other, under both rule sets, compiled with each
/// effort.
pub fn replay(program: &Program, methods: &[usize]) {
    let efforts = [Effort::Full, Effort::Least];
    for replica in efforts.into_iter().flat_map(|it| [replica(0, it), replica(1, it)]) {
        let versions = [Version::new(program.clone(), replica)];
        let counts = &mut String::new();
        let mut pair = Pair::install(replica, &versions, counts).expect("an install");
        for &method in methods {
            let body = &program.updates[method];
            pair.update(&update_name(method), Mode::Update, body, &[], counts);
            pair.check();
        }
    }
}

/// Runs the messages that the bytes describe. Returns the counts of all executions.
pub fn memories(bytes: &[u8], effort: Effort) -> String {
    let mut input = Unstructured::new(bytes);
    let mut counts = String::new();
    // Bytes that are too short for an input are ignored.
    let _ = run_alone(&mut input, effort, &mut counts);
    counts
}

fn run_alone(input: &mut Unstructured<'_>, effort: Effort, counts: &mut String) -> Result<()> {
    let replica = replica(input.choose_index(2)?, effort);
    let versions = [Version::generated(input, replica)?, Version::generated(input, replica)?];
    let Some(pair) = Pair::install(replica, &versions, counts) else { return Ok(()) };
    let mut pairs = vec![pair];
    for _ in 0..STEPS {
        if input.is_empty() {
            break;
        }
        let at = input.choose_index(pairs.len())?;
        let pair = &mut pairs[at];
        match input.int_in_range(0..=15)? {
            0..=6 => {
                let method = input.choose_index(UPDATES)?;
                let body = &pair.version.program.updates[method];
                let argument = argument(input)?;
                let predicted =
                    pair.update(&update_name(method), Mode::Update, body, &argument, counts);
                let without_pages = predicted.wasm_pages.is_none();
                if predicted.cut_off && without_pages && pair.version.program.width == Width::Bits32
                {
                    met(MEMORIES, "cut off");
                }
            }
            7 | 8 => {
                let method = input.choose_index(QUERIES)?;
                let body = &pair.version.program.queries[method];
                pair.query(&query_name(method), Mode::Query, body, &argument(input)?, counts);
            }
            9 => {
                let method = input.choose_index(QUERIES)?;
                let body = &pair.version.program.queries[method];
                pair.update(&query_name(method), Mode::Query, body, &argument(input)?, counts);
            }
            10 => {
                let body = &pair.version.program.composite;
                pair.query("c", Mode::CompositeQuery, body, &argument(input)?, counts);
            }
            11 => pair.limit(input, counts)?,
            12 => pair.save_and_load(replica),
            13 => {
                let version = input.choose(&versions)?;
                pair.upgrade(version, counts);
            }
            _ => {
                let fork = pair.fork();
                if pairs.len() < MAX_CANISTERS {
                    pairs.push(fork);
                } else {
                    let other = input.choose_index(pairs.len())?;
                    pairs[other] = fork;
                }
            }
        }
        if input.ratio(1, 4)? {
            // Other canisters have not changed.
            input.choose(&pairs)?.check();
        }
    }
    pairs.iter().for_each(Pair::check);
    Ok(())
}

fn argument(input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    Ok(input.bytes(20)?.to_vec())
}

/// A canister and the state that it has by the model.
struct Pair<'v> {
    canister: Canister,
    state: State,
    version: &'v Version,
    rules: Rules,
}

impl<'v> Pair<'v> {
    /// Installs the first version whose `canister_init` does not fail.
    fn install(replica: &Replica, versions: &'v [Version], counts: &mut String) -> Option<Self> {
        let rules = replica.rules();
        for version in versions {
            let Version { program, module } = version;
            let mut canister = replica.create_canister().expect("memory");
            let mut state = State::initial(program, Memory::default(), Vec::new());
            let message = message(Mode::Init, &[]);
            let predicted = execute(program, rules, &mut state, &program.init, message);
            let installed = canister.install(module, CALLER, &[]).expect("memory");
            compare_install(&installed, &[&predicted], counts);
            if !predicted.outcome.is_failure() {
                met(MEMORIES, "installed");
                let pair = Self { canister, state, version, rules };
                pair.check();
                return Some(pair);
            }
            assert!(canister.module().is_none());
            met(MEMORIES, "not installed");
        }
        None
    }

    fn fork(&self) -> Self {
        Self { canister: self.canister.fork(), state: self.state.clone(), ..*self }
    }

    /// Executes a method as an update, on the canister and on a fork.
    fn update(
        &mut self,
        method: &str,
        mode: Mode,
        body: &Body,
        argument: &[u8],
        counts: &mut String,
    ) -> Predicted {
        println!("    update {method}: {body:?}");
        let mut state = self.state.clone();
        let message = message(mode, argument);
        let predicted = execute(&self.version.program, self.rules, &mut state, body, message);
        let mut fork = self.canister.fork();
        let executed = self.canister.update(CALLER, method, argument).expect("memory");
        compare(&executed, &predicted, counts);
        compare(&fork.update(CALLER, method, argument).expect("memory"), &predicted, counts);
        let kept = !predicted.outcome.is_failure();
        met(MEMORIES, if kept { "kept" } else { "undone" });
        if kept && mode.keeps_changes() {
            self.state = state;
        }
        let differing = self.canister.differing_pages(&fork).expect("memory");
        assert_eq!(differing, Some(DifferingPages::default()), "from a new instance");
        predicted
    }

    fn query(
        &self,
        method: &str,
        mode: Mode,
        body: &Body,
        argument: &[u8],
        counts: &mut String,
    ) -> Predicted {
        println!("    query {method}: {body:?}");
        let mut state = self.state.clone();
        let message = message(mode, argument);
        let predicted = execute(&self.version.program, self.rules, &mut state, body, message);
        for canister in [&self.canister, &self.canister.fork()] {
            let executed = canister.query(CALLER, method, argument).expect("memory");
            compare(&executed, &predicted, counts);
        }
        met(MEMORIES, if predicted.outcome.is_failure() { "not answered" } else { "answered" });
        predicted
    }

    /// Executes a message whose count reaches the limit exactly where it is compared with it, and the
    /// same message with one instruction more.
    fn limit(&mut self, input: &mut Unstructured<'_>, counts: &mut String) -> Result<()> {
        let program = &self.version.program;
        let updates = input.arbitrary()?;
        let (mode, body, limit) = match updates {
            true => (Mode::Update, &program.updates[0], UPDATE),
            false => (Mode::Query, &program.queries[0], QUERY),
        };
        let body = program.burning(body);
        let shortest = burning([1, 1, 0]);
        let unlimited = Message { limit: u64::MAX, ..message(mode, &shortest) };
        let mut state = self.state.clone();
        let checks = execute(program, self.rules, &mut state, &body, unlimited).checks;
        // The first one precedes the part that depends on the argument.
        let check = input.int_in_range(1..=checks.len() - 1)?;
        for (used, what) in [(limit + 1, "past the limit"), (limit, "at the limit")] {
            let more = used - checks[check];
            let [long, short] = Operators(program.width).burns();
            let rounds = [1 + more / long, 1 + more % long / short, more % long % short];
            let argument = burning(rounds);
            let predicted = match updates {
                true => self.update("burn", mode, &body, &argument, counts),
                false => self.query("burn_query", mode, &body, &argument, counts),
            };
            match used > limit {
                true => {
                    let code = ErrorCode::CanisterInstructionLimitExceeded;
                    assert_eq!(predicted.outcome, Outcome::Failed(code), "{what}");
                    assert_eq!(predicted.instructions, used, "{what}");
                }
                false => assert_eq!(predicted.checks[check], used, "{what}"),
            }
            met(MEMORIES, what);
        }
        Ok(())
    }

    fn save_and_load(&mut self, replica: &Replica) {
        println!("    save and load");
        let saved = Saved::new(&self.canister);
        self.canister = replica.load(&saved.0).expect("a saved canister");
        // The file stays mapped after it is deleted.
        self.check();
    }

    fn upgrade(&mut self, version: &'v Version, counts: &mut String) {
        println!("    upgrade");
        let mut fork = self.canister.fork();
        let upgraded = self.canister.upgrade(&version.module, CALLER, &[]).expect("memory");
        let again = fork.upgrade(&version.module, CALLER, &[]).expect("memory");

        let old = &self.version.program;
        let mut state = self.state.clone();
        let before = message(Mode::PreUpgrade, &[]);
        let first = execute(old, self.rules, &mut state, &old.pre_upgrade, before);
        let mut functions = vec![&first];
        let second;
        let mut kept = false;
        if !first.outcome.is_failure() {
            let new = &version.program;
            state = State::initial(new, state.stable, state.certified);
            let after = message(Mode::Init, &[]);
            second = execute(new, self.rules, &mut state, &new.post_upgrade, after);
            kept = !second.outcome.is_failure();
            functions.push(&second);
        }
        compare_install(&upgraded, &functions, counts);
        compare_install(&again, &functions, counts);
        met(MEMORIES, if kept { "upgraded" } else { "not upgraded" });
        if kept {
            self.state = state;
            self.version = version;
        }
        self.check();
    }

    /// Compares the state of the canister with the model's.
    fn check(&self) {
        same_state(&self.canister, &self.state);
    }
}

/// Compares the state of a canister with the model's.
fn same_state(canister: &Canister, state: &State) {
    let content = Content::of(canister);
    same_pages("heap", &content.heap, &state.heap.pages);
    same_pages("stable memory", &content.stable, &state.stable.pages);
    let sizes = [canister.heap_size(), canister.stable_size()].map(WasmPages::get);
    assert_eq!(sizes, [state.heap.size, state.stable.size]);
    assert_eq!(canister.certified_data(), state.certified);
    let global = |value: u64| serde_json::json!({ "I64": value.cast_signed() });
    let globals = serde_json::json!([global(state.result), global(state.turns)]);
    assert_eq!(content.header.get("globals"), Some(&globals));
    assert_eq!(content.header.get("timer"), Some(&state.timer.into()));
}

/// The input of a message with the usual limit of its mode.
fn message(mode: Mode, argument: &[u8]) -> Message<'_> {
    let limit = match mode {
        Mode::Query | Mode::CompositeQuery => QUERY,
        Mode::Init | Mode::PreUpgrade => INSTALL,
        Mode::Update | Mode::Reply | Mode::Reject | Mode::Cleanup | Mode::Timer => UPDATE,
    };
    Message { mode, argument, limit, answered: false }
}

/// The argument of [`Program::burning`].
fn burning(rounds: [u64; 3]) -> Vec<u8> {
    rounds.iter().flat_map(|rounds| (*rounds as u32).to_le_bytes()).collect()
}

/// Compares an execution with the model.
fn compare(executed: &Execution, predicted: &Predicted, counts: &mut String) {
    let outcome = match &predicted.outcome {
        Outcome::Reply(reply) => Ok(reply.clone()),
        Outcome::Reject => Err(ErrorCode::CanisterRejectedMessage),
        Outcome::Silence => Err(ErrorCode::CanisterDidNotReply),
        Outcome::Failed(code) => Err(*code),
    };
    assert_eq!(executed.outcome.clone().map_err(|reject| reject.code), outcome, "{executed:?}");
    compare_costs(executed, predicted);
    writeln!(counts, "{}", executed.counts()).expect("a string grows");
}

/// Compares everything but the outcome.
fn compare_costs(executed: &Execution, predicted: &Predicted) {
    let pages = |ranges: &[std::ops::Range<usize>]| -> Vec<u64> {
        ranges.iter().flat_map(|range| range.clone().map(|page| page as u64)).collect()
    };
    let accessed: Vec<u64> = predicted.stable.touched.iter().copied().collect();
    assert_eq!(pages(&executed.stable_pages), accessed, "stable pages");
    let memory = executed.memory;
    assert_eq!(memory.heap_changed.get(), predicted.changed.len() as u64, "changed heap pages");
    assert_eq!(memory.stable_written.get(), predicted.stable.written.len() as u64);
    assert_eq!([memory.heap, memory.stable].map(WasmPages::get), predicted.sizes);
    compare_sums(executed, &[predicted]);
}

/// Compares an install or upgrade with its functions. The memory that it reports is that of the last.
fn compare_install(executed: &Execution, functions: &[&Predicted], counts: &mut String) {
    let Some(last) = functions.last() else { return };
    let outcome = match &last.outcome {
        Outcome::Failed(code) => Err(*code),
        _ => Ok(Vec::new()),
    };
    assert_eq!(executed.outcome.clone().map_err(|reject| reject.code), outcome);
    assert_eq!(executed.memory.heap_changed.get(), last.changed.len() as u64);
    compare_sums(executed, functions);
    writeln!(counts, "{}", executed.counts()).expect("a string grows");
}

/// Compares what the functions of an installation add up to.
fn compare_sums(executed: &Execution, functions: &[&Predicted]) {
    let sum = |value: fn(&Predicted) -> u64| functions.iter().copied().map(value).sum::<u64>();
    let touched = executed.pages.touched.map(|pages| {
        [pages.heap, pages.heap_written, pages.stable, pages.stable_written].map(WasmPages::get)
    });
    let predicted = functions.iter().try_fold([0; 4], |sum, function| {
        let [heap, stable] = function.wasm_pages.as_ref()?;
        let sizes = |pages: &Touched| [pages.touched.len(), pages.written.len()];
        let [heap, stable] = [sizes(heap), sizes(stable)];
        let more = [heap[0], heap[1], stable[0], stable[1]].map(|pages| pages as u64);
        Some([0, 1, 2, 3].map(|at| sum[at] + more[at]))
    });
    assert_eq!(touched, predicted, "touched Wasm pages of heap and stable memory");
    assert_eq!(executed.instructions.get(), sum(|it| it.instructions), "instructions");
    assert_eq!(executed.charge.get(), sum(|it| it.charge), "charge");
    assert_eq!(executed.pages.heap.get(), sum(|it| it.pages[0]), "for heap pages");
    assert_eq!(executed.pages.stable.get(), sum(|it| it.pages[1]), "for stable pages");
    let StableCalls { reads, bytes_read, writes, bytes_written, .. } = executed.stable_calls;
    let calls = [0, 1, 2, 3].map(|at| functions.iter().map(|it| it.stable_calls[at]).sum::<u64>());
    assert_eq!([reads, bytes_read.get(), writes, bytes_written.get()], calls, "stable calls");
}

/// Name under which events are counted.
pub const CALLS: &str = "calls";

const USER_CALLS: usize = 8;

/// Runs the calls that the bytes describe. Returns the counts of all executions.
pub fn calls(bytes: &[u8], effort: Effort) -> String {
    let mut input = Unstructured::new(bytes);
    let mut counts = String::new();
    // Bytes that are too short for an input are ignored.
    let _ = run_subnet(&mut input, effort, &mut counts);
    counts
}

fn run_subnet(input: &mut Unstructured<'_>, effort: Effort, counts: &mut String) -> Result<()> {
    let replica = replica(input.choose_index(2)?, effort);
    let setting = Setting::Subnet { canisters: CANISTERS };
    let mut subnet = Subnet::new(replica);
    let mut members = Vec::new();
    for number in 0..CANISTERS {
        let width = width(input)?;
        let program = program(input, setting, width)?;
        let wasm = module::module(&program, true);
        let module = replica.compile_for_subnet(&id(number), &wasm).expect("a valid module");
        let usual = replica.create_canister().expect("memory");
        let settings = Settings { id: id(number), ..usual.settings().clone() };
        let mut canister = Canister::new(settings).expect("memory");
        canister.install(&module, CALLER, &[]).expect("memory").outcome.expect("an install");
        subnet.add(canister).expect("a new id");
        let mut state = State::initial(&program, Memory::default(), Vec::new());
        execute(&program, replica.rules(), &mut state, &program.init, message(Mode::Init, &[]));
        members.push(Member { program, state });
    }
    let mut model = Model { members, rules: replica.rules(), executions: Vec::new() };
    for _ in 0..USER_CALLS {
        if input.is_empty() {
            break;
        }
        let (to, method) = (input.choose_index(CANISTERS)?, input.choose_index(UPDATES)?);
        let argument = input.bytes(20)?;
        println!("    canister {to}, method {method}");
        let answer = model.call(to, method, argument);
        let expected = std::mem::take(&mut model.executions);
        let name = update_name(method);
        let mut fork = subnet.fork();
        for subnet in [&mut subnet, &mut fork] {
            let call = subnet.update(CALLER, id(to), &name, argument).expect("an answer");
            assert_eq!(call.response.ok(), answer);
            compare_executions(&call.executions, &expected, counts);
            assert!(subnet.is_idle());
        }
        if input.ratio(1, 3)? {
            // Goes on with new instances.
            subnet = fork;
        }
        model.check(&subnet);
    }
    timers(subnet, &mut model, counts);
    Ok(())
}

/// Runs the timers that were set, in the order of the canisters.
fn timers(mut subnet: Subnet, model: &mut Model, counts: &mut String) {
    for number in 0..CANISTERS {
        if std::mem::take(&mut model.members[number].state.timer) != 0 {
            model.execute(number, Mode::Timer, |program| program.timer.clone(), &[]);
        }
    }
    let expected = std::mem::take(&mut model.executions);
    subnet.take_executions();
    subnet.set_time(DUE);
    subnet.tick().expect("memory");
    compare_executions(&subnet.take_executions(), &expected, counts);
    model.check(&subnet);
}

/// Compares the executions with the model's.
fn compare_executions(executed: &[Executed], expected: &[Expected], counts: &mut String) {
    let names = |all: &[Executed]| all.iter().map(Executed::to_string).collect::<Vec<_>>();
    assert_eq!(executed.len(), expected.len(), "{:?} instead of {expected:?}", names(executed));
    for (executed, expected) in executed.iter().zip(expected) {
        let Expected { canister, mode, predicted } = expected;
        let function = match executed.function {
            Function::Update(_) => Mode::Update,
            Function::ReplyCallback => Mode::Reply,
            Function::RejectCallback => Mode::Reject,
            Function::Cleanup => Mode::Cleanup,
            Function::GlobalTimer => Mode::Timer,
            _ => panic!("{executed}"),
        };
        assert_eq!((executed.canister, function), (id(*canister), *mode));
        let outcome = match &predicted.outcome {
            Outcome::Reply(reply) => Ok(reply.clone()),
            Outcome::Silence => Ok(Vec::new()),
            Outcome::Reject => Err(ErrorCode::CanisterRejectedMessage),
            Outcome::Failed(code) => Err(*code),
        };
        let execution = &executed.execution;
        println!("        {executed}: {}", execution.counts().to_string().replace('\n', ", "));
        assert_eq!(execution.outcome.clone().map_err(|reject| reject.code), outcome);
        compare_costs(execution, predicted);
        writeln!(counts, "{}", execution.counts()).expect("a string grows");
    }
}

/// An execution by the model.
#[derive(Debug)]
struct Expected {
    canister: usize,
    mode: Mode,
    predicted: Predicted,
}

struct Member {
    program: Program,
    state: State,
}

struct Model {
    members: Vec<Member>,
    rules: Rules,
    /// Executions that were not compared yet.
    executions: Vec<Expected>,
}

impl Model {
    /// Calls an update method. Returns the reply, or `None` for a reject.
    fn call(&mut self, canister: usize, method: usize, argument: &[u8]) -> Option<Vec<u8>> {
        let body = |program: &Program| program.updates[method].clone();
        let mut predicted = self.execute(canister, Mode::Update, body, argument);
        // Each round executes a callback of the call that the message before it made.
        loop {
            match predicted.outcome {
                Outcome::Reply(reply) => return Some(reply),
                Outcome::Reject | Outcome::Failed(_) => return None,
                Outcome::Silence => {}
            }
            let (call, argument) = predicted.calls.pop()?;
            let answer = self.call(call.canister, call.method, &argument);
            let (mode, callback) = match answer {
                Some(_) => (Mode::Reply, call.on_reply),
                None => (Mode::Reject, call.on_reject),
            };
            met(CALLS, if mode == Mode::Reply { "replied" } else { "rejected" });
            let body = |program: &Program| program.callbacks[callback].clone();
            predicted = self.execute(canister, mode, body, &answer.unwrap_or_default());
            if predicted.outcome.is_failure()
                && let Some(cleanup) = call.on_cleanup
            {
                met(CALLS, "cleaned up");
                let body = |program: &Program| program.callbacks[cleanup].clone();
                self.execute(canister, Mode::Cleanup, body, &[]);
            }
        }
    }

    /// Executes a function, and keeps what it did unless it failed.
    fn execute(
        &mut self,
        canister: usize,
        mode: Mode,
        body: impl FnOnce(&Program) -> Body,
        argument: &[u8],
    ) -> Predicted {
        let Member { program, state } = &mut self.members[canister];
        let mut after = state.clone();
        let body = body(program);
        println!("        {mode:?} of canister {canister}: {body:?}");
        let predicted = execute(program, self.rules, &mut after, &body, message(mode, argument));
        if !predicted.outcome.is_failure() {
            *state = after;
        }
        met(CALLS, if mode == Mode::Timer { "timer" } else { "executed" });
        self.executions.push(Expected { canister, mode, predicted: predicted.clone() });
        predicted
    }

    /// Compares the states of all canisters.
    fn check(&self, subnet: &Subnet) {
        for (number, member) in self.members.iter().enumerate() {
            same_state(subnet.canister(&id(number)).expect("a canister"), &member.state);
        }
    }
}
