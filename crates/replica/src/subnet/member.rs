//! A canister of a subnet: executes the messages that it receives.
//!
//! A message that calls other canisters adds requests to the canister's queues and callbacks to its
//! contexts. A response runs a callback; if that fails, the cleanup runs on the state before it.
//!
//! ```text
//!   ingress, request ──→ prepay ──→ method ───────────────────→ refund ──→ answer, if any
//!   response ──→ refund ──→ callback ──→ cleanup, if it failed ─→ refund ──→ answer, if any
//!   round ──→ prepay ──→ heartbeat, timer ────────────────────→ refund
//! ```
//!
//! Source: `rs/execution_environment/src/execution/{call_or_task,response}.rs` of the replica.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ic_principal::Principal;

use super::contexts::{CallContext, Callback, CallbackId, Conclusion, ContextId, Contexts};
use super::contexts::{Origin, Outcome};
use super::queues::{Content, Delivery, Ingress, Input, Queues};
use super::trace::{Cause, Function, Trace};
use super::{Answered, MessageId, SECOND};
use crate::canister::{Canister, exported, is_64_bit};
use crate::cycles::{self, Threshold};
use crate::execution::Execution;
use crate::fault::{ErrorCode, Fault, HostError, Reject, RejectCode};
use crate::instance::Entry;
use crate::limits::{CHARGE_INTERVAL, CLEANUP_PERCENT, GUARANTEED_CALLBACKS, MAX_QUEUE};
use crate::rules::Rules;
use crate::run::Run;
use crate::system_api::message::{
    Answer, Context, Effects, Message, Mode, Rejection, Status,
};
use crate::system_api::request::{Quota, Request, reserved_memory};
use crate::units::{Bytes, Cycles, Instructions};
use crate::validate::{EntryPoint, MethodKind};

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
    paid_until: u64,
}

/// A function that the replica runs by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Task {
    /// `canister_heartbeat`
    Heartbeat,
    /// `canister_global_timer`
    GlobalTimer,
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

/// What comes first in a round: each in turn.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
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

/// The surroundings of an execution.
pub struct Round<'a> {
    /// The time.
    pub time: u64,
    /// The executions.
    pub trace: &'a mut Trace,
    /// Answers to users.
    pub answers: &'a mut BTreeMap<MessageId, Answered>,
    /// Callbacks that canisters of this subnet may still register, beyond those guaranteed to each.
    pub callbacks: usize,
}

/// An execution, besides the canister's own properties.
pub struct Start<'a> {
    /// The role.
    pub mode: Mode,
    /// The function.
    pub entry: Entry<'a>,
    /// The sender.
    pub caller: Principal,
    /// The argument, or the reply.
    pub argument: Vec<u8>,
    /// The call that the message belongs to.
    pub context: Context,
    /// The most instructions.
    pub limit: Instructions,
    /// Whether it is a response for which memory was reserved.
    pub next: Next,
}

impl Start<'_> {
    /// The callback of a response, in an open context.
    pub fn callback(
        callback: &Callback,
        context: &CallContext,
        response: Result<Vec<u8>, Rejection>,
        refund: Cycles,
        composite: bool,
    ) -> Self {
        let mode = match (&response, composite) {
            (Ok(_), false) => Mode::ReplyCallback,
            (Err(_), false) => Mode::RejectCallback,
            (Ok(_), true) => Mode::CompositeReplyCallback,
            (Err(_), true) => Mode::CompositeRejectCallback,
        };
        let closure = if response.is_ok() { callback.on_reply } else { callback.on_reject };
        let (argument, rejection) = match response {
            Ok(reply) => (reply, None),
            Err(rejection) => (Vec::new(), Some(rejection)),
        };
        Self {
            mode,
            entry: Entry::Callback(closure),
            caller: context.origin.caller(),
            argument,
            context: Context { refund, rejection, ..context.seen() },
            limit: Instructions(0),
            next: if callback.deadline == 0 { Next::Response } else { Next::Other },
        }
    }
}

impl Member {
    /// Adds a canister to a subnet at some time.
    pub fn new(canister: Canister, time: u64) -> Self {
        Self {
            canister,
            queues: Queues::default(),
            contexts: Contexts::default(),
            status: Status::Running,
            tasks: VecDeque::new(),
            next: Turn::default(),
            paid_until: time,
        }
    }

    /// Creates a second canister with the same content, for queries.
    pub fn fork(&self) -> Self {
        Self {
            canister: self.canister.fork(),
            queues: Queues::default(),
            contexts: Contexts::default(),
            status: self.status,
            tasks: VecDeque::new(),
            next: self.next,
            paid_until: self.paid_until,
        }
    }

