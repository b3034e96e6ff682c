//! A canister of a subnet, with its messages, its calls, and its tasks.

use std::collections::VecDeque;
use std::sync::Arc;

use ic_management_canister_types::LogVisibility;
use ic_principal::Principal;
use serde::{Deserialize, Serialize};

use super::contexts::{CallContext, Callback, Contexts};
use super::managed::Managed;
use super::management::metadata::HookStatus;
use super::parts::Routes;
use super::queues::Queues;
use crate::canister::Canister;
use crate::cycles::Saturation;
use crate::fault::HostError;
use crate::instance::Entry;
use crate::limits::{GUARANTEED_CALLBACKS, MAX_QUEUE};
use crate::module::Module;
use crate::profile::Span;
use crate::rules::Rules;
use crate::run::Run;
use crate::system_api::message::{Certificate, Context, Message, Mode, Quota, Rejection, Status};
use crate::units::{Bytes, Cycles, Instructions};
use crate::validate::EntryPoint;

/// A canister of a subnet.
#[derive(Debug)]
pub struct Member {
    /// The canister.
    pub canister: Canister,
    /// Its messages.
    pub queues: Queues,
    /// Its calls.
    pub contexts: Contexts,
    /// `canister_status`.
    pub status: Status,
    /// Tasks of this round.
    pub tasks: VecDeque<Task>,
    /// The first kind of work in the next round with a task.
    next: Turn,
    /// Time until which storage is paid for.
    pub(super) paid_until: u64,
    /// Bytes of heap that the canister wants to have left; 0 for none.
    pub low_memory_threshold: Bytes,
    /// The state of the hook for low memory.
    hook: HookStatus,
    /// What the management canister keeps of it.
    pub managed: Managed,
    /// The rules of the subnet, for a canister without a module.
    subnet_rules: Rules,
    /// What its calls to the management canister are routed by.
    pub(super) routes: Routes,
}

/// The place of a canister in a saved subnet.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SavedPlace {
    /// `canister_status`.
    status: Status,
    /// The first kind of work in the next round with a task.
    next: Turn,
    /// Time until which storage is paid for.
    pub paid_until: u64,
    /// Bytes of heap that the canister wants to have left; 0 for none.
    low_memory_threshold: Bytes,
    /// The state of the hook for low memory.
    hook: HookStatus,
}

/// A function that the replica runs by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `canister_heartbeat`
    Heartbeat,
    /// `canister_global_timer`
    GlobalTimer,
    /// `canister_on_low_wasm_memory`
    OnLowWasmMemory,
}

/// What comes first in a round: each in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
enum Turn {
    #[default]
    GlobalTimer,
    Heartbeat,
    Message,
}

impl Turn {
    fn next(self) -> Self {
        match self {
            Self::GlobalTimer => Self::Heartbeat,
            Self::Heartbeat => Self::Message,
            Self::Message => Self::GlobalTimer,
        }
    }
}

/// The message that a canister is about to execute, if memory is or was reserved for its response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// A call with a guaranteed response, whose context is not open yet.
    Request,
    /// A guaranteed response.
    Response,
    /// Anything else.
    Other,
}

/// An execution, besides the canister's own properties.
pub struct Start<'a> {
    /// The sender.
    pub caller: Principal,
    /// The argument, or the reply.
    pub argument: &'a [u8],
    /// The call that the message belongs to.
    pub context: Context,
    /// The most instructions, if they are fewer than the mode allows.
    pub limit: Option<Instructions>,
    /// Whether it is a response for which memory was reserved.
    pub next: Next,
    /// Cycles that the canister has paid for it before.
    pub paid: Cycles,
    /// The certificate of the certified data, in a query.
    pub certificate: Option<Certificate>,
}

/// Inputs of an execution from its subnet.
#[derive(Clone, Copy, Debug)]
pub struct Surroundings {
    /// The time.
    pub time: u64,
    /// Callbacks that the canister may register, beyond those guaranteed to each.
    pub callbacks: usize,
    /// Memory of the subnet that is in use.
    pub saturation: Saturation,
    /// True if the function is profiled.
    pub profiles: bool,
}

