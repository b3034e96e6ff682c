//! Executing the messages that a canister receives.
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

use std::collections::BTreeMap;

use ic_principal::Principal;

use super::contexts::{CallContext, Callback, CallbackId, Conclusion, ContextId, Origin, Outcome};
use super::funds::Next;
use super::member::{Member, Start, Task};
use super::queues::{Content, Delivery, Ingress, Input};
use super::trace::{Cause, Function, Trace};
use super::{Answered, MessageId};
use crate::canister::exported;
use crate::cycles;
use crate::execution::Execution;
use crate::fault::{ErrorCode, Fault, HostError, Reject, RejectCode};
use crate::instance::Entry;
use crate::limits::{CANISTER_OVERHEAD, CLEANUP_PERCENT, MESSAGE_OVERHEAD};
use crate::rules::Rules;
use crate::run::Run;
use crate::saturation::Saturation;
use crate::system_api::message::{Answer, Context, Mode, Rejection, Status};
use crate::units::{Bytes, Cycles, Instructions};
use crate::validate::{EntryPoint, MethodKind};

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
    /// Memory of the subnet that is in use.
    pub saturation: Saturation,
}

/// A call that a canister received.
struct Incoming {
    origin: Origin,
    method: String,
    argument: Vec<u8>,
    cycles: Cycles,
    cause: Cause,
}

impl Incoming {
    /// Cycles that were paid for the induction of a user's call.
    fn induction(&self, rules: Rules) -> Cycles {
        match self.origin {
            Origin::Ingress { .. } => cycles::induction(rules, &self.method, &self.argument),
            Origin::Canister { .. } | Origin::Task | Origin::Query { .. } => Cycles(0),
        }
    }
}

