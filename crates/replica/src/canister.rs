//! A canister: its module, what it keeps, and the messages that it takes.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::time::Instant;

use ic_principal::Principal;

use crate::cycles;
use crate::execution::{Execution, all_calls};
use crate::fault::Fault;
use crate::live::Spare;
use crate::module::Module;
use crate::profile::recorder::Recorded;
use crate::profile::{Profile, ProfileError, Span};
use crate::reject::{ErrorCode, Reject};
use crate::rules::Rules;
use crate::run::{Place, Run, run, run_profiled};
use crate::state::State;
use crate::system_api::message::{Answer, Message, Mode};
use crate::system_api::names::AddressWidth;
use crate::units::{Bytes, Cycles, Instructions, WASM_PAGE, WasmPages};
use crate::validate::{EntryPoint, MethodKind};

/// The host could not go on.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// It is out of memory, of disk or of file descriptors.
    #[error("the embedded replica has no memory left for the canister")]
    Exhausted(#[from] io::Error),
    /// It was, while it kept what a message had changed: the canister holds a part of that.
    #[error(
        "the embedded replica ran out of memory while it kept a message, so the canister is neither \
         as before nor as after; install it again, restore a snapshot, or load it as it was saved"
    )]
    Torn,
}

/// What stays the same for all messages of a canister.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The canister's id.
    pub id: Principal,
    /// Who may manage the canister.
    pub controllers: Vec<Principal>,
    /// Cycles that it has.
    pub balance: Cycles,
    /// Largest heap of an update; 0 for none.
    pub heap_limit: Bytes,
}

/// A canister on the embedded replica.
#[derive(Debug)]
pub struct Canister {
    pub(crate) settings: Arc<Settings>,
    pub(crate) environment: Arc<BTreeMap<String, String>>,
    pub(crate) module: Option<Module>,
    pub(crate) state: State,
    pub(crate) spare: Spare,
    pub(crate) reports_calls: bool,
    pub(crate) reports_readings: bool,
    pub(crate) balance: Cycles,
    pub(crate) version: u64,
    pub(crate) time: u64,
}

/// Nanoseconds since 1970 at which every canister begins, so that runs are alike.
const BEGINNING: u64 = 1_620_328_630_000_000_000;
/// Nanoseconds between two messages.
pub(crate) const ROUND: u64 = 1_000_000_000;

