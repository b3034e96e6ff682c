//! Messages between canisters, and the order in which a canister receives them.
//!
//! ```text
//!   ingress ─────────────────────────┐
//!   from canister a  ──┐ in turn     ├ in turn ──→ the canister ──→ to canister a
//!   from canister b  ──┴─────────────┘                         └──→ to canister b
//! ```
//!
//! Source: `rs/replicated_state/src/canister_state/queues.rs` of the replica.

use std::collections::{BTreeMap, VecDeque};

use ic_principal::Principal;

use super::contexts::{CallbackId, has_expired};
use super::ingress::MessageId;
use super::trace::Cause;
use crate::limits::RESPONSE_OVERHEAD;
use crate::rules::Rules;
use crate::system_api::message::{Rejection, request_memory, reserved_memory};
use crate::units::{Bytes, Cycles};

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
