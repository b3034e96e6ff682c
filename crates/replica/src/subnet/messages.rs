//! Messages of users and between canisters: the calls to which they belong, and the order in which a
//! canister receives them.
//!
//! ```text
//!   call ──→ context ──→ call to another canister ──→ callback ──→ response: runs in the context
//!              │
//!              └── ends when it was answered and none of its callbacks is left
//!
//!   ingress ─────────────────────────┐
//!   from canister a  ──┐ in turn     ├ in turn ──→ the canister ──→ to canister a
//!   from canister b  ──┴─────────────┘                         └──→ to canister b
//! ```
//!
//! Source: `queues.rs` and `system_state/call_context_manager.rs` in
//! `rs/replicated_state/src/canister_state` of the replica.

use std::collections::{BTreeMap, VecDeque};

use ic_principal::Principal;

use crate::execution::{Cause, Executed};
use crate::fault::{ErrorCode, Fault, HostError, Reject};
use crate::rules::{RESPONSE_OVERHEAD, Rules};
use crate::system_api::message::{
    Answer, Closure, Context, Rejection, Request, Status, request_memory, reserved_memory,
};
use crate::units::{Bytes, Cycles, Instructions, SECOND};

/// Rounds in which `Subnet::update` waits for an answer.
pub const MAX_ROUNDS: usize = 100;

/// The number of an ingress message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub(super) u64);

/// The answer to an ingress message.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The reply or reject.
    pub response: Result<Vec<u8>, Reject>,
    /// The number of the execution that answered.
    pub cause: Cause,
}

/// A call of a user, with everything that was executed until it was answered.
#[derive(Clone, Debug)]
pub struct Call {
    /// The reply or reject.
    pub response: Result<Vec<u8>, Reject>,
    /// True if the call was admitted. Otherwise it costs nothing and has no effect.
    pub admitted: bool,
    /// The executions, in order.
    pub executions: Vec<Executed>,
}

/// A call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The canister, or one that it called, has not answered.
    #[error("no answer within {MAX_ROUNDS} rounds; the call goes on in later rounds")]
    Unanswered,
    /// A failure of this machine.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// The reject of a message to a canister that does not exist.
pub fn not_found(id: &Principal) -> Reject {
    Reject { code: ErrorCode::CanisterNotFound, message: format!("Canister {id} not found") }
}

/// The reject of a message to a canister that does not run.
pub fn not_running(id: &Principal, status: Status) -> Option<Reject> {
    let (code, state) = match status {
        Status::Running => return None,
        Status::Stopping => (ErrorCode::CanisterStopping, "stopping"),
        Status::Stopped => (ErrorCode::CanisterStopped, "stopped"),
    };
    Some(Reject { code, message: format!("Canister {id} is {state}") })
}

/// The number of a call context.
pub type ContextId = u64;
/// The number of a callback.
pub type CallbackId = u64;

/// The source of a call.
#[derive(Clone, Debug)]
pub enum Origin {
    /// A user.
    Ingress {
        /// The message.
        id: MessageId,
        /// The user.
        caller: Principal,
    },
    /// A canister.
    Canister {
        /// The canister.
        caller: Principal,
        /// Its callback.
        callback: CallbackId,
        /// Time at which the call expires; 0 for never.
        deadline: u64,
    },
    /// The replica: a heartbeat or a timer.
    Task,
    /// A user's query.
    Query {
        /// The user.
        caller: Principal,
    },
}

impl Origin {
    /// The caller that the canister sees.
    pub fn caller(&self) -> Principal {
        match self {
            Self::Ingress { caller, .. }
            | Self::Canister { caller, .. }
            | Self::Query { caller } => *caller,
            Self::Task => Principal::management_canister(),
        }
    }

    /// Time at which the call expires; 0 for never.
    pub fn deadline(&self) -> u64 {
        match self {
            Self::Canister { deadline, .. } => *deadline,
            Self::Ingress { .. } | Self::Task | Self::Query { .. } => 0,
        }
    }
}

/// A call that a canister has not finished.
#[derive(Clone, Debug)]
pub struct CallContext {
    /// The source of the call.
    pub origin: Origin,
    /// Instructions that its messages were charged.
    pub used: Instructions,
    /// Cycles that came with the call and were not accepted yet.
    pub available: Cycles,
    /// True if the call was answered.
    pub answered: bool,
}

impl CallContext {
    /// Creates the context of a call that came with these cycles.
    pub fn new(origin: Origin, cycles: Cycles) -> Self {
        Self { origin, used: Instructions(0), available: cycles, answered: false }
    }