    /// Returns true if the canister has work in this round.
    pub fn has_work(&self) -> bool {
        !self.tasks.is_empty() || self.queues.has_input()
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

    /// Executes the next task or message. Returns the instructions that it used, or `None` if there
    /// is none.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn execute_next(
        &mut self,
        round: &mut Round<'_>,
    ) -> Result<Option<Instructions>, HostError> {
        if let Some(task) = self.tasks.pop_front() {
            return self.execute_task(task, round).map(Some);
        }
        let Some(input) = self.queues.pop_input() else { return Ok(None) };
        let used = match input {
            Input::Ingress(Ingress { id, caller, method, argument }) => {
                let origin = Origin::Ingress { id, caller };
                self.execute_call(origin, &method, argument, Cycles(0), None, round)
            }
            Input::Canister(delivery) => match delivery.content {
                Content::Request { method, argument } => {
                    let Delivery { sender: caller, callback, deadline, .. } = delivery;
                    let origin = Origin::Canister { caller, callback, deadline };
                    self.execute_call(
                        origin,
                        &method,
                        argument,
                        delivery.cycles,
                        delivery.cause,
                        round,
                    )
                }
                Content::Response(response) => self.execute_response(
                    delivery.callback,
                    response,
                    delivery.cycles,
                    delivery.cause,
                    round,
                ),
            },
        };
        used.map(Some)
    }

    fn execute_task(
        &mut self,
        task: Task,
        round: &mut Round<'_>,
    ) -> Result<Instructions, HostError> {
        let (mode, function, entry) = match task {
            Task::Heartbeat => (Mode::Heartbeat, Function::Heartbeat, EntryPoint::Heartbeat),
            Task::GlobalTimer => (Mode::GlobalTimer, Function::GlobalTimer, EntryPoint::GlobalTimer),
        };
        let rules = self.rules();
        let limit = mode.instructions(rules).0;
        let reserved = cycles::execution(rules, limit, self.wasm64());
        if self.withdraw(reserved, Next::Other).is_err() {
            return Ok(Instructions(0));
        }
        if task == Task::GlobalTimer {
            // The timer fires once.
            self.canister.state.timer = 0;
        }
        let context = self.contexts.open(CallContext::new(Origin::Task, Cycles(0)));
        let export = exported(entry.name());
        let start = Start {
            mode,
            entry: Entry::Export(&export),
            caller: Principal::management_canister(),
            argument: Vec::new(),
            context: Context::default(),
            limit,
            next: Next::Other,
        };
        self.execute(start, context, None, (function, None), reserved, round)
    }

