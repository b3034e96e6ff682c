//! A canister: its settings with environment variables, its module, its state, and the resources that it
//! uses or has reserved, which decide when it freezes.
//!
//! Environment variables are texts by name that a canister's controllers set and its code reads.
//! Installing code, upgrades and snapshots leave them as they are.
//!
//! | module | |
//! |---|---|
//! | `dispatch` | the path of every message, and messages to a canister by itself |
//! | `install` | installs and upgrades, and replacing stable memory |
//!
//! Source: `validate_environment_variables` in `rs/execution_environment/src/canister_manager.rs`
//! of the replica, its limits in `rs/config/src/execution_environment.rs`.

pub(crate) mod dispatch;
pub(crate) mod install;

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;

use ic_principal::Principal;

use crate::cycles::{self, Threshold};
use crate::difference::{Difference, DifferingPages};
use crate::execution::Readings;
use crate::fault::{Fault, HostError};
use crate::instance::{Entry, IdleSlot};
use crate::module::Module;
use crate::profile::{CallTree, Profile, ProfileError, Span};
use crate::rules::{
    DEFAULT_LOG, LOG_STORE_OVERHEAD, MAX_ENVIRONMENT_TEXT, MAX_HISTORY, Rules, SubnetKind,
};
use crate::run::{Run, Target, run, run_profiled};
use crate::state::State;
use crate::system_api::message::{Certifier, Context, Effects, Halt, Message, Mode, Status};
use crate::units::{Bytes, Cycles, Instructions, WASM_PAGE, WasmPages};

/// Settings of a canister, which messages do not change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The canister's id.
    pub id: Principal,
    /// Principals that may manage the canister.
    pub controllers: Vec<Principal>,
    /// Initial balance.
    pub balance: Cycles,
    /// Largest heap of an update; 0 for no limit.
    pub heap_limit: Bytes,
}

/// Resources that a canister has reserved, and the time for which it must be able to pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Allocation {
    /// Compute, in percent of a core.
    pub compute: u64,
    /// Memory; 0 for none.
    pub memory: Bytes,
    /// Freezing threshold in seconds.
    pub freezing_seconds: u64,
    /// Bytes of records that the log keeps; 0 for no log. Missing in older files.
    #[serde(default = "default_log")]
    pub log: Bytes,
}

/// Bytes of records that a log keeps by default.
const fn default_log() -> Bytes {
    DEFAULT_LOG
}

impl Allocation {
    /// Bytes of the store of the log.
    pub fn log_store(&self, rules: Rules) -> Bytes {
        match self.log {
            Bytes(0) => Bytes(0),
            _ if !rules.set().log_store => Bytes(0),
            records => LOG_STORE_OVERHEAD + records,
        }
    }
}

impl Default for Allocation {
    fn default() -> Self {
        let freezing_seconds = cycles::FREEZING_SECONDS;
        Self { compute: 0, memory: Bytes(0), freezing_seconds, log: DEFAULT_LOG }
    }
}

/// Bytes of a canister.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Sizes {
    pub heap: Bytes,
    pub stable: Bytes,
    pub globals: Bytes,
    pub module: Bytes,
    pub sections: Bytes,
    pub history: Bytes,
    pub log: Bytes,
}

impl Sizes {
    /// Bytes of everything but the two memories.
    pub fn other(&self) -> Bytes {
        self.globals + self.module + self.sections + self.history + self.log
    }

    /// Bytes of what a snapshot copies.
    pub fn snapshot(&self) -> Bytes {
        self.heap + self.stable + self.globals + self.module
    }
}

/// Globals that the replica adds to a module.
const REPLICA_GLOBALS: u64 = 1;
/// Bytes that the replica counts for a global.
pub(crate) const GLOBAL_SIZE: Bytes = Bytes(32);
/// Bytes that the replica counts for a custom section in addition to its name and content.
const SECTION_OVERHEAD: u64 = 1;
/// Bytes that the replica counts for a change in the history.
pub(crate) const CHANGE_SIZE: Bytes = Bytes(160);
/// Bytes that it counts for each controller in such a change.
const CONTROLLER_SIZE: u64 = 30;

/// Bytes of the first change in a canister's history: its creation with this number of controllers.
fn creation_size(controllers: usize) -> Bytes {
    change_size(controllers)
}

/// Bytes of a change in a canister's history that lists this number of controllers.
fn change_size(controllers: usize) -> Bytes {
    CHANGE_SIZE + Bytes(CONTROLLER_SIZE * controllers as u64)
}

