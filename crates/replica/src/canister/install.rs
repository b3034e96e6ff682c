//! Installs and upgrades, and access to the whole stable memory between two messages.
//!
//! ```text
//!   install, reinstall    start → canister_init
//!   upgrade               pre_upgrade of the old module → start → post_upgrade
//! ```
//!
//! Each function is a message with its own counter. A trap in any of them undoes all of them. An
//! upgrade keeps stable memory and certified data, and the heap if `wasm_memory_persistence` says
//! so. The timer is off afterwards.
//!
//! Modules with enhanced orthogonal persistence have a custom section of this name, and are only
//! upgraded with the option. The heap is kept for such modules only:
//!
//! | `wasm_memory_persistence` | old module with the section | new module without it |
//! |---|---|---|
//! | none | refused | the heap is emptied |
//! | `keep` | | refused |
//! | `replace` | the heap is emptied | the heap is emptied |
//!
//! Source: `rs/execution_environment/src/execution/upgrade.rs` of the replica.

use std::io::ErrorKind;
use std::ops::Range;

use ic_management_canister_types::WasmMemoryPersistence;
use ic_principal::Principal;

use super::Canister;
use super::dispatch::{exported, reject_large_argument};
use crate::canister::CHANGE_SIZE;
use crate::cycles;
use crate::execution::{
    Execution, FunctionCost, MemoryUse, PageCharges, Printed, SystemCalls, all_calls,
};
use crate::fault::{ErrorCode, Fault, HostError, Reject};
use crate::instance::{Entry, IdleSlot, TextError};
use crate::memory::Image;
use crate::module::Module;
use crate::rules::Rules;
use crate::run::{Run, Target, run, text};
use crate::state::State;
use crate::system_api::message::{Message, Mode};
use crate::units::{Bytes, Cycles, Instructions, WASM_PAGE};
use crate::validate::EntryPoint;

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

/// The options of an upgrade.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Upgrade {
    /// `canister_pre_upgrade` does not run.
    pub skip_pre_upgrade: bool,
    /// The treatment of the heap, which is emptied without this option.
    pub persistence: Option<WasmMemoryPersistence>,
}

/// The functions that an install or upgrade runs. They share one limit, but each has its own
/// counter.
#[derive(Debug, Default)]
struct InstallRun {
    instructions: Instructions,
    charge: Instructions,
    pages: PageCharges,
    memory: MemoryUse,
    stable_calls: SystemCalls,
    calls: Option<SystemCalls>,
    burned: Cycles,
    printed: Printed,
    functions: Vec<FunctionCost>,
}

impl InstallRun {
    fn execute(
        &mut self,
        module: &Module,
        state: &mut State,
        message: Message,
        name: &'static str,
    ) -> Result<Result<(), Fault>, HostError> {
        let export = match message.mode {
            Mode::Start => name.to_owned(),
            _ => exported(name),
        };
        let max = module.rules().instructions().install;
        let left = max.get().saturating_sub(self.charge.get());
        let idle = IdleSlot::default();
        let target = Target { module, state, idle: &idle };
        let mut ran = run(target, message, Entry::Export(&export), Instructions(left))?;
        self.instructions += ran.instructions;
        self.charge += ran.charge;
        self.pages += ran.pages;
        let Run { instructions, charge, pages, .. } = ran;
        self.functions.push(FunctionCost { name, instructions, charge, pages });
        self.memory = ran.memory;
        self.stable_calls.add_all(&ran.stable_calls);
        if let Some(calls) = &ran.calls {
            self.calls.get_or_insert_default().add_all(calls);
        }
        self.burned += ran.burned();
        self.printed.append(std::mem::take(&mut ran.effects.printed));
        if let Some(changes) = ran.changes.take() {
            changes.commit(state, &idle)?;
        }
        Ok(ran.result)
    }

    fn execution(&self, outcome: Result<Vec<u8>, Reject>, cycles: Cycles) -> Execution {
        let (printed, printed_before) = self.printed.clone().into_parts();
        Execution {
            instructions: self.instructions,
            charge: self.charge,
            pages: self.pages,
            memory: self.memory,
            stable_calls: self.stable_calls.stable(),
            system_calls: all_calls(&self.stable_calls, self.calls.clone()),
            functions: self.functions.clone(),
            printed,
            printed_before,
            cycles,
            ..Execution::of(outcome)
        }
    }
}

