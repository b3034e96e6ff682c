//! Installing code: the functions that run then, and what they leave.
//!
//! ```text
//!   install, reinstall            start → canister_init
//!   upgrade    pre_upgrade of the old module → start → post_upgrade
//! ```
//!
//! Each is a message of its own with a counter of its own. A trap in any of
//! them undoes all of it. An upgrade keeps stable memory and certified data; the timer
//! is off after it as after an install.

use std::collections::BTreeSet;
use std::io;

use ic_principal::Principal;

use crate::canister::{Canister, HostError, exported, is_64_bit, too_large};
use crate::cycles;
use crate::execution::{Execution, MemoryUse, PageCharges, SystemCalls, all_calls};
use crate::fault::Fault;
use crate::live::Spare;
use crate::memory::pages::push;
use crate::memory::{Image, PAGE, Rights};
use crate::module::Module;
use crate::reject::Reject;
use crate::run::{Place, run};
use crate::state::State;
use crate::system_api::message::{Message, Mode};
use crate::units::{Bytes, Cycles, Instructions, WASM_PAGE};
use crate::validate::EntryPoint;

impl Canister {
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
        if let Some(reject) = too_large(module.rules(), argument) {
            return Ok(Execution::refused(reject));
        }
        let state = State::of(module, Image::new()?)?;
        self.code(module, caller, argument, state, EntryPoint::Init, Steps::default())
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
        self.whole()?;
        let mut steps = Steps::default();
        let Some(old) = self.module.clone() else {
            return Ok(Execution::refused(Fault::NoModule.reject(&self.id())));
        };
        if let Some(reject) = too_large(module.rules(), argument) {
            return Ok(Execution::refused(reject));
        }
        let mut state = self.state.clone();
        if old.has(EntryPoint::PreUpgrade) {
            let name = EntryPoint::PreUpgrade.name();
            let message = self.message(old.rules(), Mode::PreUpgrade, caller, Vec::new());
            if let Err(fault) = steps.run(&old, &mut state, message, &exported(name))? {
                return Ok(self.code_failed(&steps, &fault));
            }
        }
        let state =
            State { certified_data: state.certified_data, ..State::of(module, state.stable)? };
        self.code(module, caller, argument, state, EntryPoint::PostUpgrade, steps)
    }

    fn code(
        &mut self,
        module: &Module,
        caller: Principal,
        argument: &[u8],
        mut state: State,
        entry_point: EntryPoint,
        mut steps: Steps,
    ) -> Result<Execution, HostError> {
        let (peak, limit) = (Bytes(state.heap.size() as u64), self.settings.heap_limit);
        if limit != Bytes(0) && peak > limit {
            return Ok(self.code_failed(&steps, &Fault::WasmMemoryLimit { peak, limit }));
        }
        let start = module.rewritten().has_start.then(|| ("start".to_owned(), Mode::Start));
        let entry = module.has(entry_point).then(|| (exported(entry_point.name()), Mode::Init));
        for (export, mode) in start.into_iter().chain(entry) {
            // The module is in place before its functions run: it is of the next version.
            let message = Message {
                version: self.version + 1,
                timer: state.timer,
                balance: self.balance - steps.burned,
                ..self.message(module.rules(), mode, caller, argument.to_vec())
            };
            if let Err(fault) = steps.run(module, &mut state, message, &export)? {
                return Ok(self.code_failed(&steps, &fault));
            }
        }
        self.module = Some(module.clone());
        self.state = state;
        self.spare = Spare::default();
        self.version += 1;
        let cycles =
            cycles::execution(module.rules(), steps.charge, is_64_bit(module)) + steps.burned;
        Ok(self.paid(steps.execution(Ok(Vec::new()), cycles)))
    }

    fn code_failed(&mut self, steps: &Steps, fault: &Fault) -> Execution {
        let execution = steps.execution(Err(fault.reject(&self.id())), Cycles(0));
        self.paid(execution)
    }
}

impl State {
    /// What a canister holds before the first function of `module` runs.
    fn of(module: &Module, stable: Image) -> io::Result<Self> {
        let rewritten = module.rewritten();
        let mut heap = Image::new()?;
        let size = usize::try_from(rewritten.heap_pages * WASM_PAGE)
            .map_err(|_| io::Error::from(io::ErrorKind::OutOfMemory))?;
        let mut mapping = heap.map(size, 0)?;
        mapping.grow(size)?;
        let mut pages = BTreeSet::new();
        for (address, bytes) in &rewritten.data {
            let outside = || io::Error::new(io::ErrorKind::InvalidData, "data outside the heap");
            let start = usize::try_from(*address).map_err(|_| outside())?;
            let end = start.checked_add(bytes.len()).ok_or_else(outside)?;
            mapping.bytes_mut().get_mut(start..end).ok_or_else(outside)?.copy_from_slice(bytes);
            pages.extend(start / PAGE..end.div_ceil(PAGE));
        }
        let mut ranges = Vec::new();
        pages.into_iter().for_each(|page| push(&mut ranges, page));
        let _ = heap.commit(mapping.bytes_mut(), &ranges, &ranges, Rights::ReadWrite)?;
        Ok(Self { heap, stable, ..Self::empty()? })
    }
}

/// The functions that run one after the other when code is installed. They
/// share one limit, while each has a counter of its own.
#[derive(Debug, Default)]
struct Steps {
    instructions: Instructions,
    charge: Instructions,
    pages: PageCharges,
    memory: MemoryUse,
    stable_calls: SystemCalls,
    calls: Option<SystemCalls>,
    burned: Cycles,
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
        let most = module.rules().instructions().install;
        let left = most.get().saturating_sub(self.charge.get());
        let spare = Spare::default();
        let place = Place { module, state, spare: &spare };
        let mut ran = run(place, message, export, Instructions(left))?;
        self.instructions += ran.instructions;
        self.charge += ran.charge;
        self.pages += ran.pages;
        self.memory = ran.memory;
        self.stable_calls.add_all(&ran.stable_calls);
        if let Some(calls) = &ran.calls {
            self.calls.get_or_insert_default().add_all(calls);
        }
        self.burned += ran.burned();
        self.printed.append(&mut ran.effects.printed);
        if let Some(changes) = ran.changes.take() {
            changes.commit(state, &spare)?;
        }
        Ok(ran.result)
    }

    fn execution(&self, outcome: Result<Vec<u8>, Reject>, cycles: Cycles) -> Execution {
        Execution {
            instructions: self.instructions,
            charge: self.charge,
            pages: self.pages,
            memory: self.memory,
            stable_calls: self.stable_calls.stable(),
            system_calls: all_calls(&self.stable_calls, self.calls.clone()),
            printed: self.printed.clone(),
            cycles,
            ..Execution::of(outcome)
        }
    }
}
