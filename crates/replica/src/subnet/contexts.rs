//! Call contexts: the calls that a canister has not finished, and its own calls that wait for a
//! response.
//!
//! ```text
//!   call ──→ context ──→ call to another canister ──→ callback ──→ response: runs in the context
//!              │
//!              └── ends when it was answered and none of its callbacks is left
//! ```
//!
//! Source: `rs/replicated_state/src/canister_state/system_state/call_context_manager.rs` of the
//! replica.

use std::collections::BTreeMap;

use ic_principal::Principal;

use super::ingress::MessageId;
use crate::fault::Fault;
use crate::system_api::message::{Answer, Closure, Context, Rejection, Request};
use crate::units::{Cycles, Instructions, SECOND};

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

    /// What a message of the call sees.
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
pub fn has_expired(deadline: u64, time: u64) -> bool {
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
