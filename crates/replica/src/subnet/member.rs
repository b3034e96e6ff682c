//! A canister of a subnet: its messages, its calls, its tasks, and what it pays for.
//!
//! Source: `rs/cycles_account_manager` of the replica.

use std::collections::VecDeque;
use std::ops::RangeInclusive;
use std::sync::Arc;

use ic_management_canister_types::LogVisibility;
use ic_principal::Principal;
use serde::{Deserialize, Serialize};

use super::managed::{HookStatus, Managed};
use super::messages::{CallContext, Callback, Contexts, Queues};
use crate::canister::Allocation;
use crate::canister::Canister;
use crate::cycles::{self, Reserve, Saturation, Threshold};
use crate::fault::{Fault, HostError, Reject};
use crate::instance::Entry;
use crate::module::Module;
use crate::profile::Span;
use crate::rules::{CHARGE_INTERVAL, GUARANTEED_CALLBACKS, MAX_QUEUE, Rules};
use crate::run::Run;
use crate::system_api::message::{
    Certificate, Context, Effects, Message, Mode, Quota, Rejection, Status, reserved_memory,
};
use crate::units::{Bytes, Cycles, Instructions, SECOND};
use crate::validate::EntryPoint;

/// The canister id with a number.
pub fn canister_id(number: u64) -> Principal {
    let mut bytes = number.to_be_bytes().to_vec();
    bytes.extend([1, 1]);
    Principal::from_slice(&bytes)
}

/// The number of a canister id.
pub(super) fn canister_number(id: &Principal) -> Option<u64> {
    let number = id.as_slice().first_chunk().copied().map(u64::from_be_bytes)?;
    (canister_id(number) == *id).then_some(number)
}

/// The routing table for calls to the management canister.
#[derive(Clone, Debug)]
pub struct Routes {
    /// The numbers of the canister ids of all parts.
    pub(super) ranges: Arc<[RangeInclusive<u64>]>,
    /// The names of the threshold keys.
    pub(super) keys: Arc<[&'static str]>,
}

impl Routes {
    /// Returns true if an id is in one of the ranges.
    pub fn host(&self, id: &Principal) -> bool {
        canister_number(id)
            .is_some_and(|number| self.ranges.iter().any(|range| range.contains(&number)))
    }

    /// The names of the threshold keys.
    pub fn keys(&self) -> &[&'static str] {
        &self.keys
    }
}

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
    /// An execution with nothing but these.
    pub fn new(caller: Principal, argument: &'a [u8], context: Context) -> Self {
        Self {
            caller,
            argument,
            context,
            limit: None,
            next: Next::Other,
            paid: Cycles(0),
            certificate: None,
        }
    }

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
        let caller = context.origin.caller();
        let context = Context { refund, rejection, ..context.seen() };
        let next = if callback.deadline == 0 { Next::Response } else { Next::Other };
        Self { next, ..Self::new(caller, argument, context) }
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

    /// The balance below which the canister freezes, when it is about to execute a message.
    pub fn threshold(&self, next: Next) -> Threshold {
        let rules = self.rules();
        let queues = self.queues.memory(rules);
        let arrived = queues.responses + usize::from(next == Next::Response);
        let waiting = self.contexts.guaranteed_callbacks().saturating_sub(arrived);
        let called = self.contexts.guaranteed_calls() + queues.requests;
        let reserved = waiting + called + usize::from(next == Next::Request);
        let reserved = Bytes(reserved as u64 * reserved_memory(rules).get());
        self.canister.threshold(rules, queues.bytes + reserved)
    }

    /// The balance below which the canister freezes now.
    pub fn frozen(&self, next: Next) -> Cycles {
        self.threshold(next).cycles(self.canister.memories(), Bytes(0))
    }

    /// Deducts cycles, unless the canister would freeze. Then the error is what is missing.
    pub fn withdraw(&mut self, cycles: Cycles, next: Next) -> Result<(), Cycles> {
        let needed = cycles.get().saturating_add(self.frozen(next).get());
        match needed.checked_sub(self.canister.balance.get()) {
            Some(missing) if missing > 0 => Err(Cycles(missing)),
            _ => {
                self.canister.balance = self.canister.balance - cycles;
                Ok(())
            }
        }
    }

    /// The reject of a message for which cycles are missing; controllers learn how many.
    pub fn out_of_cycles(&self, caller: &Principal, missing: Cycles) -> Reject {
        let controller = self.canister.settings().controllers.contains(caller);
        let missing = controller.then_some(missing);
        let canister = self.canister.id();
        Fault::Frozen { canister, missing }.reject(&canister)
    }