    /// Context that a message of the call can read.
    pub fn seen(&self) -> Context {
        Context {
            used: self.used,
            available: self.available,
            deadline: self.origin.deadline(),
            answered: self.answered,
            ..Context::default()
        }
    }
}

/// A call to another canister that waits for its response.
#[derive(Clone, Debug)]
pub struct Callback {
    /// The context that made the call.
    pub context: ContextId,
    /// The canister that was called.
    pub callee: Principal,
    /// The function for a reply.
    pub on_reply: Closure,
    /// The function for a reject.
    pub on_reject: Closure,
    /// The function that runs if one of the others fails.
    pub on_cleanup: Option<Closure>,
    /// Time at which the call expires; 0 for never.
    pub deadline: u64,
    /// True if the call has expired, so that its callback has a response.
    pub expired: bool,
    /// Cycles that were prepaid for its execution.
    pub prepaid: Cycles,
}

impl Callback {
    /// The function that a response runs.
    pub fn closure(&self, response: &Result<Vec<u8>, Rejection>) -> Closure {
        if response.is_ok() { self.on_reply } else { self.on_reject }
    }
}

/// Returns true if a call with this deadline has expired. Both times count in whole seconds.
fn has_expired(deadline: u64, time: u64) -> bool {
    deadline != 0 && deadline < time / SECOND * SECOND
}

/// The end of a call.
#[derive(Clone, Debug)]
pub enum Outcome {
    /// The canister replied.
    Reply(Vec<u8>),
    /// The canister rejected.
    Reject(String),
    /// The canister did neither.
    Silence,
    /// A message of the call failed.
    Fault(Fault),
}

/// The answer to a call, for the one that made it.
#[derive(Clone, Debug)]
pub struct Conclusion {
    /// The source of the call.
    pub origin: Origin,
    /// The answer.
    pub outcome: Outcome,
    /// Cycles that were not accepted.
    pub refund: Cycles,
}

/// The contexts and callbacks of a canister.
#[derive(Clone, Debug, Default)]
pub struct Contexts {
    contexts: BTreeMap<ContextId, CallContext>,
    callbacks: BTreeMap<CallbackId, Callback>,
    next_context: ContextId,
    next_callback: CallbackId,
}

impl Contexts {
    /// Opens a context.
    pub fn open(&mut self, context: CallContext) -> ContextId {
        self.next_context += 1;
        self.contexts.insert(self.next_context, context);
        self.next_context
    }

    /// Returns a context.
    pub fn get(&self, id: ContextId) -> Option<&CallContext> {
        self.contexts.get(&id)
    }

    /// Returns a callback.
    pub fn callback(&self, id: CallbackId) -> Option<&Callback> {
        self.callbacks.get(&id)
    }

    /// Number of callbacks.
    pub fn callbacks(&self) -> usize {
        self.callbacks.len()
    }

    /// Returns true if no call is open.
    pub fn is_empty(&self) -> bool {
        self.contexts.is_empty() && self.callbacks.is_empty()
    }

    /// Number of callbacks of guaranteed responses.
    pub fn guaranteed_callbacks(&self) -> usize {
        self.callbacks.values().filter(|callback| callback.deadline == 0).count()
    }

    /// Number of open calls of canisters that wait for a guaranteed response.
    pub fn guaranteed_calls(&self) -> usize {
        let guaranteed = |context: &&CallContext| {
            !context.answered && matches!(context.origin, Origin::Canister { deadline: 0, .. })
        };
        self.contexts.values().filter(guaranteed).count()
    }

    /// Number of callbacks by callee.
    pub fn outstanding(&self) -> BTreeMap<Principal, usize> {
        let mut outstanding = BTreeMap::new();
        for callback in self.callbacks.values() {
            *outstanding.entry(callback.callee).or_default() += 1;
        }
        outstanding
    }

    /// Returns the callbacks of best-effort calls that have expired since the last time.
    pub fn expire(&mut self, time: u64) -> Vec<(CallbackId, Callback)> {
        let mut expired = Vec::new();
        for (id, callback) in &mut self.callbacks {
            if !callback.expired && has_expired(callback.deadline, time) {
                callback.expired = true;
                expired.push((*id, callback.clone()));
            }
        }
        expired
    }

    /// Registers the callback of a call.
    pub fn register(
        &mut self,
        context: ContextId,
        request: &Request,
        deadline: u64,
        prepaid: Cycles,
    ) -> CallbackId {
        self.next_callback += 1;
        let callback = Callback {
            context,
            callee: request.callee,
            on_reply: request.on_reply,
            on_reject: request.on_reject,
            on_cleanup: request.on_cleanup,
            deadline,
            expired: false,
            prepaid,
        };
        self.callbacks.insert(self.next_callback, callback);
        self.next_callback
    }