/// Invalid environment variables. The messages are those of the management canister.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum EnvironmentError {
    /// There are too many.
    #[error("Too many environment variables: {count} (max: {most})")]
    TooMany {
        /// Number of variables.
        count: usize,
        /// Largest number of variables of a canister.
        most: usize,
    },
    /// A name is too long.
    #[error("Environment variable name \"{name}\" exceeds the maximum allowed length of {most}.")]
    NameTooLong {
        /// The name.
        name: String,
        /// Largest size of a name.
        most: Bytes,
    },
    /// A value is too long.
    #[error("Environment variable value \"{value}\" exceeds the maximum allowed length of {most}.")]
    ValueTooLong {
        /// The value.
        value: String,
        /// Largest size of a value.
        most: Bytes,
    },
}

/// Largest number of variables of a canister with a module of these rules, or without a module.
pub(crate) fn max_variables(rules: Option<Rules>) -> usize {
    rules.unwrap_or_else(Rules::today).set().environment_variables
}

/// Checks variables against the limits, of which `most` is the limit of their number.
pub(crate) fn check_environment(
    variables: &BTreeMap<String, String>,
    most: usize,
) -> Result<(), EnvironmentError> {
    if variables.len() > most {
        return Err(EnvironmentError::TooMany { count: variables.len(), most });
    }
    let most = MAX_ENVIRONMENT_TEXT;
    let too_long = |text: &str| text.len() as u64 > most.get();
    for (name, value) in variables {
        if too_long(name) {
            return Err(EnvironmentError::NameTooLong { name: name.clone(), most });
        }
        if too_long(value) {
            return Err(EnvironmentError::ValueTooLong { value: value.clone(), most });
        }
    }
    Ok(())
}

/// A canister on the embedded replica.
#[derive(Debug)]
pub struct Canister {
    pub(crate) settings: Arc<Settings>,
    pub(crate) environment: Arc<BTreeMap<String, String>>,
    pub(crate) module: Option<Module>,
    pub(crate) state: State,
    pub(crate) idle: IdleSlot,
    pub(crate) reports_calls: bool,
    pub(crate) readings: Readings,
    pub(crate) balance: Cycles,
    pub(crate) version: u64,
    pub(crate) time: u64,
    /// Bytes of each change in the canister's history.
    pub(crate) history: VecDeque<Bytes>,
    pub(crate) allocation: Allocation,
    /// Cycles that are reserved for storage.
    pub(crate) reserved: Cycles,
    /// Bytes of uploaded chunks and of snapshots.
    pub(crate) stored: Bytes,
    /// The switch of its subnet or of the caller.
    pub(crate) halt: Option<Halt>,
    /// True on a subnet, which holds threshold keys.
    pub(crate) holds_keys: bool,
    /// Number of nodes of its subnet.
    pub(crate) nodes: u32,
    /// The signatures of certified data that queries read, unless the subnet has them.
    pub(crate) certifier: Option<Certifier>,
}

/// Time of the first message, in nanoseconds since 1970. It is fixed so that runs are reproducible.
/// A PocketIC server begins with it too.
const INITIAL_TIME: u64 = 1_620_328_630_000_000_000;
/// Nanoseconds between two messages: those between two rounds of a PocketIC server. Code that uses
/// seconds, such as that of SQLite's random numbers, gets the same ones there.
const ROUND_DURATION: u64 = 1;