impl<'a> Start<'a> {
    /// The callback of a response, in an open context.
    pub fn callback(
        callback: &Callback,
        context: &CallContext,
        response: &'a Result<Vec<u8>, Rejection>,
        refund: Cycles,
    ) -> Self {
        let (argument, rejection) = match response {
            Ok(reply) => (reply.as_slice(), None),
            Err(rejection) => (&[][..], Some(rejection.clone())),
        };
        Self {
            caller: context.origin.caller(),
            argument,
            context: Context { refund, rejection, ..context.seen() },
            limit: None,
            next: if callback.deadline == 0 { Next::Response } else { Next::Other },
            paid: Cycles(0),
            certificate: None,
        }
    }
}

impl Member {
    /// Adds a canister to a subnet at some time.
    pub fn new(canister: Canister, subnet_rules: Rules, routes: Routes, time: u64) -> Self {
        Self {
            managed: Managed::new(canister.history.len()),
            subnet_rules,
            routes,
            canister,
            queues: Queues::default(),
            contexts: Contexts::default(),
            status: Status::Running,
            tasks: VecDeque::new(),
            next: Turn::default(),
            paid_until: time,
            low_memory_threshold: Bytes(0),
            hook: HookStatus::default(),
        }
    }

    /// Returns true if a caller may read the log of the canister.
    pub fn shows_log_to(&self, caller: &Principal) -> bool {
        let controls = self.canister.settings().controllers.contains(caller);
        match &self.managed.log_visibility {
            LogVisibility::Public => true,
            LogVisibility::Controllers => controls,
            LogVisibility::AllowedViewers(viewers) => controls || viewers.contains(caller),
        }
    }

    /// Creates a second canister with the same content, messages and calls.
    pub fn fork(&self) -> Self {
        Self {
            queues: self.queues.clone(),
            contexts: self.contexts.clone(),
            tasks: self.tasks.clone(),
            managed: self.managed.clone(),
            ..self.fork_for_query()
        }
    }

    /// Creates a second canister with the same content, but without messages, calls, and what only
    /// the management canister knows.
    pub fn fork_for_query(&self) -> Self {
        let mut managed = Managed::new(0);
        managed.log_visibility = self.managed.log_visibility.clone();
        Self {
            canister: self.canister.fork(),
            queues: Queues::default(),
            contexts: Contexts::default(),
            status: self.status,
            tasks: VecDeque::new(),
            next: self.next,
            paid_until: self.paid_until,
            low_memory_threshold: self.low_memory_threshold,
            hook: self.hook,
            managed,
            subnet_rules: self.subnet_rules,
            routes: self.routes.clone(),
        }
    }

    /// The place of the canister, for a file.
    pub fn place(&self) -> SavedPlace {
        SavedPlace {
            status: self.status,
            next: self.next,
            paid_until: self.paid_until,
            low_memory_threshold: self.low_memory_threshold,
            hook: self.hook,
        }
    }

    /// Sets the place of a canister that was saved.
    pub fn set_place(&mut self, place: SavedPlace) {
        let SavedPlace { status, next, paid_until, low_memory_threshold, hook } = place;
        (self.status, self.next, self.hook) = (status, next, hook);
        (self.paid_until, self.low_memory_threshold) = (paid_until, low_memory_threshold);
    }

    /// Returns true if the canister has work in this round.
    pub fn has_work(&self) -> bool {
        self.hook == HookStatus::Ready || !self.tasks.is_empty() || self.queues.has_input()
    }

    /// Returns true if no message waits and no call is open.
    pub fn is_idle(&self) -> bool {
        self.queues.is_empty() && self.contexts.callbacks() == 0
    }

    /// Schedules the hook for low memory as the next task, if memory has become low.
    pub fn check_memory(&mut self) {
        self.hook = match (self.is_memory_low(), self.hook) {
            (false, _) => HookStatus::ConditionNotSatisfied,
            (true, HookStatus::ConditionNotSatisfied) => HookStatus::Ready,
            (true, hook) => hook,
        };
    }

    /// Returns true if the canister has less memory left than it wants to have.
    pub fn is_memory_low(&self) -> bool {
        let canister = &self.canister;
        let heap = Bytes(canister.state.heap.size() as u64);
        // A limit of 0, which means none, makes memory low all the same.
        let mut most = canister.settings().heap_limit;
        if canister.allocation.memory != Bytes(0) {
            most = most.min(canister.allocation.memory.saturating_sub(self.used() - heap));
        }
        most.get() < heap.get().saturating_add(self.low_memory_threshold.get())
    }

    /// The state of the hook for low memory.
    pub fn hook(&self) -> HookStatus {
        self.hook
    }