    /// Charges for storage and compute, at intervals. Returns false if the canister cannot pay.
    pub fn charge_storage(&mut self, time: u64) -> bool {
        let passed = time.saturating_sub(self.paid_until);
        if passed < CHARGE_INTERVAL * SECOND {
            return true;
        }
        self.paid_until = time;
        let cost = self.threshold(Next::Other).charge(self.canister.memories(), passed / SECOND);
        // What was reserved for storage pays first.
        let Canister { balance, reserved, .. } = &mut self.canister;
        let paid = cost.min(*reserved);
        *reserved = *reserved - paid;
        let cost = cost - paid;
        let paid = cost.min(*balance);
        *balance = *balance - paid;
        paid == cost
    }

    /// Returns how the canister reserves cycles when its memory grows. `None` if it has a memory
    /// allocation, for which cycles are reserved already.
    pub fn reserve(&self, saturation: Saturation) -> Option<Reserve> {
        let Canister { reserved, allocation, .. } = &self.canister;
        let limit = self.managed.reserved_cycles_limit;
        let best_effort = allocation.memory == Bytes(0);
        best_effort.then_some(Reserve { reserved: *reserved, limit, saturation })
    }

    /// Moves cycles to those that are reserved for storage.
    pub fn set_aside(&mut self, cycles: Cycles) {
        self.canister.balance = self.canister.balance - cycles;
        self.canister.reserved += cycles;
    }

    /// Bytes of the canister, and at least those that it has reserved.
    pub fn occupied(&self) -> Bytes {
        self.used().max(self.canister.allocation.memory)
    }

    /// Bytes of the canister.
    pub fn used(&self) -> Bytes {
        let canister = &self.canister;
        canister.memories() + canister.sizes(self.rules()).other() + canister.stored
    }

    /// Releases what a canister without cycles has reserved, with its snapshots, its history and its
    /// log.
    pub fn release(&mut self) {
        let log = match self.rules().set().log_store {
            true => Bytes(0),
            false => self.canister.allocation.log,
        };
        let canister = &mut self.canister;
        canister.allocation =
            Allocation { compute: 0, memory: Bytes(0), log, ..canister.allocation };
        canister.reserved = Cycles(0);
        canister.history.clear();
        self.managed.changes.clear();
        self.managed.snapshots.clear();
        self.count_stored();
    }

    /// Counts the bytes of chunks and snapshots after they have changed.
    pub fn count_stored(&mut self) {
        self.canister.stored = self.managed.chunk_bytes() + self.managed.snapshot_bytes();
    }

    /// Withdraws or returns what the prepayment of a callback lacks or has too much, because the
    /// heap has another width now. Returns the prepayment after that, or `None` if the canister
    /// cannot pay; nothing is withdrawn then.
    pub fn adjust_prepayment(&mut self, prepaid: Cycles) -> Option<Cycles> {
        let rules = self.rules();
        if !rules.set().adjusts_prepayments {
            return Some(prepaid);
        }
        let needed = cycles::callback(rules, self.wasm64());
        let balance = self.canister.balance + prepaid;
        (balance >= needed).then(|| {
            self.canister.balance = balance - needed;
            needed
        })
    }

    /// Refunds what was prepaid for a callback and not used: by the width that the heap has now, and
    /// at most what was prepaid.
    pub fn refund_callback(&mut self, prepaid: Cycles, charge: Instructions) {
        let (rules, wasm64) = (self.rules(), self.wasm64());
        let reserved = cycles::callback(rules, wasm64);
        let unused = reserved.saturating_sub(cycles::execution(rules, charge, wasm64));
        self.canister.balance += unused.min(prepaid);
    }

    /// Refunds what was prepaid for a callback that does not run. The base fee is kept.
    pub fn refund_unexecuted(&mut self, prepaid: Cycles) {
        let rules = self.rules();
        if !rules.set().adjusts_prepayments {
            return self.refund_callback(prepaid, Instructions(0));
        }
        let base = cycles::execution(rules, Instructions(0), false);
        self.canister.balance += prepaid.saturating_sub(base);
    }

    /// Refunds what was reserved for an execution and not used.
    pub fn refund_execution(&mut self, reserved: Cycles, charge: Instructions) {
        let cost = cycles::execution(self.rules(), charge, self.wasm64());
        self.canister.balance += Cycles(reserved.get().saturating_sub(cost.get()));
    }

    /// Returns the cycles that are missing for what a message spent, with the memory that the
    /// canister has after it.
    pub fn missing_after(&self, run: &Run) -> Option<Cycles> {
        let Effects { spent, burned, received, reserved, sent, .. } = run.effects;
        let removed = (spent + burned + reserved).get().saturating_sub(received.get());
        let memories = Bytes::from(run.memory.heap) + Bytes::from(run.memory.stable);
        let threshold = self.threshold(Next::Other);
        let threshold = Threshold { reserved: threshold.reserved + reserved, ..threshold };
        let needed = removed.saturating_add(threshold.cycles(memories, sent).get());
        let before = removed.saturating_add(self.frozen(Next::Other).get());
        let balance = self.canister.balance.get();
        (balance < needed).then(|| Cycles(before.saturating_sub(balance)))
    }
}
