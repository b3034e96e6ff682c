//! A canister: its module, its state, and the messages that it executes.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::Arc;
use std::time::Instant;

use ic_management_canister_types::WasmMemoryPersistence;
use ic_principal::Principal;

use crate::cycles;
use crate::difference::{Difference, DifferingPages};
use crate::environment::{self, EnvironmentError};
use crate::execution::{Execution, Readings};
use crate::fault::{ErrorCode, Fault, HostError, Reject};
use crate::install::{self, InstallRun, Upgrade};
use crate::instance::{Entry, IdleSlot};
use crate::memory::Image;
use crate::module::Module;
use crate::profile::{CallTree, Profile, ProfileError, Span};
use crate::rules::Rules;
use crate::run::{Run, Target, run, run_profiled};
use crate::sizes::{Allocation, CHANGE_SIZE, creation_size};
use crate::state::State;
use crate::subnet::Halt;
use crate::system_api::message::{Context, Effects, Message, Mode, Status};
use crate::system_api::names::AddressWidth;
use crate::units::{Bytes, Cycles, Instructions, WASM_PAGE, WasmPages};
use crate::validate::{EntryPoint, MethodKind};

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
    /// The switch of its subnet, which holds threshold keys. `None` if the canister is by itself.
    pub(crate) halt: Option<Halt>,
    /// Number of nodes of its subnet.
    pub(crate) nodes: u32,
}

/// An installation, and the error that ended it.
#[derive(Debug)]
pub(crate) struct Installed {
    pub execution: Execution,
    pub fault: Option<Fault>,
}