impl Canister {
    /// Returns the text at the address that an exported function of a module returns, such as the
    /// interface that `get_candid_pointer` returns, or why there is none. The function runs as a
    /// query of a canister that is not initialized. `None` if there is no such function.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn exported_text(
        &self,
        module: &Module,
        name: &str,
    ) -> Result<Option<Result<String, TextError>>, HostError> {
        let message = Message {
            wasm64: module.is_64_bit(),
            ..self.message(module.rules(), Mode::Query, Principal::anonymous(), Vec::new())
        };
        Ok(text(module, message, &exported(name))?)
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
        let state = State::initial(module.rewritten(), Image::new())?;
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
            if let Err(fault) = run.execute(&old, &mut state, message, name)? {
                return Ok(self.install_failed(module, &run, fault));
            }
        }
        let keeps_heap = match keeps_heap(&old, module, upgrade.persistence, &state) {
            Ok(keeps_heap) => keeps_heap,
            Err(reject) => {
                self.charge(Cycles(0));
                return Ok(Installed {
                    execution: run.execution(Err(reject), Cycles(0)),
                    fault: None,
                });
            }
        };
        let State { heap, stable, certified_data, .. } = state;
        let mut state = State { certified_data, ..State::initial(module.rewritten(), stable)? };
        if keeps_heap {
            state.keep_heap(heap)?;
        }
        self.install_code(module, caller, argument, state, EntryPoint::PostUpgrade, run)
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
            let fault = Fault::WasmMemoryLimit { peak, limit };
            return Ok(self.install_failed(module, &run, fault));
        }
        let start = module.rewritten().has_start.then_some(("start", Mode::Start));
        let entry = module.has(entry_point).then_some((entry_point.name(), Mode::Init));
        for (name, mode) in start.into_iter().chain(entry) {
            // The functions already see the version that the new module makes.
            let message = Message {
                version: self.version + 1,
                timer: state.timer,
                balance: self.balance - run.burned,
                ..self.message(module.rules(), mode, caller, argument.to_vec())
            };
            if let Err(fault) = run.execute(module, &mut state, message, name)? {
                return Ok(self.install_failed(module, &run, fault));
            }
        }
        self.module = Some(module.clone());
        self.state = state;
        self.idle = IdleSlot::default();
        self.version += 1;
        self.record_change(CHANGE_SIZE);
        let cycles = cycles::install(module.rules(), run.charge, module.is_64_bit()) + run.burned;
        self.charge(cycles);
        Ok(Installed { execution: run.execution(Ok(Vec::new()), cycles), fault: None })
    }

    /// An installation that failed pays for what was executed.
    ///
    /// Source: `finish_err` in `rs/execution_environment/src/execution/install_code.rs` of the
    /// replica, which gives back the cycles of the other instructions only.
    fn install_failed(&mut self, module: &Module, run: &InstallRun, fault: Fault) -> Installed {
        let cycles = cycles::install(module.rules(), run.charge, module.is_64_bit());
        self.charge(cycles);
        let execution = run.execution(Err(fault.reject(&self.id())), cycles);
        Installed { execution, fault: Some(fault) }
    }
}

/// Returns true if an upgrade keeps the heap of `state`, or the reject of the replica if the option
/// is missing or not allowed. `canister_pre_upgrade` has run before.
fn keeps_heap(
    old: &Module,
    new: &Module,
    option: Option<WasmMemoryPersistence>,
    state: &State,
) -> Result<bool, Reject> {
    let refused = |message: String| {
        let code = ErrorCode::CanisterContractViolation;
        Err(Reject { code, message })
    };
    match option {
        None if old.has_enhanced_persistence() => refused(
            "Missing upgrade option: Enhanced orthogonal persistence requires the \
             `wasm_memory_persistence` upgrade option."
                .to_owned(),
        ),
        None | Some(WasmMemoryPersistence::Replace) => Ok(false),
        Some(WasmMemoryPersistence::Keep) if !new.has_enhanced_persistence() => refused(
            "Invalid upgrade option: The `wasm_memory_persistence: opt Keep` upgrade option \
             requires that the new canister module supports enhanced orthogonal persistence."
                .to_owned(),
        ),
        Some(WasmMemoryPersistence::Keep) => {
            let (kept, most) = (state.heap.size() as u64 / WASM_PAGE, new.largest_heap());
            // The replica does not expect this and fails.
            if kept > most {
                return refused(format!(
                    "the upgrade would keep a heap of {kept} Wasm pages, but the memory of the new \
                     module has at most {most}"
                ));
            }
            Ok(true)
        }
    }
}