impl Canister {
    /// Creates a canister without a module.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn new(settings: Settings) -> Result<Self, HostError> {
        Ok(Self {
            history: VecDeque::from([creation_size(settings.controllers.len())]),
            balance: settings.balance,
            settings: Arc::new(settings),
            environment: Arc::default(),
            module: None,
            state: State::empty()?,
            idle: IdleSlot::default(),
            reports_calls: false,
            readings: Readings::Ignored,
            version: 0,
            time: INITIAL_TIME,
            allocation: Allocation::default(),
            reserved: Cycles(0),
            stored: Bytes(0),
            halt: None,
            holds_keys: false,
            nodes: cycles::NODES as u32,
            certifier: None,
        })
    }

    /// Creates a second canister with the same content. The two share pages copy-on-write and do
    /// not affect each other.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            settings: Arc::clone(&self.settings),
            environment: Arc::clone(&self.environment),
            module: self.module.clone(),
            state: self.state.clone(),
            idle: IdleSlot::default(),
            reports_calls: self.reports_calls,
            readings: self.readings,
            balance: self.balance,
            version: self.version,
            time: self.time,
            history: self.history.clone(),
            allocation: self.allocation,
            reserved: self.reserved,
            stored: self.stored,
            halt: self.halt.clone(),
            holds_keys: self.holds_keys,
            nodes: self.nodes,
            certifier: self.certifier.clone(),
        }
    }

    /// Signs the certified data, which queries can read: `sign` receives the id, the data, and the
    /// time. Without this, queries of a canister by itself that read a certificate trap. Forks
    /// inherit the setting.
    pub fn set_certifier(
        &mut self,
        sign: impl Fn(Principal, &[u8], u64) -> Vec<u8> + Send + Sync + 'static,
    ) {
        self.certifier = Some(Certifier::new(sign));
    }

    /// Sets whether later messages report their System API calls by name
    /// ([`Execution::system_calls`](crate::Execution::system_calls)). Off by default; forks inherit the setting.
    pub fn report_calls(&mut self, report: bool) {
        self.reports_calls = report;
    }

    /// Sets whether later messages report the canister's readings of its instruction counter
    /// ([`Execution::readings`](crate::Execution::readings)) with the page charges up to each.
    pub fn report_readings(&mut self, readings: Readings) {
        self.readings = readings;
    }

    /// Sets the switch that ends later messages of a canister by itself. A message that is ended has no
    /// effect. Forks inherit the switch.
    pub fn end_with(&mut self, halt: Halt) {
        self.halt = Some(halt);
    }

    /// The canister's id.
    pub fn id(&self) -> Principal {
        self.settings.id
    }

    /// The installed module.
    pub fn module(&self) -> Option<&Module> {
        self.module.as_ref()
    }

    /// The rules of its module; the newest ones if there is no module.
    fn rules(&self) -> Rules {
        self.module().map_or_else(Rules::today, Module::rules)
    }

    /// The cycles balance.
    pub fn balance(&self) -> Cycles {
        self.balance
    }

    /// Size of the heap.
    pub fn heap_size(&self) -> WasmPages {
        WasmPages(self.state.heap.size() as u64 / WASM_PAGE)
    }

    /// Size of stable memory.
    pub fn stable_size(&self) -> WasmPages {
        WasmPages(self.state.stable.size() as u64 / WASM_PAGE)
    }

    /// Certified data, empty when not set.
    pub fn certified_data(&self) -> &[u8] {
        &self.state.certified_data
    }

    /// Settings, which messages do not change.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Number of changes to the canister: `ic0.canister_version`.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// Sets the controllers and the largest heap of an update, 0 for no limit.
    pub fn configure(&mut self, controllers: Vec<Principal>, heap_limit: Bytes) {
        let settings = Arc::make_mut(&mut self.settings);
        settings.controllers = controllers;
        settings.heap_limit = heap_limit;
        self.version += 1;
    }

    /// Counts a change that is stored elsewhere: another setting, or starting and stopping the
    /// canister.
    pub fn count_change(&mut self) {
        self.version += 1;
    }

    /// Adds cycles to the balance.
    pub fn add_cycles(&mut self, cycles: Cycles) {
        self.balance = Cycles(self.balance.get().saturating_add(cycles.get()));
    }

    /// Sets the time of the next message, in nanoseconds since 1970. Time never goes back: it is
    /// later than the last message in any case. By default messages are a nanosecond apart.
    pub fn set_time(&mut self, time: u64) {
        self.time = time.max(self.time.saturating_sub(ROUND_DURATION) + 1);
    }

    /// Time of the next message, in nanoseconds since 1970.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Restores module, memories and all other state that code can see from `snapshot`, an earlier
    /// fork. Id, settings, environment variables, cycles and time stay; the timer is off.
    pub fn restore(&mut self, snapshot: &Self) {
        self.module = snapshot.module.clone();
        self.state = snapshot.state.clone();
        self.state.timer = 0;
        self.idle = IdleSlot::default();
        self.version += 1;
    }

    /// Replaces module and memories by those of a snapshot.
    pub(crate) fn replace(&mut self, module: Module, state: State) {
        self.module = Some(module);
        self.state = state;
        self.idle = IdleSlot::default();
        self.version += 1;
    }

    /// Moves the canister to a subnet of another kind, which has other limits and fees. Code cannot see
    /// it.
    pub fn move_to(&mut self, subnet: SubnetKind) {
        if let Some(module) = &self.module {
            self.module = Some(module.on(subnet));
            self.idle = IdleSlot::default();
        }
    }

    /// The environment variables: values by name.
    pub fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Replaces all environment variables, which makes a new version of the canister.
    ///
    /// A name or a value has at most 128 bytes of UTF-8. Code can look up names of at most 100
    /// bytes; longer ones are found only by index.
    ///
    /// # Errors
    ///
    /// If there are more variables than the rules of the module allow (the newest rules if there
    /// is no module), or a name or a value is too long. Then nothing has changed.
    pub fn set_environment(
        &mut self,
        variables: BTreeMap<String, String>,
    ) -> Result<(), EnvironmentError> {
        let settings = self.settings();
        let (controllers, heap_limit) = (settings.controllers.clone(), settings.heap_limit);
        self.configure_with(controllers, heap_limit, variables)
    }

    /// Changes everything that [`Canister::configure`] and [`Canister::set_environment`] change,
    /// which makes one new version of the canister.
    ///
    /// # Errors
    ///
    /// The errors of [`Canister::set_environment`].
    pub fn configure_with(
        &mut self,
        controllers: Vec<Principal>,
        heap_limit: Bytes,
        variables: BTreeMap<String, String>,
    ) -> Result<(), EnvironmentError> {
        check_environment(&variables, max_variables(self.module().map(Module::rules)))?;
        self.environment = Arc::new(variables);
        self.configure(controllers, heap_limit);
        Ok(())
    }

    /// Returns the difference between this canister and `base`, of which it is a fork. Returns
    /// `None` if the two no longer share a state, as after an upgrade. Only pages with different
    /// content count, not the history that led to it.
    ///
    /// # Errors
    ///
    /// If the host cannot read the memories.
    pub fn difference(&self, base: &Self) -> Result<Option<Difference>, HostError> {
        let hash = |canister: &Self| canister.module().map(Module::hash);
        if !Arc::ptr_eq(&self.settings, &base.settings) || hash(self) != hash(base) {
            return Ok(None);
        }
        let Self { time, version, balance, .. } = self;
        Ok(Difference::between(&self.state, &base.state, *time, *version, *balance)?)
    }

    /// Returns the pages whose content differs from that of another canister with the same module.
    /// Returns `None` if the two differ in anything else that a message can observe, except the
    /// time, their versions and their cycles.
    ///
    /// # Errors
    ///
    /// If the host cannot read the memories.
    pub fn differing_pages(&self, other: &Self) -> Result<Option<DifferingPages>, HostError> {
        let hash = |canister: &Self| canister.module().map(Module::hash);
        if hash(self) != hash(other) {
            return Ok(None);
        }
        Ok(DifferingPages::between(&self.state, &other.state)?)
    }

    /// Runs a function of the installed module, and profiles `span` of it. Its changes are not
    /// committed.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. Errors of the canister are in [`Run::result`].
    pub(crate) fn run(
        &self,
        message: Message,
        entry: Entry<'_>,
        total: Instructions,
        span: Option<Span>,
    ) -> Result<(Run, Option<Result<Profile, ProfileError>>), HostError> {
        self.check_consistent()?;
        let Some(module) = &self.module else {
            return Ok((Run::failed(Fault::NoModule, Effects::new(&message)), None));
        };
        let began = now();
        let target = Target { module, state: &self.state, idle: &self.idle };
        let (mut ran, profile) = match span {
            None => (run(target, message, entry, total)?, None),
            Some(span) => {
                let (ran, tree) = run_profiled(target, message, entry, total, span)?;
                let profile = tree.map(|tree| named(module, tree, &ran, span));
                (ran, Some(profile))
            }
        };
        ran.wall = began.elapsed();
        Ok((ran, profile))
    }

    /// Undoes a message that succeeded.
    pub(crate) fn undo(&self, run: &mut Run) -> Result<(), HostError> {
        Ok(run.undo(&self.state, &self.idle)?)
    }

    /// Commits the memories of a message that succeeded.
    pub(crate) fn commit_memories(&mut self, run: &mut Run) -> Result<(), HostError> {
        if let Some(changes) = run.changes.take() {
            changes.commit(&mut self.state, &self.idle)?;
        }
        Ok(())
    }

    /// Commits a message that succeeded, and pays for its calls.
    pub(crate) fn commit(&mut self, run: &mut Run) -> Result<(), HostError> {
        self.version += 1;
        self.commit_memories(run)?;
        let Effects { received, spent, burned, reserved, .. } = run.effects;
        self.balance = self.balance + received - spent - burned - reserved;
        self.reserved += reserved;
        Ok(())
    }

    /// A message to the canister, if it is by itself.
    pub(crate) fn message(
        &self,
        rules: Rules,
        mode: Mode,
        caller: Principal,
        argument: Vec<u8>,
    ) -> Message {
        Message {
            mode,
            rules,
            caller,
            method: String::new(),
            argument,
            canister: self.settings.id,
            controllers: self.settings.controllers.clone(),
            environment: Arc::clone(&self.environment),
            version: self.version,
            balance: self.balance,
            threshold: self.threshold(rules, Bytes(0)),
            status: Status::Running,
            context: Context::default(),
            quota: None,
            reserve: None,
            halt: self.halt.clone(),
            holds_keys: self.holds_keys,
            nodes: self.nodes,
            certificate: None,
            time: self.time,
            timer: self.state.timer,
            heap_limit: self.settings.heap_limit,
            wasm64: self.module.as_ref().is_some_and(Module::is_64_bit),
            reports_calls: self.reports_calls,
            readings: self.readings,
            copies_ahead: false,
        }
    }

    /// Removes the module and the memories.
    pub(crate) fn uninstall(&mut self) -> Result<(), HostError> {
        self.module = None;
        self.state = State::empty()?;
        self.idle = IdleSlot::default();
        self.version += 1;
        Ok(())
    }

    /// Deducts the cost of a message and advances the time.
    fn charge(&mut self, cost: Cycles) {
        self.balance = Cycles(self.balance.get().saturating_sub(cost.get()));
        self.time += ROUND_DURATION;
    }

    /// The balance below which the canister freezes.
    pub(crate) fn threshold(&self, rules: Rules, messages: Bytes) -> Threshold {
        let Allocation { compute, memory: allocated, freezing_seconds: seconds, .. } =
            self.allocation;
        let other = self.sizes(rules).other() + self.stored;
        let reserved = self.reserved;
        Threshold { rules, seconds, other, messages, compute, allocated, reserved }
    }

    /// Bytes of its two memories.
    pub(crate) fn memories(&self) -> Bytes {
        Bytes((self.state.heap.size() + self.state.stable.size()) as u64)
    }

    /// Bytes of its parts.
    pub(crate) fn sizes(&self, rules: Rules) -> Sizes {
        let mut sizes = Sizes {
            heap: Bytes(self.state.heap.size() as u64),
            stable: Bytes(self.state.stable.size() as u64),
            history: self.history.iter().copied().sum(),
            log: self.allocation.log_store(rules),
            ..Sizes::default()
        };
        if let Some(module) = &self.module {
            let sections = &module.info().custom_sections;
            let sections = sections.iter().map(|(name, section)| {
                (name.len() + section.content.len()) as u64 + SECTION_OVERHEAD
            });
            let globals = module.globals().len() as u64 + REPLICA_GLOBALS;
            sizes.globals = Bytes(globals * GLOBAL_SIZE.get());
            sizes.module = Bytes(module.uploaded().len() as u64);
            sizes.sections = Bytes(sections.sum());
        }
        sizes
    }

    /// Adds a change to the history, of which the replica keeps the last ones.
    pub(crate) fn count_in_history(&mut self, controllers: Option<usize>) {
        self.record_change(change_size(controllers.unwrap_or_default()));
    }

    /// The history of a canister that was created and installed, for one that is loaded.
    pub(crate) fn history_of(settings: &Settings) -> VecDeque<Bytes> {
        VecDeque::from([creation_size(settings.controllers.len()), CHANGE_SIZE])
    }

    /// Adds a change to the history, of which the replica keeps the last ones.
    fn record_change(&mut self, bytes: Bytes) {
        if self.history.len() == MAX_HISTORY {
            self.history.pop_front();
        }
        self.history.push_back(bytes);
    }

    /// Returns an error if a message was committed only in part.
    pub(crate) fn check_consistent(&self) -> Result<(), HostError> {
        if self.state.torn { Err(HostError::Torn) } else { Ok(()) }
    }
}

/// Adds names and the charge for changed heap pages to the call tree of a message.
fn named(module: &Module, tree: CallTree, run: &Run, span: Span) -> Profile {
    let Some(profiled) = module.profiled().ok().filter(|_| !tree.is_empty()) else {
        return Profile::default();
    };
    let pages = run.charge.get().saturating_sub(run.instructions.get());
    let pages = if span == Span::Message { pages } else { 0 };
    tree.named(&profiled.names, Instructions(pages))
}

/// Wall time is reported next to the counts and never affects them.
#[expect(clippy::disallowed_methods, reason = "the only clock, for `Execution::wall`")]
fn now() -> Instant {
    Instant::now()
}
