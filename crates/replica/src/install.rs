//! Installs and upgrades: the functions that they run.
//!
//! ```text
//!   install, reinstall    start → canister_init
//!   upgrade               pre_upgrade of the old module → start → post_upgrade
//! ```
//!
//! Each function is a message with its own counter. A trap in any of them undoes all of them. An
//! upgrade keeps stable memory and certified data. The timer is off afterwards.

use crate::execution::{Execution, MemoryUse, PageCharges, SystemCalls, all_calls};
use crate::fault::{Fault, HostError, Reject};
use crate::instance::{Entry, IdleSlot};
use crate::module::Module;
use crate::run::{Target, run};
use crate::state::State;
use crate::system_api::message::Message;
use crate::units::{Cycles, Instructions};

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
    printed: Vec<String>,
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
        self.printed.append(&mut ran.effects.printed);
        if let Some(changes) = ran.changes.take() {
            changes.commit(state, &idle)?;
        }
        Ok(ran.result)
    }

    pub fn execution(&self, outcome: Result<Vec<u8>, Reject>, cycles: Cycles) -> Execution {
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
