//! A canister and its model. Both execute the same operations, and the results are compared.

use std::collections::BTreeMap;
use std::sync::Mutex;

use stablebench_replica::{Canister, ErrorCode, Execution, Instructions, Module};

use super::content::{Content, Saved, same_pages};
use super::machine::{End, Script, Version};
use super::memory::{Memory, changed};
use super::model::{Done, Ended, Mode, Model, State, execute};
use super::properties::same;
use super::{CALLER, met, replica};

const NAME: &str = "call_sequence";

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
        met(NAME, if ended.well() { "kept" } else { "undone" });
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
        met(NAME, if result.is_some() { "installed" } else { "not installed" });
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
