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

use super::management::methods::check_call;
use super::member::{Member, Next, Start, Surroundings, Task};
use super::messages::{
    Answered, CallContext, Callback, CallbackId, Conclusion, Content, ContextId, Delivery, Ingress,
    Input, MessageId, Origin, Outcome,
};
use crate::canister::Canister;
use crate::canister::dispatch::{self, Called, Invocation, Place, Refusal, exported};
use crate::cycles::{self, Saturation};
use crate::execution::{Cause, Execution, Function, Trace};
use crate::fault::{ErrorCode, Fault, HostError, Reject, RejectCode};
use crate::instance::Entry;
use crate::rules::{CANISTER_OVERHEAD, CLEANUP_PERCENT, MESSAGE_OVERHEAD, Rules};
use crate::run::Run;
use crate::system_api::message::{Answer, Closure, Context, Mode, Rejection, Request, Status};
use crate::units::{Bytes, Cycles, Instructions, SECOND};
use crate::validate::EntryPoint;

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

impl Round<'_> {
    fn surroundings(&self) -> Surroundings {
        Surroundings {
            time: self.time,
            callbacks: self.callbacks,
            saturation: self.saturation,
            profiles: self.trace.profiles(),
        }
    }
}

/// A canister of a subnet, which executes a message in a round.
struct OnSubnet<'m, 's> {
    member: &'m mut Member,
    surroundings: Surroundings,
    start: Start<'s>,
    /// True if the sender waits for a response for which memory was reserved.
    next: Next,
    /// The context of a call, which is opened when the call is admitted.
    opening: Option<CallContext>,
    /// The context of the message.
    context: ContextId,
    /// Cycles that were deducted for the execution.
    reserved: Cycles,
}

impl<'m, 's> OnSubnet<'m, 's> {
    /// A message in an open context, for which cycles were deducted.
    fn within(
        member: &'m mut Member,
        round: &Round<'_>,
        start: Start<'s>,
        context: ContextId,
        reserved: Cycles,
    ) -> Self {
        let surroundings = round.surroundings();
        Self { member, surroundings, start, next: Next::Other, opening: None, context, reserved }
    }
}

impl Place for OnSubnet<'_, '_> {
    fn canister(&self) -> &Canister {
        &self.member.canister
    }

    fn status(&self) -> Status {
        self.member.status
    }

    fn prepay(&mut self, mode: Mode) -> Result<(), Reject> {
        let rules = self.member.rules();
        let limit = mode.instructions(rules).0;
        self.reserved = cycles::execution(rules, limit, self.member.wasm64());
        self.member
            .withdraw(self.reserved, self.next)
            .map_err(|missing| self.member.out_of_cycles(&self.start.caller, missing))
    }

    fn reject(&self, fault: &Fault) -> Reject {
        fault.reject_in_full(&self.member.canister.id(), self.member.rules())
    }

    fn run(&mut self, mode: Mode, entry: Entry<'_>) -> Result<Run, HostError> {
        if let Some(context) = self.opening.take() {
            self.context = self.member.contexts.open(context);
        }
        self.member.run(&self.start, mode, entry, self.surroundings)
    }

    fn objection(&self, mode: Mode, run: &Run) -> Option<Fault> {
        if mode.is_callback() || mode.is_cleanup() {
            return None;
        }
        let missing = self.member.missing_after(run)?;
        let Canister { settings, .. } = &self.member.canister;
        let controller = settings.controllers.contains(&self.start.caller);
        Some(Fault::Frozen { canister: settings.id, missing: controller.then_some(missing) })
    }

    fn commit(&mut self, run: &mut Run) -> Result<(), HostError> {
        self.member.canister.commit(run)
    }
}

