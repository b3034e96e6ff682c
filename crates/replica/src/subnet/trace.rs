//! The executions of a subnet, and what caused each.

use std::fmt;

use ic_principal::Principal;

use crate::execution::Execution;
use crate::units::Cycles;

/// The number of the execution that caused a message; `None` if a user or the replica did.
pub type Cause = Option<u64>;

/// One execution on a subnet.
#[derive(Clone, Debug)]
pub struct Executed {
    /// The number of the execution: one more than that of the one before it.
    pub number: u64,
    /// The execution that caused it, unless a user or the replica did.
    pub cause: Cause,
    /// The canister.
    pub canister: Principal,
    /// The function that ran.
    pub function: Function,
    /// Cycles that the canister sent with calls, net of those that came back and those that it
    /// accepted.
    pub cycles_sent: i128,
    /// The part of the execution's cycles that is for messages: the ingress message, calls, and for
    /// a callback the response.
    pub transmission: Cycles,
    /// The outcome and the costs. The cycles include the transmission of its calls, and for a
    /// callback that of the response.
    pub execution: Execution,
}

impl fmt::Display for Executed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} of {}", self.function, self.canister)
    }
}

/// The function that an execution ran.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Function {
    /// An update method.
    Update(String),
    /// A query method, called by a user, or by a canister or a user as an update.
    Query(String),
    /// A composite query method.
    CompositeQuery(String),
    /// The callback of a reply.
    ReplyCallback,
    /// The callback of a reject.
    RejectCallback,
    /// The cleanup after a callback failed.
    Cleanup,
    /// `canister_heartbeat`.
    Heartbeat,
    /// `canister_global_timer`.
    GlobalTimer,
    /// `canister_on_low_wasm_memory`.
    OnLowWasmMemory,
    /// A method of the management canister that concerns the canister.
    Management(String),
}

impl Function {
    /// The name of a method.
    pub fn method(&self) -> Option<&str> {
        match self {
            Self::Update(name)
            | Self::Query(name)
            | Self::CompositeQuery(name)
            | Self::Management(name) => Some(name),
            Self::ReplyCallback
            | Self::RejectCallback
            | Self::Cleanup
            | Self::Heartbeat
            | Self::GlobalTimer
            | Self::OnLowWasmMemory => None,
        }
    }
}

impl fmt::Display for Function {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Update(name) => write!(f, "{name}"),
            Self::Query(name) => write!(f, "{name} (query)"),
            Self::CompositeQuery(name) => write!(f, "{name} (composite query)"),
            Self::ReplyCallback => f.write_str("reply callback"),
            Self::RejectCallback => f.write_str("reject callback"),
            Self::Cleanup => f.write_str("cleanup"),
            Self::Heartbeat => f.write_str("heartbeat"),
            Self::GlobalTimer => f.write_str("timer"),
            Self::OnLowWasmMemory => f.write_str("low memory hook"),
            Self::Management(name) => write!(f, "{name} (management canister)"),
        }
    }
}

/// Executions that are kept.
const MAX_KEPT: usize = 1 << 16;
/// Nodes of profiles that are kept.
const MAX_NODES: usize = 1 << 20;

/// The executions since they were last taken.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    next: u64,
    kept: Vec<Executed>,
    profiles: bool,
    /// Nodes of the profiles so far.
    nodes: usize,
}

impl Trace {
    /// The trace of a query, which profiles if this one does.
    pub fn of_query(&self) -> Self {
        Self { profiles: self.profiles, ..Self::default() }
    }

    /// Returns true if the next execution is profiled.
    pub fn profiles(&self) -> bool {
        self.profiles && self.nodes <= MAX_NODES && self.kept.len() < MAX_KEPT
    }

    /// Sets whether executions are profiled, and keeps profiles up to the limit again.
    pub fn set_profiling(&mut self, on: bool) {
        (self.profiles, self.nodes) = (on, 0);
    }

    /// The number of the next execution.
    pub fn next(&self) -> u64 {
        self.next
    }

    /// Adds an execution and returns its number.
    pub fn add(
        &mut self,
        cause: Cause,
        canister: Principal,
        function: Function,
        cycles_sent: i128,
        transmission: Cycles,
        mut execution: Execution,
    ) -> u64 {
        let number = self.next;
        self.next += 1;
        if self.kept.len() < MAX_KEPT {
            let nodes = execution.profile.as_ref().map_or(0, |profile| profile.nodes.len());
            self.nodes = self.nodes.saturating_add(nodes);
            if self.nodes > MAX_NODES {
                execution.profile = None;
            }
            self.kept.push(Executed {
                number,
                cause,
                canister,
                function,
                cycles_sent,
                transmission,
                execution,
            });
        }
        number
    }

    /// Takes the executions that were kept.
    pub fn take(&mut self) -> Vec<Executed> {
        std::mem::take(&mut self.kept)
    }
}