/// Stable memory could not be set.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StableMemoryError {
    /// The canister has no module.
    #[error("the canister has no module, so it has no stable memory; install one first")]
    NoModule,
    /// The bytes do not fit.
    #[error("{size} bytes are more than stable memory can have, which is {most} bytes")]
    TooLarge {
        /// The size that was requested.
        size: Bytes,
        /// The largest stable memory of the module's rules.
        most: Bytes,
    },
    /// The host has no memory left.
    #[error(transparent)]
    Host(#[from] HostError),
}

impl Canister {
    /// Replaces the stable memory by these bytes, padded with zeros to whole pages of 64 KiB. Heap
    /// and globals stay, and the version of the canister does not change.
    ///
    /// # Errors
    ///
    /// If the canister has no module, there are more bytes than the module's rules allow, or the
    /// host has no memory left. Then nothing has changed.
    pub fn set_stable_memory(&mut self, bytes: &[u8]) -> Result<(), StableMemoryError> {
        self.check_consistent()?;
        let module = self.module().ok_or(StableMemoryError::NoModule)?;
        check_stable_size(Bytes(bytes.len() as u64), module.rules())?;
        self.state.stable = Image::from_bytes(bytes).map_err(HostError::from)?;
        // An idle instance shows the old memory.
        self.idle = IdleSlot::default();
        Ok(())
    }

    /// Returns a copy of the stable memory.
    ///
    /// # Errors
    ///
    /// If the copy does not fit into the memory of this machine, or the host cannot read it.
    pub fn stable_memory(&self) -> Result<Vec<u8>, HostError> {
        self.stable_memory_part(0..self.state.stable.size() as u64)
    }

    /// Returns a copy of a part of the stable memory, up to its end.
    ///
    /// # Errors
    ///
    /// As [`Canister::stable_memory`].
    pub fn stable_memory_part(&self, part: Range<u64>) -> Result<Vec<u8>, HostError> {
        let size = self.state.stable.size();
        let at = |offset: u64| usize::try_from(offset).map_or(size, |offset| offset.min(size));
        let range = at(part.start).min(at(part.end))..at(part.end);
        let bytes = Bytes(range.len() as u64);
        self.state.stable.bytes(range).map_err(|error| match error.kind() {
            ErrorKind::OutOfMemory => HostError::TooLarge(bytes),
            _ => error.into(),
        })
    }
}

fn check_stable_size(size: Bytes, rules: Rules) -> Result<(), StableMemoryError> {
    let most = Bytes::from(rules.set().memory.stable);
    if size > most { Err(StableMemoryError::TooLarge { size, most }) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// More bytes than a test can allocate.
    #[test]
    fn one_byte_more_than_the_largest_stable_memory_is_refused() {
        let most = 500_u64 << 30;
        for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
            check_stable_size(Bytes(most), rules).unwrap();
            let error = check_stable_size(Bytes(most + 1), rules).unwrap_err();
            let words = "536870912001 bytes are more than stable memory can have, which is \
                         536870912000 bytes";
            assert_eq!(error.to_string(), words);
        }
    }

    #[test]
    fn a_copy_that_does_not_fit_is_an_error() {
        let replica = crate::Replica::new(Rules::today(), None).unwrap();
        let mut canister = replica.create_canister().unwrap();
        // More than any machine has.
        canister.state.stable = Image::zeros(1 << 62);
        let error = canister.stable_memory().unwrap_err().to_string();
        assert_eq!(
            error,
            "4611686018427387904 bytes do not fit into the memory of this machine; read them in parts"
        );
        assert_eq!(canister.stable_memory_part(1 << 40..(1 << 40) + 5).unwrap(), [0; 5]);
        assert_eq!(canister.stable_memory_part((1 << 62) - 2..u64::MAX).unwrap(), [0; 2]);
    }
}