    fn execute_call(
        &mut self,
        origin: Origin,
        method: &str,
        argument: Vec<u8>,
        cycles: Cycles,
        cause: Cause,
        round: &mut Round<'_>,
    ) -> Result<Instructions, HostError> {
        let rules = self.rules();
        let id = self.canister.id();
        let kind = self.canister.module().map(|module| module.method(method));
        let refuse = |member: &mut Self, reject: Reject, round: &mut Round<'_>| {
            let outcome = Err(reject.clone());
            let execution = Execution { cycles: Cycles(0), ..Execution::of(outcome) };
            let function = Function::Update(method.to_owned());
            let number = round.trace.add(cause, id, function, 0, execution);
            member.respond(&origin, Err(reject), cycles, Some(number), round);
            Ok(Instructions(0))
        };
        let role = match kind {
            Some(Some(MethodKind::Query | MethodKind::CompositeQuery)) => Mode::ReplicatedQuery,
            _ => Mode::Update,
        };
        let limit = role.instructions(rules).0;
        let reserved = cycles::execution(rules, limit, self.wasm64());
        let next = match origin {
            Origin::Canister { deadline: 0, .. } => Next::Request,
            _ => Next::Other,
        };
        if let Err(missing) = self.withdraw(reserved, next) {
            let reject = self.out_of_cycles(&origin.caller(), missing);
            return refuse(self, reject, round);
        }
        let (mode, prefix, function) = match kind {
            Some(Some(MethodKind::Update)) => {
                (Mode::Update, "canister_update", Function::Update(method.to_owned()))
            }
            Some(Some(MethodKind::Query)) => {
                (Mode::ReplicatedQuery, "canister_query", Function::Query(method.to_owned()))
            }
            other => {
                // Only the base fee is due.
                self.refund_execution(reserved, Instructions(0));
                let reject = match other {
                    Some(Some(_)) => Reject {
                        code: ErrorCode::CompositeQueryCalledInReplicatedMode,
                        message: "Composite query cannot be called in replicated mode".to_owned(),
                    },
                    Some(None) => {
                        let name = method.to_owned();
                        Fault::MethodNotFound { kind: "update", name }.reject_in_full(&id)
                    }
                    None => Fault::NoModule.reject_in_full(&id),
                };
                return refuse(self, reject, round);
            }
        };
        let heap = Bytes(self.canister.state.heap.size() as u64);
        let heap_limit = self.canister.settings().heap_limit;
        if mode == Mode::Update && heap_limit != Bytes(0) && heap > heap_limit {
            self.refund_execution(reserved, Instructions(0));
            let fault = Fault::WasmMemoryLimit { peak: heap, limit: heap_limit };
            return refuse(self, fault.reject_in_full(&id), round);
        }
        let caller = origin.caller();
        let context = CallContext::new(origin, cycles);
        let seen = context.seen();
        let context = self.contexts.open(context);
        let export = exported(&format!("{prefix} {method}"));
        let entry = Entry::Export(&export);
        let next = Next::Other;
        let start = Start { mode, entry, caller, argument, context: seen, limit, next };
        self.execute(start, context, None, (function, cause), reserved, round)
    }

    fn execute_response(
        &mut self,
        id: CallbackId,
        response: Result<Vec<u8>, Rejection>,
        refund: Cycles,
        cause: Cause,
        round: &mut Round<'_>,
    ) -> Result<Instructions, HostError> {
        let Some(callback) = self.contexts.callback(id).cloned() else {
            // A best-effort call that expired. What comes back belongs to the canister.
            self.canister.balance += refund;
            return Ok(Instructions(0));
        };
        let Some(context) = self.contexts.get(callback.context) else {
            return Ok(Instructions(0));
        };
        let rules = self.rules();
        let bytes = response_bytes(&response);
        let unspent = cycles::response(rules, rules.set().messages.reply).get()
            - cycles::response(rules, bytes.min(rules.set().messages.reply)).get();
        self.canister.balance += refund + Cycles(unspent);
        let function = match response {
            Ok(_) => Function::ReplyCallback,
            Err(_) => Function::RejectCallback,
        };
        let start = Start::callback(&callback, context, response, refund, false);
        let limit = start.mode.instructions(rules).0;
        // Instructions for the cleanup are kept back.
        let kept = Instructions(limit.get() / 100 * CLEANUP_PERCENT);
        let start = Start { limit: limit - kept, ..start };
        let reserved = cycles::callback(rules, self.wasm64());
        let context = callback.context;
        self.execute(start, context, Some((id, callback)), (function, cause), reserved, round)
    }

    /// Executes a message in an open context, and records its end. `reserved` cycles were deducted
    /// for the execution.
    fn execute(
        &mut self,
        start: Start<'_>,
        context: ContextId,
        callback: Option<(CallbackId, Callback)>,
        (function, cause): (Function, Cause),
        reserved: Cycles,
        round: &mut Round<'_>,
    ) -> Result<Instructions, HostError> {
        let rules = self.rules();
        let id = self.canister.id();
        let (mode, caller, next) = (start.mode, start.caller, start.next);
        let seen = start.context.clone();
        let refund = seen.refund;
        let mut run = self.run(&start, round.time, round.callbacks)?;
        if run.result.is_ok()
            && !mode.is_callback()
            && let Some(missing) = self.missing_after(&run)
        {
            self.canister.undo(&mut run)?;
            let controller = self.canister.settings().controllers.contains(&caller);
            let missing = controller.then_some(missing);
            run.result = Err(Fault::Frozen { canister: id, missing });
        }
        let mut charge = run.charge;
        let sent = net_sent(&run, refund);
        let mut result = match run.result.clone() {
            Ok(()) => Ok(self.commit(&mut run, context, round.trace.next(), round.time)?),
            Err(fault) => Err(fault),
        };
        let mut execution = run.into_execution_with(reported(&result, &id));
        execution.cycles += cycles::execution(rules, charge, self.wasm64());
        let number = round.trace.add(cause, id, function, sent, execution);
        if let (Err(fault), Some((_, callback))) = (&result, &callback)
            && let Some(cleanup) = callback.on_cleanup
        {
            let limit = mode.instructions(rules).0;
            let left = Instructions(limit.get().saturating_sub(charge.get()));
            let cleanup = Start {
                mode: Mode::Cleanup,
                entry: Entry::Callback(cleanup),
                caller,
                argument: Vec::new(),
                context: seen,
                limit: left,
                next,
            };
            let (cleaned, used) = self.clean_up(cleanup, Some(number), round)?;
            charge += used;
            if let Err(cleanup) = cleaned {
                let callback = Box::new(fault.clone());
                result = Err(Fault::Cleanup { callback, cleanup: Box::new(cleanup) });
            }
        }
        self.refund_execution(reserved, charge);
        let callback = callback.map(|(id, _)| id);
        if let Some(conclusion) = self.contexts.finish(context, callback, result, charge) {
            self.conclude(conclusion, Some(number), round);
        }
        Ok(charge)
    }

    fn clean_up(
        &mut self,
        start: Start<'_>,
        cause: Cause,
        round: &mut Round<'_>,
    ) -> Result<(Result<(), Fault>, Instructions), HostError> {
        let mut run = self.run(&start, round.time, round.callbacks)?;
        let result = run.result.clone();
        if result.is_ok() {
            self.canister.commit(&mut run)?;
        }
        let id = self.canister.id();
        let charge = run.charge;
        let outcome = result.clone().map(|()| Vec::new()).map_err(|fault| fault.reject(&id));
        let mut execution = run.into_execution_with(outcome);
        // The callback paid the base fee.
        execution.cycles += cycles::instructions(self.rules(), charge, self.wasm64());
        round.trace.add(cause, id, Function::Cleanup, 0, execution);
        Ok((result, charge))
    }

    /// Commits the changes of a message, sends its calls, and returns its answer. `number` is that
    /// of the execution.
    pub fn commit(
        &mut self,
        run: &mut Run,
        context: ContextId,
        number: u64,
        time: u64,
    ) -> Result<Answer, HostError> {
        self.canister.commit(run)?;
        self.contexts.accept(context, run.effects.received);
        Ok(self.send_all(run, context, number, time))
    }

    /// Sends the calls of a message, and returns its answer.
    pub fn send_all(
        &mut self,
        run: &mut Run,
        context: ContextId,
        number: u64,
        time: u64,
    ) -> Answer {
        for request in std::mem::take(&mut run.effects.requests) {
            self.send(context, request, Some(number), time);
        }
        std::mem::replace(&mut run.effects.answer, Answer::Earlier)
    }

    fn send(&mut self, context: ContextId, request: Request, cause: Cause, time: u64) {
        let expiry = |seconds: u32| (time + u64::from(seconds) * SECOND) / SECOND * SECOND;
        let deadline = request.timeout.map_or(0, expiry);
        let callback = self.contexts.register(context, &request, deadline);
        let Request { callee, method, argument, cycles, .. } = request;
        self.queues.push_output(Delivery {
            sender: self.canister.id(),
            receiver: callee,
            callback,
            deadline,
            cycles,
            cause,
            content: Content::Request { method, argument },
        });
    }

    fn conclude(&mut self, conclusion: Conclusion, cause: Cause, round: &mut Round<'_>) {
        let Conclusion { origin, outcome, refund } = conclusion;
        let id = self.canister.id();
        let response = match outcome {
            Outcome::Reply(reply) => Ok(reply),
            Outcome::Reject(message) => {
                Err(Reject { code: ErrorCode::CanisterRejectedMessage, message })
            }
            Outcome::Silence => Err(Reject {
                code: ErrorCode::CanisterDidNotReply,
                message: format!("Canister {id} did not reply to the call"),
            }),
            Outcome::Fault(fault) => Err(fault.reject_in_full(&id)),
        };
        self.respond(&origin, response, refund, cause, round);
    }

    /// Answers a call.
    fn respond(
        &mut self,
        origin: &Origin,
        response: Result<Vec<u8>, Reject>,
        refund: Cycles,
        cause: Cause,
        round: &mut Round<'_>,
    ) {
        match *origin {
            Origin::Task | Origin::Query { .. } => {}
            Origin::Ingress { id, .. } => {
                round.answers.insert(id, Answered { response, cause });
            }
            Origin::Canister { caller, callback, deadline } => {
                let content = Content::Response(response.map_err(|reject| reject.for_canister()));
                let sender = self.canister.id();
                let delivery = Delivery {
                    sender,
                    receiver: caller,
                    callback,
                    deadline,
                    cycles: refund,
                    cause,
                    content,
                };
                self.queues.push_output(delivery);
            }
        }
    }

    /// Runs a function. `callbacks` are those that the subnet has left.
    pub fn run(&self, start: &Start<'_>, time: u64, callbacks: usize) -> Result<Run, HostError> {
        let Start { mode, entry, caller, argument, context, limit, next } = start;
        let message = Message {
            time,
            status: self.status,
            context: context.clone(),
            threshold: self.threshold(*next),
            quota: mode.may_call().then(|| Arc::new(self.quota(callbacks))),
            ..self.canister.message(self.rules(), *mode, *caller, argument.clone())
        };
        self.canister.run(message, *entry, *limit)
    }

    /// The calls that a message may make.
    fn quota(&self, callbacks: usize) -> Quota {
        let guaranteed = GUARANTEED_CALLBACKS.saturating_sub(self.contexts.callbacks());
        let slots = self.contexts.outstanding();
        let slots = slots.into_iter().map(|(callee, used)| (callee, MAX_QUEUE.saturating_sub(used)));
        Quota { calls: callbacks.max(guaranteed), slots: slots.collect() }
    }

    /// The rules of the canister's module.
    pub fn rules(&self) -> Rules {
        self.canister.module().map_or_else(Rules::today, |module| module.rules())
    }

    fn wasm64(&self) -> bool {
        self.canister.module().is_some_and(is_64_bit)
    }

    /// The balance below which the canister freezes, when it is about to execute a message.
    fn threshold(&self, next: Next) -> Threshold {
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

    /// Charges for storage, at intervals.
    pub fn charge_storage(&mut self, time: u64) {
        let passed = time.saturating_sub(self.paid_until);
        if passed < CHARGE_INTERVAL * SECOND {
            return;
        }
        self.paid_until = time;
        let cost = self.threshold(Next::Other).charge(self.canister.memories(), passed / SECOND);
        let balance = self.canister.balance.get();
        self.canister.balance = Cycles(balance.saturating_sub(cost.get()));
    }

    /// Refunds what was reserved for an execution and not used.
    fn refund_execution(&mut self, reserved: Cycles, charge: Instructions) {
        let cost = cycles::execution(self.rules(), charge, self.wasm64());
        self.canister.balance += Cycles(reserved.get().saturating_sub(cost.get()));
    }

    /// Returns the cycles that are missing for what a message spent, with the memory that the
    /// canister has after it.
    fn missing_after(&self, run: &Run) -> Option<Cycles> {
        let Effects { spent, burned, received, sent, .. } = run.effects;
        let removed = (spent + burned).get().saturating_sub(received.get());
        let memories = Bytes::from(run.memory.heap) + Bytes::from(run.memory.stable);
        let threshold = self.threshold(Next::Other);
        let needed = removed.saturating_add(threshold.cycles(memories, sent).get());
        let before = removed.saturating_add(self.frozen(Next::Other).get());
        let balance = self.canister.balance.get();
        (balance < needed).then(|| Cycles(before.saturating_sub(balance)))
    }
}