impl Canister {
    /// A canister without a module.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn new(settings: Settings) -> Result<Self, HostError> {
        Ok(Self {
            balance: settings.balance,
            settings: Arc::new(settings),
            environment: Arc::default(),
            module: None,
            state: State::empty()?,
            spare: Spare::default(),
            reports_calls: false,
            reports_readings: false,
            version: 0,
            time: BEGINNING,
        })
    }

    /// A second canister with the same content. Neither sees what the other
    /// does from here on; nothing is copied until it is written.
    #[must_use]
    pub fn fork(&self) -> Self {
        Self {
            settings: Arc::clone(&self.settings),
            environment: Arc::clone(&self.environment),
            module: self.module.clone(),
            state: self.state.clone(),
            spare: Spare::default(),
            reports_calls: self.reports_calls,
            reports_readings: self.reports_readings,
            balance: self.balance,
            version: self.version,
            time: self.time,
        }
    }

    /// Whether messages from now on report their calls of the System API by name
    /// ([`Execution::system_calls`]). They do not unless asked; forks do as the canister that
    /// they are of.
    pub fn report_calls(&mut self, report: bool) {
        self.reports_calls = report;
    }

    /// Sets whether messages from now on report the canister's readings of its counter
    /// ([`Execution::readings`]), with the cost of pages by then.
    pub fn report_readings(&mut self, report: bool) {
        self.reports_readings = report;
    }

    /// The canister's id.
    pub fn id(&self) -> Principal {
        self.settings.id
    }

    /// The installed module.
    pub fn module(&self) -> Option<&Module> {
        self.module.as_ref()
    }

    /// Cycles that the canister has.
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

    /// Refuses to go on with a canister that holds a part of a message.
    pub(crate) fn whole(&self) -> Result<(), HostError> {
        if self.state.torn { Err(HostError::Torn) } else { Ok(()) }
    }

    /// Calls a method as an update. It is a message of its own: it changes all
    /// that it changes, or nothing if it fails.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. What the canister does wrong is in
    /// [`Execution::outcome`].
    pub fn update(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        self.update_by(caller, method, argument, run)
    }

    fn update_by(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        run: impl FnOnce(Place<'_>, Message, &str, Instructions) -> io::Result<Run>,
    ) -> Result<Execution, HostError> {
        self.whole()?;
        let began = now();
        let id = self.id();
        let Some(module) = self.module.clone() else {
            // The message is not let in, which the replica words in its own way.
            return Ok(Execution::refused(Reject {
                code: ErrorCode::CanisterWasmModuleNotFound,
                message: "Requested canister has no wasm module".to_owned(),
            }));
        };
        let rules = module.rules();
        let induction = cycles::induction(rules, method, argument);
        if let Some(reject) = too_large(rules, argument) {
            return Ok(Execution::refused(reject));
        }
        if module.has(EntryPoint::InspectMessage)
            && let Some(reject) = self.inspect(&module, caller, method, argument)?
        {
            return Ok(Execution::refused(reject));
        }
        let (mode, prefix) = match module.method(method) {
            Some(MethodKind::Update) => (Mode::Update, "canister_update"),
            Some(MethodKind::Query) => (Mode::ReplicatedQuery, "canister_query"),
            Some(MethodKind::CompositeQuery) => {
                return Ok(Execution::refused(Reject {
                    code: ErrorCode::CompositeQueryCalledInReplicatedMode,
                    message: "Composite query cannot be called in replicated mode".to_owned(),
                }));
            }
            None => {
                let fault = Fault::MethodNotFound { kind: "update", name: method.to_owned() };
                let mut execution = Execution::of(Err(fault.reject(&id)));
                execution.cycles = induction + cycles::execution(rules, Instructions(0), false);
                return Ok(self.paid(execution));
            }
        };
        let mut message = self.message(rules, mode, caller, argument.to_vec());
        // What the message may cost at the most is set aside while it runs.
        let most = mode.instructions(rules).0;
        let set_aside = induction + cycles::execution(rules, most, is_64_bit(&module));
        message.balance = Cycles(message.balance.get().saturating_sub(set_aside.get()));
        let export = exported(&format!("{prefix} {method}"));
        let mut ran = run(self.place(&module), message, &export, rules.instructions().update)?;
        // A query's too: what it changes is dropped, that it ran is not.
        self.version += u64::from(ran.result.is_ok());
        if let Some(changes) = ran.changes.take() {
            changes.commit(&mut self.state, &self.spare)?;
        }
        let mut execution = answered(&id, ran, "did not reply to the call");
        execution.cycles = execution.cycles
            + induction
            + cycles::execution(rules, execution.charge, is_64_bit(&module));
        execution.wall = began.elapsed();
        Ok(self.paid(execution))
    }

    /// Calls a method as a query. Nothing that it does stays.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. What the canister does wrong is in
    /// [`Execution::outcome`].
    pub fn query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        self.ask(caller, method, argument, false, run)
    }

    /// Cycles that a query would cost as an ingress message that uses the same instructions, as a
    /// query does that is called as an update. Queries themselves cost none.
    pub fn cycles_as_update(&self, method: &str, argument: &[u8], query: &Execution) -> Cycles {
        let Some(module) = &self.module else {
            return Cycles(0);
        };
        let rules = module.rules();
        cycles::induction(rules, method, argument)
            + cycles::execution(rules, query.charge, is_64_bit(module))
    }

    /// Calls a method as a query that goes through most of what the canister holds.
    ///
    /// It does what [`Canister::query`] does, faster where the canister writes to most pages
    /// of its heap, as SQLite does to those of its cache when it reads them: they are copied
    /// together before it runs, not one by one. [`MemoryUse::heap_written`] may then count all
    /// pages of the heap, and its counts lack what touching pages of the heap costs: it is for
    /// the reply, not for measuring.
    ///
    /// # Errors
    ///
    /// Those of [`Canister::query`].
    ///
    /// [`MemoryUse::heap_written`]: crate::MemoryUse::heap_written
    pub fn query_all(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        self.ask(caller, method, argument, true, run)
    }

    /// Calls a method as [`Canister::update`] does, and tells where the instructions of the
    /// message go, or of a span of it. The profile of a message that fails goes up to there;
    /// that of one that never began is empty.
    ///
    /// What the message does, answers and costs is the same. One that fails for its stack is
    /// the exception, on whose depth compiled code decides.
    ///
    /// # Errors
    ///
    /// If the host has no memory left, or the canister did not read its counter where the span
    /// begins or ends.
    pub fn profile_update(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        span: Span,
    ) -> Result<(Execution, Profile), ProfileError> {
        let mut recorded = Ok(Recorded::default());
        let execution =
            self.update_by(caller, method, argument, |place, message, export, total| {
                let (run, tree) = run_profiled(place, message, export, total, span)?;
                recorded = tree;
                Ok(run)
            })?;
        self.profile(execution, recorded?, span)
    }

    /// Calls a method as [`Canister::query`] does, and tells where its instructions go.
    ///
    /// # Errors
    ///
    /// Those of [`Canister::profile_update`].
    pub fn profile_query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        span: Span,
    ) -> Result<(Execution, Profile), ProfileError> {
        let mut recorded = Ok(Recorded::default());
        let execution =
            self.ask(caller, method, argument, false, |place, message, export, total| {
                let (run, tree) = run_profiled(place, message, export, total, span)?;
                recorded = tree;
                Ok(run)
            })?;
        self.profile(execution, recorded?, span)
    }

    fn profile(
        &self,
        execution: Execution,
        recorded: Recorded,
        span: Span,
    ) -> Result<(Execution, Profile), ProfileError> {
        let profiled = self.module.as_ref().and_then(|module| module.profiled().ok());
        let Some(profiled) = profiled.filter(|_| !recorded.is_empty()) else {
            return Ok((execution, Profile::default()));
        };
        let pages = execution.charge.get().saturating_sub(execution.instructions.get());
        let pages = if span == Span::Message { pages } else { 0 };
        let profile = recorded.named(&profiled.names, Instructions(pages));
        Ok((execution, profile))
    }

    fn ask(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        copies_ahead: bool,
        run: impl FnOnce(Place<'_>, Message, &str, Instructions) -> io::Result<Run>,
    ) -> Result<Execution, HostError> {
        self.whole()?;
        let began = now();
        let id = self.id();
        let Some(module) = &self.module else {
            return Ok(Execution::refused(Fault::NoModule.reject(&id)));
        };
        let rules = module.rules();
        if let Some(reject) = too_large(rules, argument) {
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
        let ran = run(self.place(module), message, &export, rules.instructions().query)?;
        let mut execution = answered(&id, ran, "did not produce a response");
        execution.cycles = Cycles(0);
        execution.wall = began.elapsed();
        Ok(execution)
    }

    /// Asks `canister_inspect_message`; answers why the message is not let in.
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
        let ran = run(self.place(module), message, &export, rules.instructions().inspect)?;
        Ok(match ran.result {
            Err(fault) => Some(fault.reject(&self.id())),
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

    fn place<'a>(&'a self, module: &'a Module) -> Place<'a> {
        Place { module, state: &self.state, spare: &self.spare }
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
            memory: self.memory(),
            time: self.time,
            timer: self.state.timer,
            heap_limit: self.settings.heap_limit,
            reports_calls: self.reports_calls,
            reports_readings: self.reports_readings,
            copies_ahead: false,
        }
    }

    fn memory(&self) -> Bytes {
        let module = self.module.as_ref().map_or(0, |module| module.uploaded().len());
        Bytes((self.state.heap.size() + self.state.stable.size() + module) as u64)
    }

    pub(crate) fn paid(&mut self, execution: Execution) -> Execution {
        self.balance = Cycles(self.balance.get().saturating_sub(execution.cycles.get()));
        self.time += ROUND;
        execution
    }
}

/// Wall time is told beside the counts and never part of them.
#[expect(clippy::disallowed_methods, reason = "the one clock, for `Execution::wall`")]
fn now() -> Instant {
    Instant::now()
}

pub(crate) fn is_64_bit(module: &Module) -> bool {
    module.rewritten().address_width == AddressWidth::Bits64
}

/// The name under which the rewritten module exports a function.
pub(crate) fn exported(name: &str) -> String {
    format!("function {name}")
}

/// The reject of an argument that is longer than a message takes.
pub(crate) fn too_large(rules: Rules, argument: &[u8]) -> Option<Reject> {
    let (bytes, most) = (argument.len(), rules.set().messages.argument);
    (bytes as u64 > most.get()).then(|| Reject {
        code: ErrorCode::InvalidManagementPayload,
        message: format!("the argument has {bytes} bytes, a message takes at most {most}"),
    })
}

/// What the caller gets.
fn answered(id: &Principal, ran: Run, silence: &str) -> Execution {
    let burned = ran.burned();
    let outcome = match ran.result {
        Err(fault) => Err(fault.reject(id)),
        Ok(()) => match ran.effects.answer {
            Answer::Reply(reply) => Ok(reply),
            Answer::Reject(message) => {
                Err(Reject { code: ErrorCode::CanisterRejectedMessage, message })
            }
            Answer::Pending(_) => Err(Reject {
                code: ErrorCode::CanisterDidNotReply,
                message: format!("Canister {id} {silence}"),
            }),
        },
    };
    Execution {
        instructions: ran.instructions,
        charge: ran.charge,
        cycles: burned,
        pages: ran.pages,
        readings: ran.readings,
        memory: ran.memory,
        stable_calls: ran.stable_calls.stable(),
        system_calls: all_calls(&ran.stable_calls, ran.calls),
        printed: ran.effects.printed,
        ..Execution::of(outcome)
    }
}