/// An execution whose context is open.
struct Ran<'a> {
    start: Start<'a>,
    mode: Mode,
    run: Run,
    function: Function,
    cause: Cause,
    context: ContextId,
    /// The callback of a response.
    callback: Option<(CallbackId, Callback)>,
    /// Cycles that were deducted for it.
    reserved: Cycles,
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
    fn execute_next(&mut self, round: &mut Round<'_>) -> Result<Option<Instructions>, HostError> {
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
        let start = Start::new(Principal::management_canister(), &[], Context::default());
        let export = exported(entry.name());
        let mut place = OnSubnet::within(self, round, start, context, reserved);
        let run = dispatch::execute(&mut place, mode, Entry::Export(&export))?;
        let OnSubnet { start, .. } = place;
        let (cause, callback) = (None, None);
        self.finish(Ran { start, mode, run, function, cause, context, callback, reserved }, round)
    }

    fn execute_call(
        &mut self,
        call: Incoming,
        round: &mut Round<'_>,
    ) -> Result<Instructions, HostError> {
        let rules = self.rules();
        let paid = call.induction(rules);
        let context = CallContext::new(call.origin.clone(), call.cycles);
        let start = Start::new(call.origin.caller(), &call.argument, context.seen());
        let start = Start { paid, ..start };
        let next = match call.origin {
            Origin::Canister { deadline: 0, .. } => Next::Request,
            _ => Next::Other,
        };
        let place = OnSubnet::within(self, round, start, 0, Cycles(0));
        let mut place = OnSubnet { next, opening: Some(context), ..place };
        let called =
            dispatch::call(&mut place, Invocation::Replicated, &call.method, &call.argument)?;
        let OnSubnet { start, context, reserved, .. } = place;
        match called {
            Ok(Called { mode, run, .. }) => {
                let function = match mode {
                    Mode::ReplicatedQuery => Function::Query(call.method),
                    _ => Function::Update(call.method),
                };
                let (cause, callback) = (call.cause, None);
                let ran = Ran { start, mode, run, function, cause, context, callback, reserved };
                self.finish(ran, round)
            }
            Err(Refusal { reject, prepaid }) => {
                let mut cost = paid;
                if prepaid {
                    // Only the base fee is due.
                    self.refund_execution(reserved, Instructions(0));
                    cost += cycles::execution(rules, Instructions(0), false);
                }
                self.refuse(call, reject, cost, round);
                Ok(Instructions(0))
            }
        }
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
        let start = Start::callback(&callback, context, &response, refund);
        let mode = match response {
            Ok(_) => Mode::ReplyCallback,
            Err(_) => Mode::RejectCallback,
        };
        let Some(reserved) = self.adjust_prepayment(callback.prepaid) else {
            self.refund_unexecuted(callback.prepaid);
            let fault = Fault::Frozen { canister: self.canister.id(), missing: None };
            let finished =
                self.contexts.finish(callback.context, Some(id), Err(fault), Instructions(0));
            if let Some(conclusion) = finished {
                self.conclude(conclusion, cause, round);
            }
            return Ok(Instructions(0));
        };
        let limit = mode.instructions(rules).0;
        // Instructions for the cleanup are kept back.
        let kept = Instructions(limit.get() / 100 * CLEANUP_PERCENT);
        let paid = cycles::response(rules, bytes.min(rules.set().messages.reply));
        let start = Start { limit: Some(limit - kept), paid, ..start };
        let context = callback.context;
        let entry = Entry::Callback(callback.closure(&response));
        let mut place = OnSubnet::within(self, round, start, context, reserved);
        let run = dispatch::execute(&mut place, mode, entry)?;
        let OnSubnet { start, .. } = place;
        let callback = Some((id, callback));
        self.finish(Ran { start, mode, run, function, cause, context, callback, reserved }, round)
    }

    /// Sends the calls of an execution, charges and records it, and answers the call that it ends.
    fn finish(&mut self, ran: Ran<'_>, round: &mut Round<'_>) -> Result<Instructions, HostError> {
        let Ran { start, mode, mut run, function, cause, context, callback, reserved } = ran;
        let rules = self.rules();
        let id = self.canister.id();
        let (caller, next) = (start.caller, start.next);
        let refund = start.context.refund;
        let mut charge = run.charge;
        let sent = net_sent(&run, refund);
        let transmission = run.effects.requests.iter();
        let transmission: Cycles =
            transmission.map(|it| cycles::transmission(rules, Bytes(it.bytes()))).sum();
        let sees_log = self.shows_log_to(&caller);
        let mut result = match run.result.clone() {
            Ok(()) => {
                self.contexts.accept(context, run.effects.received);
                Ok(self.send_all(&mut run, context, round.trace.next(), round.time, true))
            }
            Err(fault) => Err(fault),
        };
        let mut execution = run.into_execution_with(reported(&result, &id));
        let transmission = start.paid + if result.is_ok() { transmission } else { Cycles(0) };
        execution.cycles += transmission + cycles::execution(rules, charge, self.wasm64());
        let most = self.canister.allocation.log;
        self.managed.log.add(round.time, &execution, result.as_ref().err(), most);
        let number = round.trace.add(cause, id, function, sent, transmission, execution);
        if let (Err(fault), Some((_, callback))) = (&result, &callback)
            && let Some(closure) = callback.on_cleanup
        {
            let limit = mode.instructions(rules).0;
            let left = Instructions(limit.get().saturating_sub(charge.get()));
            let cleanup = Start::new(caller, &[], start.context);
            let cleanup = Start { limit: Some(left), next, ..cleanup };
            let (cleaned, used) = self.clean_up(closure, cleanup, Some(number), round)?;
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
        closure: Closure,
        start: Start<'_>,
        cause: Cause,
        round: &mut Round<'_>,
    ) -> Result<(Result<(), Fault>, Instructions), HostError> {
        let mut place = OnSubnet::within(self, round, start, 0, Cycles(0));
        let run = dispatch::execute(&mut place, Mode::Cleanup, Entry::Callback(closure))?;
        let result = run.result.clone();
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

    /// Sends the calls of a message, and returns its answer. `number` is that of the execution. `routed`
    /// is false if it is a composite query whose calls of the management canister are not routed, because
    /// its subnet answers them.
    pub fn send_all(
        &mut self,
        run: &mut Run,
        context: ContextId,
        number: u64,
        time: u64,
        routed: bool,
    ) -> Answer {
        for request in std::mem::take(&mut run.effects.requests) {
            self.send(context, request, (Some(number), time), routed);
        }
        std::mem::replace(&mut run.effects.answer, Answer::Earlier)
    }

    fn send(
        &mut self,
        context: ContextId,
        request: Request,
        (cause, time): (Cause, u64),
        routed: bool,
    ) {
        let expiry = |seconds: u32| (time + u64::from(seconds) * SECOND) / SECOND * SECOND;
        let deadline = request.timeout.map_or(0, expiry);
        let prepaid = cycles::callback(self.rules(), self.wasm64());
        let callback = self.contexts.register(context, &request, deadline, prepaid);
        let Request { callee, method, argument, cycles, .. } = request;
        let management = callee == Principal::management_canister();
        // The canister's version when the message began.
        let version = self.canister.version().saturating_sub(1);
        let refused = match management && routed {
            true => check_call(&method, &argument, version, &self.routes).err(),
            false => None,
        };
        let call = Delivery {
            sender: self.canister.id(),
            receiver: callee,
            callback,
            deadline,
            cycles,
            cause,
            content: Content::Request { method, argument },
        };
        match refused {
            Some(rejection) => self.queues.push_input(call.answer(Err(rejection), cycles)),
            None => self.queues.push_output(call),
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
