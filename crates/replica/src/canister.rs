//! A canister: its module, what it keeps, and the messages that it takes.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use ic_principal::Principal;

use crate::cycles;
use crate::execution::{Execution, MemoryUse};
use crate::fault::Fault;
use crate::limits;
use crate::memory::{Image, PAGE};
use crate::module::Module;
use crate::reject::{ErrorCode, Reject};
use crate::run::{Run, State, run};
use crate::system_api::message::{Answer, Message, Mode};
use crate::system_api::names::AddressWidth;
use crate::units::{Bytes, Cycles, Instructions, WASM_PAGE, WasmPages};
use crate::validate::{EntryPoint, MethodKind};

/// The host could not go on: it is out of memory or of disk.
#[derive(Debug, thiserror::Error)]
#[error("the embedded replica has no memory left for the canister")]
pub struct HostError(#[from] io::Error);

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
    pub(crate) module: Option<Module>,
    pub(crate) state: State,
    pub(crate) balance: Cycles,
    pub(crate) version: u64,
    pub(crate) time: u64,
}

/// Nanoseconds since 1970 at which every canister begins, so that runs are alike.
const BEGINNING: u64 = 1_620_328_630_000_000_000;
/// Nanoseconds between two messages.
const ROUND: u64 = 1_000_000_000;

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
            module: None,
            state: State::empty()?,
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
            module: self.module.clone(),
            state: self.state.clone(),
            balance: self.balance,
            version: self.version,
            time: self.time,
        }
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

    /// Installs a module into the empty canister, or anew after emptying it:
    /// heap and stable memory begin empty, `start` and `canister_init` run.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. What the canister does wrong is in
    /// [`Execution::outcome`], and then nothing has changed.
    pub fn install(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        let stable = Image::new()?;
        self.code(
            module,
            caller,
            argument,
            stable,
            EntryPoint::Init,
            Steps::default(),
        )
    }

    /// Replaces the module: `canister_pre_upgrade` of the old one runs, the heap
    /// begins anew, stable memory stays, `start` and `canister_post_upgrade` run.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. What the canister does wrong is in
    /// [`Execution::outcome`], and then nothing has changed.
    pub fn upgrade(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        let mut steps = Steps::default();
        let Some(old) = self.module.clone() else {
            return Ok(Execution::refused(Fault::NoModule.reject(&self.id())));
        };
        let mut state = self.state.clone();
        if old.has(EntryPoint::PreUpgrade) {
            let name = EntryPoint::PreUpgrade.name();
            let message = self.message(Mode::PreUpgrade, caller, Vec::new());
            if let Err(fault) = steps.run(&old, &mut state, message, &exported(name))? {
                return Ok(self.code_failed(&steps, &fault));
            }
        }
        self.code(
            module,
            caller,
            argument,
            state.stable,
            EntryPoint::PostUpgrade,
            steps,
        )
    }

    fn code(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
        stable: Image,
        entry_point: EntryPoint,
        mut steps: Steps,
    ) -> Result<Execution, HostError> {
        let mut state = State::of(module, stable)?;
        let start = module
            .rewritten()
            .has_start
            .then(|| ("start".to_owned(), Mode::Start));
        let entry = module
            .has(entry_point)
            .then(|| (exported(entry_point.name()), Mode::Init));
        for (export, mode) in start.into_iter().chain(entry) {
            let message = self.message(mode, caller, argument.to_vec());
            if let Err(fault) = steps.run(module, &mut state, message, &export)? {
                return Ok(self.code_failed(&steps, &fault));
            }
        }
        self.module = Some(module.clone());
        self.state = state;
        self.version += 1;
        let cycles = cycles::execution(steps.charge, is_64_bit(module));
        Ok(self.paid(steps.execution(Ok(Vec::new()), cycles)))
    }

    fn code_failed(&mut self, steps: &Steps, fault: &Fault) -> Execution {
        let execution = steps.execution(Err(fault.reject(&self.id())), Cycles(0));
        self.paid(execution)
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
        let began = now();
        let (id, induction) = (self.id(), cycles::induction(method, argument));
        let Some(module) = self.module.clone() else {
            return Ok(Execution::refused(Fault::NoModule.reject(&id)));
        };
        if argument.len() as u64 > limits::MAX_ARGUMENT.get() {
            return Ok(Execution::refused(too_large(argument.len())));
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
                let fault = Fault::MethodNotFound {
                    kind: "update",
                    name: method.to_owned(),
                };
                let mut execution = Execution::refused(fault.reject(&id));
                execution.cycles = induction + cycles::execution(Instructions(0), false);
                return Ok(self.paid(execution));
            }
        };
        let mut message = self.message(mode, caller, argument.to_vec());
        // What the message may cost at the most is set aside while it runs.
        let set_aside = induction + cycles::execution(mode.instructions().0, is_64_bit(&module));
        message.balance = Cycles(message.balance.get().saturating_sub(set_aside.get()));
        let export = exported(&format!("{prefix} {method}"));
        let mut ran = run(
            &module,
            &self.state,
            message,
            &export,
            limits::UPDATE_INSTRUCTIONS,
        )?;
        if let Some(changes) = ran.changes.take() {
            changes.commit(&mut self.state)?;
            self.version += 1;
        }
        let mut execution = answered(&id, ran, "did not reply to the call");
        execution.cycles =
            execution.cycles + induction + cycles::execution(execution.charge, is_64_bit(&module));
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
        let began = now();
        let id = self.id();
        let Some(module) = &self.module else {
            return Ok(Execution::refused(Fault::NoModule.reject(&id)));
        };
        if argument.len() as u64 > limits::MAX_ARGUMENT.get() {
            return Ok(Execution::refused(too_large(argument.len())));
        }
        let (mode, prefix) = match module.method(method) {
            Some(MethodKind::Query) => (Mode::Query, "canister_query"),
            Some(MethodKind::CompositeQuery) => (Mode::CompositeQuery, "canister_composite_query"),
            Some(MethodKind::Update) | None => {
                let fault = Fault::MethodNotFound {
                    kind: "query",
                    name: method.to_owned(),
                };
                return Ok(Execution::refused(fault.reject(&id)));
            }
        };
        let message = self.message(mode, caller, argument.to_vec());
        let export = exported(&format!("{prefix} {method}"));
        let ran = run(
            module,
            &self.state,
            message,
            &export,
            limits::QUERY_INSTRUCTIONS,
        )?;
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
        let mut message = self.message(Mode::InspectMessage, caller, argument.to_vec());
        method.clone_into(&mut message.method);
        let export = exported(EntryPoint::InspectMessage.name());
        let ran = run(
            module,
            &self.state,
            message,
            &export,
            limits::INSPECT_INSTRUCTIONS,
        )?;
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

    fn message(&self, mode: Mode, caller: Principal, argument: Vec<u8>) -> Message {
        Message {
            mode,
            caller,
            method: String::new(),
            argument,
            canister: self.settings.id,
            controllers: self.settings.controllers.clone(),
            version: self.version,
            balance: self.balance,
            memory: self.memory(),
            time: self.time,
            timer: self.state.timer,
            heap_limit: self.settings.heap_limit,
        }
    }

    fn memory(&self) -> Bytes {
        let module = self
            .module
            .as_ref()
            .map_or(0, |module| module.uploaded().len());
        Bytes((self.state.heap.size() + self.state.stable.size() + module) as u64)
    }

    fn paid(&mut self, execution: Execution) -> Execution {
        self.balance = Cycles(self.balance.get().saturating_sub(execution.cycles.get()));
        self.time += ROUND;
        execution
    }
}