impl Installed {
    fn refused(reject: Reject) -> Self {
        Self { execution: Execution::refused(reject), fault: None }
    }
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
            history: VecDeque::from([creation_size(&settings)]),
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
            nodes: cycles::NODES as u32,
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
            nodes: self.nodes,
        }
    }

    /// Sets whether later messages report their System API calls by name
    /// ([`Execution::system_calls`]). Off by default; forks inherit the setting.
    pub fn report_calls(&mut self, report: bool) {
        self.reports_calls = report;
    }

    /// Sets whether later messages report the canister's readings of its instruction counter
    /// ([`Execution::readings`]) with the page charges up to each.
    pub fn report_readings(&mut self, readings: Readings) {
        self.readings = readings;
    }

    /// The canister's id.
    pub fn id(&self) -> Principal {
        self.settings.id
    }

    /// The installed module.
    pub fn module(&self) -> Option<&Module> {
        self.module.as_ref()
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

    /// Calls a method as an update. All changes of the message are committed, or none if it fails.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. Errors of the canister are in [`Execution::outcome`].
    pub fn update(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        self.update_with(caller, method, argument, run)
    }

    /// Calls a method as a query. Its changes are dropped.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. Errors of the canister are in [`Execution::outcome`].
    pub fn query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        self.query_with(caller, method, argument, false, run)
    }

    /// Returns the cycles that a query would cost as an ingress message with the same number of
    /// instructions. Queries themselves are free.
    pub fn cycles_as_update(&self, method: &str, argument: &[u8], query: &Execution) -> Cycles {
        let Some(module) = &self.module else {
            return Cycles(0);
        };
        let rules = module.rules();
        cycles::induction(rules, method, argument)
            + cycles::execution(rules, query.charge, is_64_bit(module))
    }

    /// Calls a method as a query that touches most of the canister's heap.
    ///
    /// The reply is that of [`Canister::query`]. It is faster if the canister writes to most pages
    /// of its heap, as SQLite does when it fills its cache: the pages are copied together before
    /// the query instead of one by one. The counts are not exact: charges for touching heap pages
    /// are missing.
    ///
    /// # Errors
    ///
    /// The errors of [`Canister::query`].
    pub fn query_all(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        self.query_with(caller, method, argument, true, run)
    }

    /// Calls a method as [`Canister::update`] does and profiles the message or a span of it. If
    /// the message fails, the profile ends there; if it was not executed, the profile is empty.
    ///
    /// Outcome and cost are those of the update without profiling, except that the stack depth at
    /// which a message overflows the stack depends on the compiled code.
    ///
    /// # Errors
    ///
    /// If the host has no memory left, or the canister did not read its counter at the start or
    /// end of the span.
    pub fn profile_update(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        span: Span,
    ) -> Result<(Execution, Profile), ProfileError> {
        let mut tree = Ok(CallTree::default());
        let execution =
            self.update_with(caller, method, argument, |target, message, entry, total| {
                let (run, recorded) = run_profiled(target, message, entry, total, span)?;
                tree = recorded;
                Ok(run)
            })?;
        let Execution { instructions, charge, .. } = execution;
        Ok((execution, self.named(tree?, instructions, charge, span)))
    }

    /// Calls a method as [`Canister::query`] does and profiles it.
    ///
    /// # Errors
    ///
    /// The errors of [`Canister::profile_update`].
    pub fn profile_query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        span: Span,
    ) -> Result<(Execution, Profile), ProfileError> {
        let mut tree = Ok(CallTree::default());
        let execution =
            self.query_with(caller, method, argument, false, |target, message, entry, total| {
                let (run, recorded) = run_profiled(target, message, entry, total, span)?;
                tree = recorded;
                Ok(run)
            })?;
        let Execution { instructions, charge, .. } = execution;
        Ok((execution, self.named(tree?, instructions, charge, span)))
    }

    /// Installs or reinstalls a module: heap and stable memory are emptied, then `start` and
    /// `canister_init` run.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. Errors of the canister are in [`Execution::outcome`]; then
    /// nothing has changed.
    pub fn install(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        self.install_module(module, caller, argument).map(|installed| installed.execution)
    }

    /// Installs a module as [`Canister::install`] does.
    pub(crate) fn install_module(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
    ) -> Result<Installed, HostError> {
        if let Some(reject) = reject_large_argument(module.rules(), argument) {
            return Ok(Installed::refused(reject));
        }
        let state = State::initial(module, Image::new())?;
        self.install_code(module, caller, argument, state, EntryPoint::Init, InstallRun::default())
    }

    /// Replaces the module: `canister_pre_upgrade` of the old one runs, the heap is emptied,
    /// stable memory stays, then `start` and `canister_post_upgrade` run.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. Errors of the canister are in [`Execution::outcome`]; then
    /// nothing has changed.
    pub fn upgrade(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        self.upgrade_module(module, caller, argument, Upgrade::default())
            .map(|installed| installed.execution)
    }

    /// Replaces the module as [`Canister::upgrade`] does, but keeps the heap, as with the option
    /// `wasm_memory_persistence = keep` of `install_code`. Both modules must have enhanced orthogonal
    /// persistence.
    ///
    /// # Errors
    ///
    /// The errors of [`Canister::upgrade`].
    pub fn upgrade_keeping_heap(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        let persistence = Some(WasmMemoryPersistence::Keep);
        let upgrade = Upgrade { persistence, ..Upgrade::default() };
        self.upgrade_module(module, caller, argument, upgrade).map(|installed| installed.execution)
    }

    /// Replaces the module as [`Canister::upgrade`] does, but does not run `canister_pre_upgrade`, as
    /// with the option `skip_pre_upgrade` of `install_code`.
    ///
    /// # Errors
    ///
    /// The errors of [`Canister::upgrade`].
    pub fn upgrade_without_pre_upgrade(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        let upgrade = Upgrade { skip_pre_upgrade: true, ..Upgrade::default() };
        self.upgrade_module(module, caller, argument, upgrade).map(|installed| installed.execution)
    }

    /// Replaces the module as [`Canister::upgrade`] does, with options.
    pub(crate) fn upgrade_module(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
        upgrade: Upgrade,
    ) -> Result<Installed, HostError> {
        self.check_consistent()?;
        let mut run = InstallRun::default();
        let Some(old) = self.module.clone() else {
            let fault = Fault::NoModule;
            let execution = Execution::refused(fault.reject(&self.id()));
            return Ok(Installed { execution, fault: Some(fault) });
        };
        if let Some(reject) = reject_large_argument(module.rules(), argument) {
            return Ok(Installed::refused(reject));
        }
        let mut state = self.state.clone();
        if old.has(EntryPoint::PreUpgrade) && !upgrade.skip_pre_upgrade {
            let name = EntryPoint::PreUpgrade.name();
            let message = self.message(old.rules(), Mode::PreUpgrade, caller, Vec::new());
            if let Err(fault) = run.execute(&old, &mut state, message, &exported(name))? {
                return Ok(self.install_failed(&run, fault));
            }
        }
        let keeps_heap = match install::keeps_heap(&old, module, upgrade.persistence, &state) {
            Ok(keeps_heap) => keeps_heap,
            Err(reject) => {
                let execution = self.charge(run.execution(Err(reject), Cycles(0)));
                return Ok(Installed { execution, fault: None });
            }
        };
        let State { heap, stable, certified_data, .. } = state;
        let mut state = State { certified_data, ..State::initial(module, stable)? };
        if keeps_heap {
            state.keep_heap(heap)?;
        }
        self.install_code(module, caller, argument, state, EntryPoint::PostUpgrade, run)
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
        environment::check(
            &variables,
            environment::max_variables(self.module().map(Module::rules)),
        )?;
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

    fn update_with(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        run: impl FnOnce(Target<'_>, Message, Entry<'_>, Instructions) -> io::Result<Run>,
    ) -> Result<Execution, HostError> {
        self.check_consistent()?;
        let began = now();
        let id = self.id();
        if let Some(reject) = self.admit(caller, method, argument)? {
            return Ok(Execution::refused(reject));
        }
        let Some(module) = self.module.clone() else {
            return Ok(Execution::refused(Fault::NoModule.reject(&id)));
        };
        let rules = module.rules();
        let induction = cycles::induction(rules, method, argument);
        let (mode, prefix) = match module.method(method) {
            Some(MethodKind::Update) => (Mode::Update, "canister_update"),
            Some(MethodKind::Query) => (Mode::ReplicatedQuery, "canister_query"),
            Some(MethodKind::CompositeQuery) | None => {
                let fault = Fault::MethodNotFound { kind: "update", name: method.to_owned() };
                let mut execution = Execution::of(Err(fault.reject(&id)));
                execution.cycles = induction + cycles::execution(rules, Instructions(0), false);
                return Ok(self.charge(execution));
            }
        };
        let mut message = self.message(rules, mode, caller, argument.to_vec());
        // The maximum cost of the message is reserved while it runs.
        let max = mode.instructions(rules).0;
        let reserved = induction + cycles::execution(rules, max, is_64_bit(&module));
        message.balance = Cycles(message.balance.get().saturating_sub(reserved.get()));
        let export = exported(&format!("{prefix} {method}"));
        let mut ran = run(
            self.target(&module),
            message,
            Entry::Export(&export),
            rules.instructions().update,
        )?;
        // A replicated query counts too, although its changes are dropped.
        self.version += u64::from(ran.result.is_ok());
        if let Some(changes) = ran.changes.take() {
            changes.commit(&mut self.state, &self.idle)?;
        }
        ran.hide_backtrace(self.settings.controllers.contains(&caller));
        let mut execution = ran.into_execution(&id, "did not reply to the call");
        execution.cycles = execution.cycles
            + induction
            + cycles::execution(rules, execution.charge, is_64_bit(&module));
        execution.wall = began.elapsed();
        Ok(self.charge(execution))
    }

    /// Adds names and the charge for changed heap pages to the call tree of a message.
    fn named(
        &self,
        tree: CallTree,
        counted: Instructions,
        charge: Instructions,
        span: Span,
    ) -> Profile {
        let profiled = self.module.as_ref().and_then(|module| module.profiled().ok());
        let Some(profiled) = profiled.filter(|_| !tree.is_empty()) else {
            return Profile::default();
        };
        let pages = charge.get().saturating_sub(counted.get());
        let pages = if span == Span::Message { pages } else { 0 };
        tree.named(&profiled.names, Instructions(pages))
    }

    fn query_with(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        copies_ahead: bool,
        run: impl FnOnce(Target<'_>, Message, Entry<'_>, Instructions) -> io::Result<Run>,
    ) -> Result<Execution, HostError> {
        self.check_consistent()?;
        let began = now();
        let id = self.id();
        let Some(module) = &self.module else {
            return Ok(Execution::refused(Fault::NoModule.reject(&id)));
        };
        let rules = module.rules();
        if let Some(reject) = reject_large_argument(rules, argument) {
            return Ok(Execution::refused(reject));
        }
        let (mode, prefix) = match module.method(method) {
            Some(MethodKind::Query) => (Mode::Query, "canister_query"),
            Some(MethodKind::CompositeQuery) => (Mode::CompositeQuery, "canister_composite_query"),
            Some(MethodKind::Update) | None => {
                let fault = Fault::MethodNotFound { kind: "query", name: method.to_owned() };
                return Ok(Execution::refused(fault.reject(&id)));
            }
        };
        let message = self.message(rules, mode, caller, argument.to_vec());
        let message = Message { copies_ahead, ..message };
        let export = exported(&format!("{prefix} {method}"));
        let entry = Entry::Export(&export);
        let mut ran = run(self.target(module), message, entry, rules.instructions().query)?;
        self.undo(&mut ran)?;
        ran.hide_backtrace(self.settings.controllers.contains(&caller));
        let mut execution = ran.into_execution(&id, "did not produce a response");
        execution.cycles = Cycles(0);
        execution.wall = began.elapsed();
        Ok(execution)
    }

    /// Runs `canister_inspect_message`. Returns a reject if the message is not accepted.
    fn inspect(
        &self,
        module: &Module,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Option<Reject>, HostError> {
        let rules = module.rules();
        let mut message = self.message(rules, Mode::InspectMessage, caller, argument.to_vec());
        method.clone_into(&mut message.method);
        let export = exported(EntryPoint::InspectMessage.name());
        let ran = run(
            self.target(module),
            message,
            Entry::Export(&export),
            rules.instructions().inspect,
        )?;
        Ok(match ran.result {
            Err(fault) => {
                let sees_log = self.settings.controllers.contains(&caller);
                Some(fault.seen(sees_log).reject(&self.id()))
            }
            Ok(()) if ran.effects.accepted => None,
            Ok(()) => Some(Reject {
                code: ErrorCode::CanisterRejectedMessage,
                message: format!(
                    "Error from Canister {}: Canister rejected the message",
                    self.id()
                ),
            }),
        })
    }

    /// Runs a function of the installed module, and profiles it if `profiled` is true. Its changes
    /// are not committed.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. Errors of the canister are in [`Run::result`].
    pub(crate) fn run(
        &self,
        message: Message,
        entry: Entry<'_>,
        total: Instructions,
        profiled: bool,
    ) -> Result<Run, HostError> {
        self.check_consistent()?;
        let Some(module) = &self.module else {
            return Ok(Run::failed(Fault::NoModule, Effects::new(&message)));
        };
        let began = now();
        let target = self.target(module);
        let mut ran = if profiled {
            let (mut ran, tree) = run_profiled(target, message, entry, total, Span::Message)?;
            let profile = self.named(tree?, ran.instructions, ran.charge, Span::Message);
            ran.profile = Some(Box::new(profile));
            ran
        } else {
            run(target, message, entry, total)?
        };
        ran.wall = began.elapsed();
        Ok(ran)
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

    /// Returns the reject of an ingress message that is not admitted.
    pub(crate) fn admit(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Option<Reject>, HostError> {
        self.check_consistent()?;
        let Some(module) = &self.module else {
            // The replica rejects the message before execution, with another text.
            return Ok(Some(Reject {
                code: ErrorCode::CanisterWasmModuleNotFound,
                message: "Requested canister has no wasm module".to_owned(),
            }));
        };
        if let Some(reject) = reject_large_argument(module.rules(), argument) {
            return Ok(Some(reject));
        }
        if module.has(EntryPoint::InspectMessage)
            && let Some(reject) = self.inspect(module, caller, method, argument)?
        {
            return Ok(Some(reject));
        }
        let composite = module.method(method) == Some(MethodKind::CompositeQuery);
        Ok(composite.then(|| Reject {
            code: ErrorCode::CompositeQueryCalledInReplicatedMode,
            message: "Composite query cannot be called in replicated mode".to_owned(),
        }))
    }

    fn target<'a>(&'a self, module: &'a Module) -> Target<'a> {
        Target { module, state: &self.state, idle: &self.idle }
    }

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
            holds_keys: self.halt.is_some(),
            nodes: self.nodes,
            certificate: None,
            time: self.time,
            timer: self.state.timer,
            heap_limit: self.settings.heap_limit,
            wasm64: self.module.as_ref().is_some_and(is_64_bit),
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
    fn charge(&mut self, execution: Execution) -> Execution {
        self.balance = Cycles(self.balance.get().saturating_sub(execution.cycles.get()));
        self.time += ROUND_DURATION;
        execution
    }

    /// Returns an error if a message was committed only in part.
    pub(crate) fn check_consistent(&self) -> Result<(), HostError> {
        if self.state.torn { Err(HostError::Torn) } else { Ok(()) }
    }

    fn install_code(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
        mut state: State,
        entry_point: EntryPoint,
        mut run: InstallRun,
    ) -> Result<Installed, HostError> {
        let (peak, limit) = (Bytes(state.heap.size() as u64), self.settings.heap_limit);
        if limit != Bytes(0) && peak > limit {
            return Ok(self.install_failed(&run, Fault::WasmMemoryLimit { peak, limit }));
        }
        let start = module.rewritten().has_start.then(|| ("start".to_owned(), Mode::Start));
        let entry = module.has(entry_point).then(|| (exported(entry_point.name()), Mode::Init));
        for (export, mode) in start.into_iter().chain(entry) {
            // The functions already see the version that the new module makes.
            let message = Message {
                version: self.version + 1,
                timer: state.timer,
                balance: self.balance - run.burned,
                ..self.message(module.rules(), mode, caller, argument.to_vec())
            };
            if let Err(fault) = run.execute(module, &mut state, message, &export)? {
                return Ok(self.install_failed(&run, fault));
            }
        }
        self.module = Some(module.clone());
        self.state = state;
        self.idle = IdleSlot::default();
        self.version += 1;
        self.record_change(CHANGE_SIZE);
        let costs_more = costs_more_to_install(module.rules(), is_64_bit(module));
        let cycles = cycles::execution(module.rules(), run.charge, costs_more) + run.burned;
        let execution = self.charge(run.execution(Ok(Vec::new()), cycles));
        Ok(Installed { execution, fault: None })
    }

    fn install_failed(&mut self, run: &InstallRun, fault: Fault) -> Installed {
        let execution = run.execution(Err(fault.reject(&self.id())), Cycles(0));
        Installed { execution: self.charge(execution), fault: Some(fault) }
    }
}

/// Wall time is reported next to the counts and never affects them.
#[expect(clippy::disallowed_methods, reason = "the only clock, for `Execution::wall`")]
fn now() -> Instant {
    Instant::now()
}

pub(crate) fn is_64_bit(module: &Module) -> bool {
    module.rewritten().address_width == AddressWidth::Bits64
}

/// Returns true if installing a module costs as much as executing code with a 64-bit heap.
pub(crate) fn costs_more_to_install(rules: Rules, is_64_bit: bool) -> bool {
    is_64_bit && !rules.set().installs_at_32_bit_rate
}

/// The name under which the rewritten module exports a function.
pub(crate) fn exported(name: &str) -> String {
    format!("function {name}")
}

/// Rejects an argument that exceeds the limit of a message.
pub(crate) fn reject_large_argument(rules: Rules, argument: &[u8]) -> Option<Reject> {
    let (bytes, most) = (argument.len(), rules.set().messages.argument);
    (bytes as u64 > most.get()).then(|| Reject {
        code: ErrorCode::InvalidManagementPayload,
        message: format!("the argument has {bytes} bytes, a message takes at most {most}"),
    })
}