    /// Closes all contexts. Returns those of calls that were not answered. Callbacks stay until their
    /// responses arrive.
    pub fn close(&mut self) -> Vec<Conclusion> {
        let contexts = std::mem::take(&mut self.contexts).into_values();
        let open = contexts.filter(|context| !context.answered);
        open.map(|context| Conclusion {
            origin: context.origin,
            outcome: Outcome::Silence,
            refund: context.available,
        })
        .collect()
    }

    /// Removes a callback whose context is closed.
    pub fn forget(&mut self, id: CallbackId) {
        self.callbacks.remove(&id);
    }

    /// Takes cycles that a message accepted from its call.
    pub fn accept(&mut self, id: ContextId, cycles: Cycles) {
        if let Some(context) = self.contexts.get_mut(&id) {
            context.available = context.available - cycles;
        }
    }

    /// Records the end of a message of a call that was charged `used` instructions, and removes its
    /// callback. Returns the answer to the call, if this message gave it.
    pub fn finish(
        &mut self,
        id: ContextId,
        callback: Option<CallbackId>,
        result: Result<Answer, Fault>,
        used: Instructions,
    ) -> Option<Conclusion> {
        if let Some(callback) = callback {
            self.callbacks.remove(&callback);
        }
        let waits = self.callbacks.values().any(|callback| callback.context == id);
        let context = self.contexts.get_mut(&id)?;
        context.used += used;
        let outcome = match result {
            _ if context.answered => None,
            Ok(Answer::Reply(reply)) => Some(Outcome::Reply(reply)),
            Ok(Answer::Reject(text)) => Some(Outcome::Reject(text)),
            // A callback may still answer.
            _ if waits => None,
            Ok(Answer::Pending(_) | Answer::Earlier) => Some(Outcome::Silence),
            Err(fault) => Some(Outcome::Fault(fault)),
        };
        let conclusion = outcome.map(|outcome| {
            context.answered = true;
            let refund = std::mem::take(&mut context.available);
            Conclusion { origin: context.origin.clone(), outcome, refund }
        });
        if !waits {
            self.contexts.remove(&id);
        }
        conclusion
    }
}

/// A message from a user.
#[derive(Clone, Debug)]
pub struct Ingress {
    /// The number of the message.
    pub id: MessageId,
    /// The user.
    pub caller: Principal,
    /// The method.
    pub method: String,
    /// The argument.
    pub argument: Vec<u8>,
}

/// A message from a canister.
#[derive(Clone, Debug)]
pub struct Delivery {
    /// The canister that sent it.
    pub sender: Principal,
    /// The canister that receives it.
    pub receiver: Principal,
    /// The caller's callback.
    pub callback: CallbackId,
    /// Time at which the call expires; 0 for never.
    pub deadline: u64,
    /// Cycles of the call, or those that come back.
    pub cycles: Cycles,
    /// The execution that sent it.
    pub cause: Cause,
    /// The content.
    pub content: Content,
}

/// The content of a message from a canister.
#[derive(Clone, Debug)]
pub enum Content {
    /// A call.
    Request {
        /// The method.
        method: String,
        /// The argument.
        argument: Vec<u8>,
    },
    /// The response to a call.
    Response(Result<Vec<u8>, Rejection>),
}

impl Delivery {
    /// Creates the response to this call.
    pub fn answer(&self, response: Result<Vec<u8>, Rejection>, refund: Cycles) -> Self {
        Self {
            sender: self.receiver,
            receiver: self.sender,
            cycles: refund,
            content: Content::Response(response),
            ..*self
        }
    }
}

/// The next message of a canister.
#[derive(Clone, Debug)]
pub enum Input {
    /// From a user.
    Ingress(Ingress),
    /// From a canister.
    Canister(Delivery),
}

/// Memory that the messages in the queues of a canister occupy.
#[derive(Clone, Copy, Debug, Default)]
pub struct QueuesMemory {
    /// Bytes.
    pub bytes: Bytes,
    /// Calls of guaranteed response that wait to be executed: the response to each has memory
    /// reserved.
    pub requests: usize,
    /// Guaranteed responses that wait to be executed. No memory is reserved for them any more.
    pub responses: usize,
}

/// The queues of a canister.
#[derive(Clone, Debug, Default)]
pub struct Queues {
    ingress: VecDeque<Ingress>,
    inputs: BTreeMap<Principal, VecDeque<Delivery>>,
    /// Canisters with messages in `inputs`, in the order of their turns.
    turns: VecDeque<Principal>,
    outputs: BTreeMap<Principal, VecDeque<Delivery>>,
    /// True if it is the turn of messages from users.
    users_turn: bool,
}