impl State {
    fn empty() -> io::Result<Self> {
        Ok(Self {
            heap: Image::new()?,
            stable: Image::new()?,
            globals: Vec::new(),
            certified_data: Vec::new(),
            timer: 0,
        })
    }

    /// What a canister holds before the first function of `module` runs.
    fn of(module: &Module, stable: Image) -> io::Result<Self> {
        let rewritten = module.rewritten();
        let mut heap = Image::new()?;
        let size = usize::try_from(rewritten.heap_pages * WASM_PAGE)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut mapping = heap.map(size, 0)?;
        mapping.grow(size)?;
        let mut pages = Vec::new();
        for (address, bytes) in &rewritten.data {
            let outside = || io::Error::new(io::ErrorKind::InvalidData, "data outside the heap");
            let start = usize::try_from(*address).map_err(|_| outside())?;
            let end = start.checked_add(bytes.len()).ok_or_else(outside)?;
            mapping
                .bytes_mut()
                .get_mut(start..end)
                .ok_or_else(outside)?
                .copy_from_slice(bytes);
            pages.extend(start / PAGE..end.div_ceil(PAGE));
        }
        pages.sort_unstable();
        pages.dedup();
        heap.commit(mapping.bytes(), &pages)?;
        Ok(Self {
            heap,
            stable,
            ..Self::empty()?
        })
    }
}