    /// Sets the state of the hook for low memory.
    pub fn set_hook(&mut self, hook: HookStatus) {
        self.hook = hook;
    }

    /// Returns the next task and removes it.
    pub fn pop_task(&mut self) -> Option<Task> {
        match self.hook {
            HookStatus::Ready => {
                self.hook = HookStatus::Executed;
                Some(Task::OnLowWasmMemory)
            }
            _ => self.tasks.pop_front(),
        }
    }

    /// Keeps the hook for low memory for later, because the canister is frozen.
    pub fn postpone_hook(&mut self) {
        self.hook = HookStatus::Ready;
    }

    /// Stops the canister if it is about to stop and no call is open. Returns true if it did.
    pub fn settle(&mut self) -> bool {
        let stops = self.status == Status::Stopping && self.contexts.is_empty();
        if stops {
            self.status = Status::Stopped;
            self.canister.count_change();
        }
        stops
    }

    /// Time of the next task, 0 for a heartbeat.
    pub fn next_task(&self) -> Option<u64> {
        let module = self.canister.module().filter(|_| self.status == Status::Running)?;
        let timer = self.canister.state.timer;
        match module.has(EntryPoint::Heartbeat) {
            true => Some(0),
            false => Some(timer).filter(|at| *at != 0 && module.has(EntryPoint::GlobalTimer)),
        }
    }

    /// Adds the tasks that are due to the work of this round.
    pub fn schedule_tasks(&mut self, time: u64) {
        if self.status != Status::Running || self.canister.state.torn {
            return;
        }
        let Some(module) = self.canister.module() else { return };
        let heartbeat = module.has(EntryPoint::Heartbeat);
        let timer = self.canister.state.timer;
        let timer = module.has(EntryPoint::GlobalTimer) && timer != 0 && timer <= time;
        if !heartbeat && !timer {
            return;
        }
        for _ in 0..3 {
            let turn = self.next;
            self.next = turn.next();
            let (first, second) = ((Task::GlobalTimer, timer), (Task::Heartbeat, heartbeat));
            let order = match turn {
                Turn::Message if self.queues.has_input() => return,
                Turn::Message => continue,
                Turn::GlobalTimer => [first, second],
                Turn::Heartbeat => [second, first],
            };
            if order[0].1 {
                let due = order.into_iter().filter(|(_, due)| *due).map(|(task, _)| task);
                self.tasks.extend(due);
                return;
            }
        }
    }

    /// Runs a function.
    pub fn run(
        &self,
        start: &Start<'_>,
        mode: Mode,
        entry: Entry<'_>,
        surroundings: Surroundings,
    ) -> Result<Run, HostError> {
        let Start { caller, argument, context, limit, next, certificate, .. } = start;
        let Surroundings { time, callbacks, saturation, profiles } = surroundings;
        let rules = self.rules();
        let message = Message {
            time,
            status: self.status,
            context: context.clone(),
            threshold: self.threshold(*next),
            certificate: certificate.clone(),
            reserve: mode.reserves_storage().then(|| self.reserve(saturation)).flatten(),
            quota: mode.may_call().then(|| Arc::new(self.quota(callbacks))),
            ..self.canister.message(rules, mode, *caller, argument.to_vec())
        };
        let limit = limit.unwrap_or(mode.instructions(rules).0);
        let span = profiles.then_some(Span::Message);
        let (run, profile) = self.canister.run(message, entry, limit, span)?;
        Ok(Run { profile: profile.transpose()?.map(Box::new), ..run })
    }

    /// The calls that a message may make.
    fn quota(&self, callbacks: usize) -> Quota {
        let guaranteed = GUARANTEED_CALLBACKS.saturating_sub(self.contexts.callbacks());
        let slots = self.contexts.outstanding();
        let slots =
            slots.into_iter().map(|(callee, used)| (callee, MAX_QUEUE.saturating_sub(used)));
        Quota { calls: callbacks.max(guaranteed), slots: slots.collect() }
    }

    /// The rules of the canister's module.
    pub fn rules(&self) -> Rules {
        self.canister.module().map_or(self.subnet_rules, |module| module.rules())
    }

    /// Returns true if instructions cost more, because heap addresses have 64 bits.
    pub fn wasm64(&self) -> bool {
        self.canister.module().is_some_and(Module::is_64_bit)
    }
}