impl Queues {
    /// Adds a message from a user.
    pub fn push_ingress(&mut self, ingress: Ingress) {
        self.ingress.push_back(ingress);
    }

    /// Number of messages from users.
    pub fn ingress(&self) -> usize {
        self.ingress.len()
    }

    /// Adds a message from a canister.
    pub fn push_input(&mut self, delivery: Delivery) {
        let queue = self.inputs.entry(delivery.sender).or_default();
        if queue.is_empty() {
            self.turns.push_back(delivery.sender);
        }
        queue.push_back(delivery);
    }

    /// Adds a message to a canister.
    pub fn push_output(&mut self, delivery: Delivery) {
        self.outputs.entry(delivery.receiver).or_default().push_back(delivery);
    }

    /// Returns true if a message waits.
    pub fn has_input(&self) -> bool {
        !self.ingress.is_empty() || !self.turns.is_empty()
    }

    /// Returns true if no message waits, neither to nor from the canister.
    pub fn is_empty(&self) -> bool {
        !self.has_input() && self.outputs.is_empty()
    }

    /// Takes the next message.
    pub fn pop_input(&mut self) -> Option<Input> {
        // Canisters on other subnets have a turn too, but there are none.
        for _ in 0..2 {
            let users = self.users_turn;
            self.users_turn = !users;
            let taken = match users {
                true => self.ingress.pop_front().map(Input::Ingress),
                false => self.pop_canister().map(Input::Canister),
            };
            if taken.is_some() {
                return taken;
            }
        }
        None
    }

    fn pop_canister(&mut self) -> Option<Delivery> {
        let sender = self.turns.pop_front()?;
        let queue = self.inputs.get_mut(&sender)?;
        let delivery = queue.pop_front();
        match queue.is_empty() {
            true => drop(self.inputs.remove(&sender)),
            false => self.turns.push_back(sender),
        }
        delivery
    }

    /// The memory of the messages.
    pub fn memory(&self, rules: Rules) -> QueuesMemory {
        let mut memory = QueuesMemory::default();
        let largest = reserved_memory(rules);
        for (incoming, delivery) in self
            .inputs
            .values()
            .flatten()
            .map(|delivery| (true, delivery))
            .chain(self.outputs.values().flatten().map(|delivery| (false, delivery)))
        {
            let best_effort = delivery.deadline != 0;
            match &delivery.content {
                Content::Request { method, argument } => {
                    let bytes = (method.len() + argument.len()) as u64;
                    let whole = request_memory(rules, bytes, best_effort);
                    // The memory of a guaranteed response is more than that of most requests.
                    memory.bytes += if best_effort { whole } else { whole - largest };
                    memory.requests += usize::from(incoming && !best_effort);
                }
                Content::Response(response) => {
                    let bytes = match response {
                        Ok(reply) => reply.len(),
                        Err(rejection) => rejection.message.len() + 1,
                    };
                    memory.bytes += Bytes(bytes as u64 + RESPONSE_OVERHEAD);
                    memory.responses += usize::from(incoming && !best_effort);
                }
            }
        }
        memory
    }

    /// Drops the best-effort calls that have expired, and returns them.
    pub fn expire(&mut self, time: u64) -> Vec<Delivery> {
        let mut expired = Vec::new();
        for queue in self.inputs.values_mut().chain(self.outputs.values_mut()) {
            let (drop, keep) = std::mem::take(queue).into_iter().partition(|delivery| {
                let is_call = matches!(delivery.content, Content::Request { .. });
                is_call && has_expired(delivery.deadline, time)
            });
            *queue = keep;
            expired.extend::<VecDeque<Delivery>>(drop);
        }
        self.inputs.retain(|_, queue| !queue.is_empty());
        self.outputs.retain(|_, queue| !queue.is_empty());
        self.turns.retain(|sender| self.inputs.contains_key(sender));
        expired
    }

    /// Takes all messages to `receiver`.
    pub fn take_outputs_to(&mut self, receiver: &Principal) -> VecDeque<Delivery> {
        self.outputs.remove(receiver).unwrap_or_default()
    }

    /// Takes all messages to other canisters: the first to each, then the second, and so on.
    pub fn take_outputs(&mut self) -> Vec<Delivery> {
        let mut queues = std::mem::take(&mut self.outputs).into_values().collect::<VecDeque<_>>();
        let mut taken = Vec::new();
        while let Some(mut queue) = queues.pop_front() {
            taken.extend(queue.pop_front());
            if !queue.is_empty() {
                queues.push_back(queue);
            }
        }
        taken
    }
}
