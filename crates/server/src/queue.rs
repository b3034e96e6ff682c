//! The inputs of the driver: messages that wait, and calls that are executed.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Instant;

use candid::Principal;
use ic_transport_types::RequestId;
use stablebench_replica::subnet::Borrowed;
use tokio::sync::{OwnedSemaphorePermit, oneshot};

use crate::message::Message;
use crate::outcome::Outcome;
use crate::system::Withdrawal;

/// The memory that a large message occupies until it has run.
pub type MemoryPermit = Option<OwnedSemaphorePermit>;

/// A message that waits for the driver.
pub struct Work {
    /// The canister that it waits for.
    pub canister: Principal,
    /// The message.
    pub message: Message,
    /// The memory that it occupies.
    pub memory: MemoryPermit,
    /// The receiver of its outcome.
    pub task: Task,
    /// The state of the module that it installs.
    pub compilation: Compilation,
}

/// The state of a module that a call installs.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Compilation {
    /// It was not looked at.
    Open,
    /// A thread compiles it.
    Running,
    /// It is compiled.
    Done,
}

/// The receiver of a message's outcome.
pub enum Task {
    /// It is the status of a call, which is registered.
    Call(RequestId),
    /// It is sent to a client.
    Query(oneshot::Sender<Outcome>),
}

/// The driver's inputs.
#[derive(Default)]
pub struct Queue {
    /// Messages in the order of their arrival.
    pub work: VecDeque<Work>,
    /// Number of messages by canister, waiting and running.
    pub waiting: BTreeMap<Principal, usize>,
    /// Canisters that were away and are back.
    pub returned: Vec<Borrowed>,
    /// Calls whose modules are compiled.
    pub compiled: BTreeSet<RequestId>,
    /// The time by which everything has to end.
    pub deadline: Option<Instant>,
    /// `true` if the driver has to look.
    pub changed: bool,
    /// Number of those who wait for the subnet as a whole. The driver starts nothing meanwhile.
    pub exclusive: usize,
}

impl Queue {
    /// Returns `true` if there is something for the driver to do by itself.
    pub fn has_inputs(&self) -> bool {
        self.changed
            || self.deadline.is_some()
            || !(self.work.is_empty() && self.returned.is_empty() && self.compiled.is_empty())
    }
}

/// A call that is executed.
pub struct Open {
    /// Its id.
    pub id: RequestId,
    /// The canister that it waited for in the queue, if it did.
    pub canister: Option<Principal>,
    /// The cycles that the cycles ledger withdrew for it.
    pub withdrawal: Option<Withdrawal>,
    /// The memory that its message occupies.
    _memory: MemoryPermit,
}

impl Open {
    /// A call that waited in the queue.
    pub fn queued(
        id: RequestId,
        canister: Principal,
        withdrawal: Option<Withdrawal>,
        memory: MemoryPermit,
    ) -> Self {
        Self { id, canister: Some(canister), withdrawal, _memory: memory }
    }

    /// A call that has not waited in the queue.
    pub fn direct(id: RequestId) -> Self {
        Self { id, canister: None, withdrawal: None, _memory: None }
    }
}