impl Member {
    /// Executes tasks and messages while a core has used less than `limit`. Returns the instructions
    /// that it has used then, `used` before.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn execute_turn(
        &mut self,
        round: &mut Round<'_>,
        limit: i64,
        mut used: i64,
    ) -> Result<i64, HostError> {
        let mut executed = 0;
        let halt = self.canister.halt.clone().unwrap_or_default();
        while used < limit
            && !halt.is_requested()
            && let Some(instructions) = self.execute_next(round)?
        {
            executed += instructions.get();
            used += (instructions + MESSAGE_OVERHEAD).get().cast_signed();
        }
        if executed > 0 {
            used += CANISTER_OVERHEAD.get().cast_signed();
        }
        Ok(used)
    }

    /// Answers all open calls with a reject.
    pub fn reject_open_calls(&mut self, reject: &Reject, round: &mut Round<'_>) {
        for conclusion in self.contexts.close() {
            let Conclusion { origin, refund, .. } = conclusion;
            self.respond(&origin, Err(reject.clone()), refund, None, round);
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
        if let Some(task) = self.pop_task() {
            return self.execute_task(task, round).map(Some);
        }
        let Some(input) = self.queues.pop_input() else { return Ok(None) };
        let used = match input {
            Input::Ingress(Ingress { id, caller, method, argument }) => {
                let origin = Origin::Ingress { id, caller };
                let (cycles, cause) = (Cycles(0), None);
                self.execute_call(Incoming { origin, method, argument, cycles, cause }, round)
            }
            Input::Canister(delivery) => {
                let Delivery { sender: caller, callback, deadline, cycles, cause, content, .. } =
                    delivery;
                match content {
                    Content::Request { method, argument } => {
                        let origin = Origin::Canister { caller, callback, deadline };
                        let call = Incoming { origin, method, argument, cycles, cause };
                        self.execute_call(call, round)
                    }
                    Content::Response(response) => {
                        self.execute_response(callback, response, cycles, cause, round)
                    }
                }
            }
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
            Task::GlobalTimer => {
                (Mode::GlobalTimer, Function::GlobalTimer, EntryPoint::GlobalTimer)
            }
            Task::OnLowWasmMemory => {
                (Mode::OnLowWasmMemory, Function::OnLowWasmMemory, EntryPoint::OnLowWasmMemory)
            }
        };
        let rules = self.rules();
        let limit = mode.instructions(rules).0;
        let reserved = cycles::execution(rules, limit, self.wasm64());
        if self.withdraw(reserved, Next::Other).is_err() {
            if task == Task::OnLowWasmMemory {
                self.postpone_hook();
            }
            return Ok(Instructions(0));
        }
        if task == Task::OnLowWasmMemory && self.status != Status::Running {
            // It counts as executed, for the base fee.
            self.refund_execution(reserved, Instructions(0));
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
            paid: Cycles(0),
            certificate: None,
        };
        self.execute(start, context, None, (function, None), reserved, round)
    }

    fn execute_call(
        &mut self,
        call: Incoming,
        round: &mut Round<'_>,
    ) -> Result<Instructions, HostError> {
        let rules = self.rules();
        let paid = call.induction(rules);
        let caller = call.origin.caller();
        let kind = self.canister.module().map(|module| module.method(&call.method));
        let (mode, prefix) = match kind.flatten() {
            Some(MethodKind::Query) => (Mode::ReplicatedQuery, "canister_query"),
            // A composite query is rejected below.
            Some(MethodKind::CompositeQuery) => (Mode::ReplicatedQuery, "canister_query"),
            Some(MethodKind::Update) | None => (Mode::Update, "canister_update"),
        };
        let limit = mode.instructions(rules).0;
        let reserved = cycles::execution(rules, limit, self.wasm64());
        let next = match call.origin {
            Origin::Canister { deadline: 0, .. } => Next::Request,
            _ => Next::Other,
        };
        if let Err(missing) = self.withdraw(reserved, next) {
            let reject = self.out_of_cycles(&caller, missing);
            self.refuse(call, reject, paid, round);
            return Ok(Instructions(0));
        }
        if let Some(reject) = self.not_executable(&call.method, kind, mode) {
            // Only the base fee is due.
            self.refund_execution(reserved, Instructions(0));
            let cost = paid + cycles::execution(rules, Instructions(0), false);
            self.refuse(call, reject, cost, round);
            return Ok(Instructions(0));
        }
        let Incoming { origin, method, argument, cycles, cause } = call;
        let function = match mode {
            Mode::ReplicatedQuery => Function::Query(method.clone()),
            _ => Function::Update(method.clone()),
        };
        let context = CallContext::new(origin, cycles);
        let seen = context.seen();
        let context = self.contexts.open(context);
        let export = exported(&format!("{prefix} {method}"));
        let entry = Entry::Export(&export);
        let next = Next::Other;
        let certificate = None;
        let start =
            Start { mode, entry, caller, argument, context: seen, limit, next, paid, certificate };
        self.execute(start, context, None, (function, cause), reserved, round)
    }

    /// The reject of a call that cannot be executed.
    fn not_executable(
        &self,
        method: &str,
        kind: Option<Option<MethodKind>>,
        mode: Mode,
    ) -> Option<Reject> {
        let id = self.canister.id();
        if self.status != Status::Running {
            let code = match self.status {
                Status::Stopping => ErrorCode::CanisterStopping,
                _ => ErrorCode::CanisterStopped,
            };
            return Some(Reject { code, message: format!("Canister {id} is not running") });
        }
        let heap = Bytes(self.canister.state.heap.size() as u64);
        let limit = self.canister.settings().heap_limit;
        let fault = match kind {
            None => Fault::NoModule,
            Some(None) => Fault::MethodNotFound { kind: "update", name: method.to_owned() },
            Some(Some(MethodKind::CompositeQuery)) => {
                return Some(Reject {
                    code: ErrorCode::CompositeQueryCalledInReplicatedMode,
                    message: "Composite query cannot be called in replicated mode".to_owned(),
                });
            }
            Some(Some(_)) if mode == Mode::Update && limit != Bytes(0) && heap > limit => {
                Fault::WasmMemoryLimit { peak: heap, limit }
            }
            Some(Some(_)) => return None,
        };
        Some(fault.reject_in_full(&id, self.rules()))
    }

    /// Answers a call that is not executed.
    fn refuse(&mut self, call: Incoming, reject: Reject, cost: Cycles, round: &mut Round<'_>) {
        let induction = call.induction(self.rules());
        let Incoming { origin, method, cycles, cause, .. } = call;
        let execution = Execution { cycles: cost, ..Execution::of(Err(reject.clone())) };
        let id = self.canister.id();
        let function = Function::Update(method);
        let number = round.trace.add(cause, id, function, 0, induction, execution);
        self.respond(&origin, Err(reject), cycles, Some(number), round);
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
        let rules = self.rules();
        let bytes = response_bytes(&response);
        let unspent = cycles::response(rules, rules.set().messages.reply).get()
            - cycles::response(rules, bytes.min(rules.set().messages.reply)).get();
        self.canister.balance += refund + Cycles(unspent);
        let Some(context) = self.contexts.get(callback.context) else {
            // The canister was uninstalled since the call.
            self.refund_unexecuted(callback.prepaid);
            self.contexts.forget(id);
            return Ok(Instructions(0));
        };
        let function = match response {
            Ok(_) => Function::ReplyCallback,
            Err(_) => Function::RejectCallback,
        };
        let start = Start::callback(&callback, context, response, refund, false);
        let Some(prepaid) = self.adjust_prepayment(callback.prepaid) else {
            self.refund_unexecuted(callback.prepaid);
            let fault = Fault::Frozen { canister: self.canister.id(), missing: None };
            let finished =
                self.contexts.finish(callback.context, Some(id), Err(fault), Instructions(0));
            if let Some(conclusion) = finished {
                self.conclude(conclusion, cause, round);
            }
            return Ok(Instructions(0));
        };
        let limit = start.mode.instructions(rules).0;
        // Instructions for the cleanup are kept back.
        let kept = Instructions(limit.get() / 100 * CLEANUP_PERCENT);
        let paid = cycles::response(rules, bytes.min(rules.set().messages.reply));
        let start = Start { limit: limit - kept, paid, ..start };
        let context = callback.context;
        self.execute(start, context, Some((id, callback)), (function, cause), prepaid, round)
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
        let mut run =
            self.run(&start, round.time, round.callbacks, round.saturation, round.trace)?;
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
        let transmission = run.effects.requests.iter();
        let transmission: Cycles =
            transmission.map(|it| cycles::transmission(rules, Bytes(it.bytes()))).sum();
        let sees_log = self.shows_log_to(&caller);
        let mut result = match run.result.clone() {
            Ok(()) => Ok(self.commit(&mut run, context, round.trace.next(), round.time)?),
            Err(fault) => Err(fault),
        };
        let mut execution = run.into_execution_with(reported(&result, &id));
        let transmission = start.paid + if result.is_ok() { transmission } else { Cycles(0) };
        execution.cycles += transmission + cycles::execution(rules, charge, self.wasm64());
        let most = self.canister.allocation.log;
        self.managed.log.add(round.time, &execution, result.as_ref().err(), most);
        let number = round.trace.add(cause, id, function, sent, transmission, execution);
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
                paid: Cycles(0),
                certificate: None,
            };
            let (cleaned, used) = self.clean_up(cleanup, Some(number), round)?;
            charge += used;
            if let Err(cleanup) = cleaned {
                let callback = Box::new(fault.clone());
                result = Err(Fault::Cleanup { callback, cleanup: Box::new(cleanup) });
            }
        }
        match &callback {
            Some(_) => self.refund_callback(reserved, charge),
            None => self.refund_execution(reserved, charge),
        }
        self.check_memory();
        let result = result.map_err(|fault| fault.seen(sees_log));
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
        let mut run =
            self.run(&start, round.time, round.callbacks, round.saturation, round.trace)?;
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
        let most = self.canister.allocation.log;
        self.managed.log.add(round.time, &execution, result.as_ref().err(), most);
        round.trace.add(cause, id, Function::Cleanup, 0, Cycles(0), execution);
        Ok((result, charge))
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
            Outcome::Fault(fault) => Err(fault.reject_in_full(&id, self.rules())),
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
            ErrorCode::CanisterDidNotReply => (RejectCode::CanisterError, "No response".to_owned()),
            code => (code.reject_code(), format!("IC{:04}: {message}", code.number())),
        };
        Rejection::new(code, message)
    }
}
