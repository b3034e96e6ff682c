//! Installs and upgrades: the functions that they run.
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

use ic_management_canister_types::WasmMemoryPersistence;

use crate::execution::{Execution, MemoryUse, PageCharges, SystemCalls, all_calls};
use crate::fault::{ErrorCode, Fault, HostError, Reject};
use crate::instance::{Entry, IdleSlot};
use crate::module::Module;
use crate::printed::Printed;
use crate::run::{Target, run};
use crate::state::State;
use crate::system_api::message::Message;
use crate::units::{Cycles, Instructions, WASM_PAGE};

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
pub struct InstallRun {
    instructions: Instructions,
    pub charge: Instructions,
    pages: PageCharges,
    memory: MemoryUse,
    stable_calls: SystemCalls,
    calls: Option<SystemCalls>,
    pub burned: Cycles,
    printed: Printed,
}

impl InstallRun {
    pub fn execute(
        &mut self,
        module: &Module,
        state: &mut State,
        message: Message,
        export: &str,
    ) -> Result<Result<(), Fault>, HostError> {
        let max = module.rules().instructions().install;
        let left = max.get().saturating_sub(self.charge.get());
        let idle = IdleSlot::default();
        let target = Target { module, state, idle: &idle };
        let mut ran = run(target, message, Entry::Export(export), Instructions(left))?;
        self.instructions += ran.instructions;
        self.charge += ran.charge;
        self.pages += ran.pages;
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

    pub fn execution(&self, outcome: Result<Vec<u8>, Reject>, cycles: Cycles) -> Execution {
        let (printed, printed_before) = self.printed.clone().into_parts();
        Execution {
            instructions: self.instructions,
            charge: self.charge,
            pages: self.pages,
            memory: self.memory,
            stable_calls: self.stable_calls.stable(),
            system_calls: all_calls(&self.stable_calls, self.calls.clone()),
            printed,
            printed_before,
            cycles,
            ..Execution::of(outcome)
        }
    }
}

/// Returns true if an upgrade keeps the heap of `state`, or the reject of the replica if the option
/// is missing or not allowed. `canister_pre_upgrade` has run before.
pub fn keeps_heap(
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