/// The number of bytes of a response that its fee depends on.
fn response_bytes(response: &Result<Vec<u8>, Rejection>) -> Bytes {
    Bytes(match response {
        Ok(reply) => reply.len() as u64,
        // One byte is the code.
        Err(rejection) => rejection.message.len() as u64 + 1,
    })
}

/// Cycles that a message sent with its calls, without those that it received.
fn net_sent(run: &Run, refund: Cycles) -> i128 {
    let amount = |cycles: Cycles| i128::try_from(cycles.get()).unwrap_or(i128::MAX);
    if run.result.is_err() {
        return -amount(refund);
    }
    let sent: i128 = run.effects.requests.iter().map(|request| amount(request.cycles)).sum();
    sent - amount(run.effects.received) - amount(refund)
}

/// What an execution reports: nothing if it left the answer to a callback.
pub fn reported(result: &Result<Answer, Fault>, id: &Principal) -> Result<Vec<u8>, Reject> {
    match result {
        Ok(Answer::Reply(reply)) => Ok(reply.clone()),
        Ok(Answer::Reject(message)) => {
            let code = ErrorCode::CanisterRejectedMessage;
            Err(Reject { code, message: message.clone() })
        }
        Ok(Answer::Pending(_) | Answer::Earlier) => Ok(Vec::new()),
        Err(fault) => Err(fault.reject(id)),
    }
}

impl Reject {
    /// The reject as a calling canister sees it.
    pub(super) fn for_canister(self) -> Rejection {
        let Self { code, message } = self;
        let (code, message) = match code {
            ErrorCode::CanisterRejectedMessage => (RejectCode::CanisterReject, message),
            ErrorCode::CanisterDidNotReply => {
                (RejectCode::CanisterError, "No response".to_owned())
            }
            code => (code.reject_code(), format!("IC{:04}: {message}", code.number())),
        };
        Rejection::new(code, message)
    }
}
