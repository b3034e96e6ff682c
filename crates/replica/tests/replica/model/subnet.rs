//! Canisters that call each other, and their models: methods, callbacks, cleanups after traps, timers.
//!
//! A message makes one call at most, and leaves the answer to the callback. So one message runs at a
//! time, and their order is known.

use std::fmt::Write;

use arbitrary::{Result, Unstructured};
use stablebench_replica::subnet::{Executed, Function, Subnet};
use stablebench_replica::{Canister, Effort, ErrorCode, Rules, Settings};

use super::driver::{CALLER, compare_costs, message, replica, same_state, width};
use super::execution::{Mode, Outcome, Predicted, State, execute};
use super::module::{self, CANISTERS, id, update_name};
use super::program::{Body, DUE, Program, Setting, UPDATES, program};
use crate::fuzzing::targets::memory::Memory;
use crate::fuzzing::targets::met::met;

/// Name under which events are counted.
pub const NAME: &str = "calls";

const STEPS: usize = 8;

/// Runs the calls that the bytes describe. Returns the counts of all executions.
pub fn calls(bytes: &[u8], effort: Effort) -> String {
    let mut input = Unstructured::new(bytes);
    let mut counts = String::new();
    // Bytes that are too short for an input are ignored.
    let _ = run(&mut input, effort, &mut counts);
    counts
}

fn run(input: &mut Unstructured<'_>, effort: Effort, counts: &mut String) -> Result<()> {
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
    for _ in 0..STEPS {
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
            compare(&call.executions, &expected, counts);
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
    compare(&subnet.take_executions(), &expected, counts);
    model.check(&subnet);
}

/// Compares the executions with the model's.
fn compare(executed: &[Executed], expected: &[Expected], counts: &mut String) {
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
            met(NAME, if mode == Mode::Reply { "replied" } else { "rejected" });
            let body = |program: &Program| program.callbacks[callback].clone();
            predicted = self.execute(canister, mode, body, &answer.unwrap_or_default());
            if predicted.outcome.is_failure()
                && let Some(cleanup) = call.on_cleanup
            {
                met(NAME, "cleaned up");
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
        met(NAME, if mode == Mode::Timer { "timer" } else { "executed" });
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