/// The functions that run one after the other when code is installed. They
/// share one limit, while each has a counter of its own.
#[derive(Debug, Default)]
struct Steps {
    instructions: Instructions,
    charge: Instructions,
    memory: MemoryUse,
    printed: Vec<String>,
}

impl Steps {
    fn run(
        &mut self,
        module: &Module,
        state: &mut State,
        message: Message,
        export: &str,
    ) -> Result<Result<(), Fault>, HostError> {
        let left = limits::INSTALL_INSTRUCTIONS
            .get()
            .saturating_sub(self.charge.get());
        let mut ran = run(module, state, message, export, Instructions(left))?;
        self.instructions += ran.instructions;
        self.charge += ran.charge;
        self.memory = ran.memory;
        self.printed.append(&mut ran.effects.printed);
        if let Some(changes) = ran.changes.take() {
            changes.commit(state)?;
        }
        Ok(ran.result)
    }

    fn execution(&self, outcome: Result<Vec<u8>, Reject>, cycles: Cycles) -> Execution {
        Execution {
            instructions: self.instructions,
            charge: self.charge,
            memory: self.memory,
            printed: self.printed.clone(),
            cycles,
            ..Execution::of(outcome)
        }
    }
}

/// Wall time is told beside the counts and never part of them.
#[expect(
    clippy::disallowed_methods,
    reason = "the one clock, for `Execution::wall`"
)]
fn now() -> Instant {
    Instant::now()
}

fn is_64_bit(module: &Module) -> bool {
    module.rewritten().address_width == AddressWidth::Bits64
}

/// The name under which the rewritten module exports a function.
fn exported(name: &str) -> String {
    format!("function {name}")
}

fn too_large(bytes: usize) -> Reject {
    Reject {
        code: ErrorCode::InvalidManagementPayload,
        message: format!(
            "the argument has {bytes} bytes, a message takes at most {}",
            limits::MAX_ARGUMENT
        ),
    }
}

/// What the caller gets.
fn answered(id: &Principal, ran: Run, silence: &str) -> Execution {
    let outcome = match ran.result {
        Err(fault) => Err(fault.reject(id)),
        Ok(()) => match ran.effects.answer {
            Answer::Reply(reply) => Ok(reply),
            Answer::Reject(message) => Err(Reject {
                code: ErrorCode::CanisterRejectedMessage,
                message,
            }),
            Answer::Pending(_) => Err(Reject {
                code: ErrorCode::CanisterDidNotReply,
                message: format!("Canister {id} {silence}"),
            }),
        },
    };
    Execution {
        instructions: ran.instructions,
        charge: ran.charge,
        cycles: ran.effects.burned,
        memory: ran.memory,
        printed: ran.effects.printed,
        ..Execution::of(outcome)
    }
}
