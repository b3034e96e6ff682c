//! Calls, forks, saved files, installs and upgrades in any order, on several canisters at
//! once, each beside its model.

use std::collections::BTreeMap;
use std::sync::Mutex;

use arbitrary::{Result, Unstructured};
use stablebench_replica::{Canister, ErrorCode, Execution, Instructions};

use super::content::{Content, Saved, same_pages};
use super::holds::same;
use super::machine::{Action, End, Kind, POISON, Told, Version};
use super::model::{Done, Ended, Mode, Model, changed, execute};
use super::{CALLER, met, replica};

const NAME: &str = "call_sequence";

/// Canisters that live at the same time.
const MOST: usize = 4;
const STEPS: usize = 40;

/// Nanoseconds at which a canister begins, and between two messages.
const BEGINNING: u64 = 1_620_328_630_000_000_000;
const ROUND: u64 = 1_000_000_000;

/// Replays a sequence.
pub fn call_sequence(bytes: &[u8]) {
    let mut input = Unstructured::new(bytes);
    let mut pairs = vec![Pair::new()];
    for _ in 0..STEPS {
        // Whatever is too short for another step is the end.
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
        0..=5 => pair.update(&told(input)?),
        6 => pair.query(&told(input)?),
        7 => pair.replicated_query(&told(input)?),
        8 => pair.missing_method(),
        9 | 10 => {
            let fork = pair.fork();
            if pairs.len() < MOST {
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
        // What was not called is as it was.
        input.choose(pairs)?.check();
    }
    Ok(())
}

fn version(input: &mut Unstructured<'_>) -> Result<Version> {
    Ok(if input.arbitrary()? { Version::First } else { Version::Second })
}

fn told(input: &mut Unstructured<'_>) -> Result<Told> {
    let end = if input.ratio(2, 3)? { End::Reply } else { *input.choose(End::ALL)? };
    let mut actions = Vec::new();
    for _ in 0..input.int_in_range(0..=6)? {
        actions.push(action(input)?);
    }
    Ok(Told { end, actions })
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
        // Around the ends of pages of either kind, and of memories.
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

/// What a hook is told: mostly without what would have to be replied with.
fn hook(input: &mut Unstructured<'_>) -> Result<Told> {
    let mut told = told(input)?;
    if input.ratio(3, 4)? {
        told.actions.retain(|action| {
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
    Ok(told)
}

/// A canister and its model.
struct Pair {
    canister: Canister,
    model: Model,
}

impl Pair {
    fn new() -> Self {
        let mut canister = replica().create_canister().unwrap();
        let told = Told { end: End::Reply, actions: Vec::new() };
        let module = Version::First;
        let balance = canister.balance().get();
        let installed = canister.install(module.module(), CALLER, &told.argument()).unwrap();
        assert_eq!(installed.outcome, Ok(vec![]));
        let empty = super::model::State {
            heap: Default::default(),
            stable: Default::default(),
            kept: 0,
            float: 0,
            certified: Vec::new(),
            timer: 0,
        };
        let mut model = Model { module, state: empty, version: 0, time: BEGINNING, balance };
        let (state, _) = model.install(module, &told).expect("nothing that fails");
        model.state = state;
        model.version += 1;
        model.time += ROUND;
        model.balance -= installed.cycles.get();
        let pair = Self { canister, model };
        pair.check();
        pair
    }

    fn fork(&self) -> Self {
        Self { canister: self.canister.fork(), model: self.model.clone() }
    }

    fn update(&mut self, told: &Told) {
        self.replicated(told, "act", Mode::Update);
    }

    fn replicated_query(&mut self, told: &Told) {
        self.replicated(told, "look", Mode::ReplicatedQuery);
    }

    fn replicated(&mut self, told: &Told, method: &str, mode: Mode) {
        let argument = told.argument();
        let mut fork = self.canister.fork();
        let execution = self.canister.update(CALLER, method, &argument).unwrap();
        same(&execution, &fork.update(CALLER, method, &argument).unwrap());

        let mut state = self.model.state.clone();
        let (ended, done) = execute(&mut state, self.model.about(mode), told);
        self.held(&execution, told, mode, &ended, &done, &state);
        let keeps = mode == Mode::Update;
        let pages = if keeps { changed(&self.model.state.heap, &state.heap) } else { 0 };
        met(NAME, if ended.well() { "kept" } else { "undone" });
        if ended.well() {
            // A message that fails is charged for changed pages too, but when it ran out of
            // stack or of instructions nobody asks how many there were.
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

    fn query(&mut self, told: &Told) {
        let argument = told.argument();
        let execution = self.canister.query(CALLER, "look", &argument).unwrap();
        same(&execution, &self.canister.fork().query(CALLER, "look", &argument).unwrap());
        let mut state = self.model.state.clone();
        let (ended, done) = execute(&mut state, self.model.about(Mode::Query), told);
        self.held(&execution, told, Mode::Query, &ended, &done, &state);
        assert_eq!(execution.cycles.get(), 0);
        self.check();
    }

    fn missing_method(&mut self) {
        let execution = self.canister.update(CALLER, "missing", &[]).unwrap();
        let code = execution.outcome.unwrap_err().code;
        assert_eq!(code, ErrorCode::CanisterMethodNotFound);
        let expected = self.price("missing", &[], Instructions(0));
        assert_eq!(execution.cycles.get(), expected);
        self.model.balance -= expected;
        self.model.time += ROUND;
    }

    /// What an update costs beside what it burns.
    fn price(&self, method: &str, argument: &[u8], charge: Instructions) -> u128 {
        let head = |length: usize| match length {
            0..=23 => 0,
            24..=255 => 1,
            _ => 2,
        };
        let bytes = 121 + method.len() + argument.len() + head(method.len()) + head(argument.len());
        5_000_000 + 1_200_000 + 2_000 * bytes as u128 + u128::from(charge.get())
    }

    /// What an execution tells is what the model says.
    fn held(
        &self,
        execution: &Execution,
        told: &Told,
        mode: Mode,
        ended: &Ended,
        done: &Done,
        state: &super::model::State,
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
        // A heap that grew past the canister's limit has grown all the same.
        assert_eq!(sizes, (state.heap.size, state.stable.size));
        self.priced_as_ever(execution, told, mode, ended);
    }

    /// What a message costs depends on what it is told, on the sizes that it finds, and on
    /// how it ends: neither on what else there is, nor on what this process did before.
    fn priced_as_ever(&self, execution: &Execution, told: &Told, mode: Mode, ended: &Ended) {
        type Key = (Vec<u8>, Mode, bool, u64, u64);
        static SEEN: Mutex<BTreeMap<Key, Instructions>> = Mutex::new(BTreeMap::new());
        // How deep a recursion goes is not the same everywhere.
        if told.end == End::Recursion {
            return;
        }
        let (heap, stable) = (self.model.state.heap.size, self.model.state.stable.size);
        let key = (told.argument(), mode, ended.well(), heap, stable);
        let mut seen = SEEN.lock().unwrap();
        // A reply costs by its length and a text in the log by its own, which follow from
        // the same.
        let first = *seen.entry(key).or_insert(execution.instructions);
        if seen.len() > 100_000 {
            seen.clear();
        }
        drop(seen);
        assert_eq!(execution.instructions, first);
    }

    fn install(&mut self, module: Version, told: &Told) {
        let result = self.model.install(module, told);
        let execution = self.canister.install(module.module(), CALLER, &told.argument()).unwrap();
        self.replaced(module, &execution, result);
    }

    fn upgrade(&mut self, module: Version, told: &Told) {
        let result = self.model.upgrade(module, told);
        let execution = self.canister.upgrade(module.module(), CALLER, &told.argument()).unwrap();
        self.replaced(module, &execution, result);
    }

    fn replaced(
        &mut self,
        module: Version,
        execution: &Execution,
        result: Option<(super::model::State, Done)>,
    ) {
        assert_eq!(execution.outcome.is_ok(), result.is_some(), "{:?}", execution.outcome);
        met(NAME, if result.is_some() { "installed" } else { "not installed" });
        if let Some((state, done)) = result {
            assert_eq!(execution.printed, done.printed);
            self.model.state = state;
            self.model.module = module;
            self.model.version += 1;
        }
        // What compiling costs is not counted, so that this is no one's formula.
        self.model.balance -= execution.cycles.get();
        self.model.time += ROUND;
        self.check();
    }

    fn save_and_load(&mut self) {
        let before = Content::of(&self.canister);
        let saved = Saved::new(&self.canister);
        self.canister = replica().load(&saved.0).unwrap();
        assert_eq!(Content::of(&self.canister), before);
        // The file stays mapped after its name is gone.
        self.check();
    }

    /// The canister keeps what the model keeps.
    fn check(&self) {
        let Self { canister, model } = self;
        let state = &model.state;
        assert_eq!(canister.heap_size().get(), state.heap.size);
        assert_eq!(canister.stable_size().get(), state.stable.size);
        assert_eq!(canister.certified_data(), state.certified);
        assert_eq!(canister.balance().get(), model.balance);
        let hash = canister.module().map(stablebench_replica::Module::hash);
        assert_eq!(hash, Some(model.module.module().hash()));
        let content = Content::of(canister);
        assert_eq!((content.version, content.time), (model.version, model.time));
        same_pages("heap", &content.heap, &state.heap.pages);
        same_pages("stable memory", &content.stable, &state.stable.pages);
        let timer = content.header.get("timer").and_then(serde_json::Value::as_u64);
        assert_eq!(timer, Some(state.timer));
    }
}
