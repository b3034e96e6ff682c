//! Canisters that execute outside of the subnet, so that a slow one does not hold up the others.
//!
//! ```text
//!   Subnet ── borrow, tick_in_parallel ──→ Borrowed: execute, query ──→ give_back ──→ Subnet
//! ```
//!
//! The network slices long messages: other canisters go on in the meantime, and what is sent to the
//! slow one waits. It is the same here. Executions are not recorded, and their order is not
//! deterministic.

use ic_principal::Principal;

use super::execute::Round;
use super::ingress::Call;
use super::member::Member;
use super::subnet_state::Subnet;
use crate::canister::Canister;
use crate::cycles::Saturation;
use crate::fault::{HostError, Reject};
use crate::limits::MAX_CALLBACKS;

/// A canister that executes outside of its subnet.
#[derive(Debug)]
pub struct Borrowed {
    id: Principal,
    /// A subnet with this canister only.
    alone: Box<Subnet>,
    /// Instructions that it may use.
    limit: i64,
    used: i64,
    /// Callbacks that it may register.
    callbacks: usize,
    /// Memory of the subnet that is in use.
    saturation: Saturation,
}

impl Borrowed {
    /// The canister.
    pub fn canister(&self) -> Option<&Canister> {
        self.alone.canister(&self.id)
    }

    /// Executes its tasks and messages, up to the limit of a round.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn execute(&mut self) -> Result<(), HostError> {
        let Subnet { members, trace, answers, time, .. } = &mut *self.alone;
        let Some(member) = members.get_mut(&self.id) else { return Ok(()) };
        let (callbacks, saturation) = (self.callbacks, self.saturation);
        let mut round = Round { time: *time, trace, answers, callbacks, saturation };
        self.used = member.execute_turn(&mut round, self.limit, 0)?;
        Ok(())
    }

    /// Calls a query, but no composite query.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Call, HostError> {
        self.alone.query(caller, self.id, method, argument)
    }

    /// Rejects the calls that are open, after a failure of this program.
    pub fn fail(&mut self, reject: &Reject) {
        let Subnet { members, trace, answers, time, .. } = &mut *self.alone;
        let saturation = self.saturation;
        let mut round = Round { time: *time, trace, answers, callbacks: 0, saturation };
        if let Some(member) = members.get_mut(&self.id) {
            member.reject_open_calls(reject, &mut round);
        }
    }
}

impl Subnet {
    /// Takes a canister out of the subnet. `None` if there is no such canister, or if it is out
    /// already. Messages for it wait until [`Subnet::give_back`].
    pub fn borrow(&mut self, id: &Principal) -> Option<Borrowed> {
        let limit = self.round_limit();
        let callbacks = MAX_CALLBACKS.saturating_sub(self.callbacks());
        let saturation = self.saturation();
        let member = self.members.remove(id)?;
        self.away.insert(*id, Vec::new());
        let mut alone = Box::new(Self::new(&self.replica));
        alone.time = self.time;
        alone.parts.clone_from(&self.parts);
        alone.routes.clone_from(&self.routes);
        alone.certifier.clone_from(&self.certifier);
        alone.members.insert(*id, member);
        Some(Borrowed { id: *id, alone, limit, used: 0, callbacks, saturation })
    }

    /// Returns a canister to its subnet.
    pub fn give_back(&mut self, borrowed: Borrowed) {
        let Borrowed { id, mut alone, .. } = borrowed;
        self.answers.append(&mut alone.answers);
        let arrivals = self.away.remove(&id).unwrap_or_default();
        if let Some(mut member) = alone.members.remove(&id) {
            arrivals.into_iter().for_each(|delivery| member.queues.push_input(delivery));
            self.members.insert(id, member);
        }
    }

    /// Returns true if a canister is out of the subnet.
    pub fn is_away(&self, id: &Principal) -> bool {
        self.away.contains_key(id)
    }

    /// Number of canisters that are out of the subnet.
    pub fn away(&self) -> usize {
        self.away.len()
    }

    /// Returns true if the next round has something to execute, timers and heartbeats aside.
    pub fn has_work(&self) -> bool {
        let ready = |id: Option<Principal>| !id.is_some_and(|id| self.is_away(&id));
        self.management.iter().chain(&self.called).any(|call| ready(call.concerns()))
            || !self.returned.is_empty()
            || self.members.values().any(|member| !member.queues.is_empty())
    }

    /// Executes a round as [`Subnet::tick`] does. `execute` receives the canisters that have work,
    /// [executes](Borrowed::execute) them, and returns those that are done; the others are given
    /// back later.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn tick_in_parallel(
        &mut self,
        mut execute: impl FnMut(Vec<Borrowed>) -> Vec<Borrowed>,
    ) -> Result<(), HostError> {
        self.begin_round();
        let mut left = self.round_limit();
        while left > 0 && !self.halt.is_requested() {
            let working = self.members.iter().filter(|(_, member)| member.has_work());
            let working: Vec<Principal> = working.map(|(id, _)| *id).collect();
            let borrowed: Vec<_> = working.iter().filter_map(|id| self.borrow(id)).collect();
            if borrowed.is_empty() {
                break;
            }
            let done = execute(borrowed);
            left -= done.iter().map(|borrowed| borrowed.used).max().unwrap_or(left).max(1);
            done.into_iter().for_each(|borrowed| self.give_back(borrowed));
            self.deliver();
        }
        self.end_round()
    }

    /// Time of the next timer, in nanoseconds since 1970; 0 if a canister has a heartbeat, which runs
    /// in every round.
    pub fn next_task(&self) -> Option<u64> {
        self.members.values().filter_map(Member::next_task).min()
    }
}
