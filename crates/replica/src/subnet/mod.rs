//! A subnet: canisters that call each other, in rounds.
//!
//! ```text
//!   submit ──→ tick, tick, … ──→ answer          update: all three
//!   query                                        without a round; composite queries call others
//!   set_time ──→ tick                            timers
//! ```
//!
//! A round is what the canisters do at one point in time:
//!
//! ```text
//!   deliver what is left of the last round, expire calls
//!   the management canister executes the calls of the last round
//!   add heartbeats and timers
//!     ┌─→ each canister executes its tasks and messages
//!     └── deliver the messages that they sent          until nothing is left, or the limit is reached
//!   charge for storage, reject calls to canisters that do not exist
//! ```
//!
//! Canisters run on four cores, whose limits are separate. A message of several slices runs in one
//! round here; on the network it takes a round for each slice. Execution is deterministic: equal calls
//! at equal times give equal executions.
//!
//! A canister can execute outside of the subnet, so that a slow one does not hold up the others:
//!
//! ```text
//!   Subnet ── borrow, tick_in_parallel ──→ Borrowed: execute, query ──→ give_back ──→ Subnet
//! ```
//!
//! The network slices long messages: other canisters go on in the meantime, and what is sent to the
//! slow one waits. It is the same here. Executions are not recorded then, and their order is not
//! deterministic.
//!
//! | module | |
//! |---|---|
//! | `subnet_state` | the state of a subnet: its canisters, their ids, and calls of users |
//! | `member` | a canister with its messages, calls and tasks, and what it pays for |
//! | `messages` | messages, their order, and the calls to which they belong |
//! | `execute` | executes messages, callbacks and tasks |
//! | `query` | queries that call queries |
//! | `management` | the management canister |
//! | `managed` | what it keeps of a canister: history, log, chunks, snapshots |
//! | `saved` | subnets in files |
//!
//! Source: `inner_round` in `rs/execution_environment/src/scheduler.rs` of the replica.

mod execute;
mod managed;
mod management;
mod member;
mod messages;
mod query;
mod saved;
mod subnet_state;

use ic_principal::Principal;

use crate::canister::Canister;
use crate::cycles::Saturation;
use crate::fault::{HostError, Reject, RejectCode};
use crate::rules::{CORES, ITERATION_OVERHEAD, MAX_CALLBACKS};
use crate::system_api::message::Rejection;
use crate::units::{Cycles, Instructions};

use execute::Round;
use management::call::ManagementCall;
use member::Member;
use messages::{Content, Delivery, Origin};
use subnet_state::RemoteAnswers;

pub use crate::execution::{Executed, Function};
pub use crate::system_api::message::{Halt, Status};
pub use managed::{Global, GlobalTimer, HookStatus, SnapshotMetadata};
pub use management::call::{HttpRequest, HttpResponse, SnapshotSource};
pub use management::methods::effective_canister;
pub use member::canister_id;
pub use messages::{Answered, Call, CallError, MessageId};
pub use subnet_state::{Part, RemoteCall, Subnet, Taken};

impl Subnet {
    /// Executes a round, at a later time than the last one.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn tick(&mut self) -> Result<(), HostError> {
        self.begin_round();
        let signed = |instructions: Instructions| instructions.get().cast_signed();
        let mut left = self.round_limit();
        loop {
            let used = self.execute_iteration(left)?;
            left -= used + signed(ITERATION_OVERHEAD) * self.members.len() as i64;
            if used == 0 || left <= 0 {
                break;
            }
            self.deliver();
        }
        self.end_round()
    }

    /// Delivers what is left of the last round, and adds tasks.
    fn begin_round(&mut self) {
        self.time = self.time.max(self.last_round + 1);
        self.last_round = self.time;
        self.rounds += 1;
        self.deliver();
        self.management.append(&mut std::mem::take(&mut self.called).into());
        self.expire_http_requests();
        for delivery in std::mem::take(&mut self.returned) {
            self.route(delivery);
        }
        self.expire();
        self.execute_management();
        for member in self.members.values_mut() {
            member.schedule_tasks(self.time);
        }
    }

    /// Charges for storage, and rejects what cannot be delivered.
    fn end_round(&mut self) -> Result<(), HostError> {
        let mut broke = Vec::new();
        for (id, member) in &mut self.members {
            member.tasks.clear();
            let interval = member.rules().set().charge_rounds;
            if self.rounds.is_multiple_of(interval) && !member.charge_storage(self.time) {
                broke.push(*id);
            }
        }
        for id in broke {
            self.uninstall(&id)?;
            if let Some(member) = self.members.get_mut(&id) {
                member.release();
            }
        }
        self.settle();
        self.reject_unroutable();
        Ok(())
    }

    /// Lets each canister execute its tasks and messages. Returns the most instructions that a core
    /// used.
    fn execute_iteration(&mut self, limit: i64) -> Result<i64, HostError> {
        let working: Vec<Principal> = self
            .members
            .iter()
            .filter(|(_, member)| member.has_work())
            .map(|(id, _)| *id)
            .collect();
        let (registered, saturation) = (self.callbacks(), self.saturation());
        let mut used = [0; CORES];
        for (number, id) in working.into_iter().enumerate() {
            let used = &mut used[number % CORES];
            let Some(member) = self.members.get_mut(&id) else { continue };
            let mut round = Round {
                time: self.time,
                trace: &mut self.trace,
                answers: &mut self.answers,
                callbacks: MAX_CALLBACKS.saturating_sub(registered),
                saturation,
            };
            *used = member.execute_turn(&mut round, limit, *used)?;
        }
        Ok(used.into_iter().max().unwrap_or_default())
    }

    /// Instructions of a round: the most that a part allows.
    fn round_limit(&self) -> i64 {
        let limits = self.parts.iter().map(|part| part.rules().instructions().round);
        limits.max().unwrap_or(Instructions(0)).get().cast_signed() + 1
    }

    /// Memory of the subnet that is in use.
    fn saturation(&self) -> Saturation {
        Saturation::new(self.members.values().map(Member::occupied).sum())
    }

    /// Number of callbacks of all canisters.
    fn callbacks(&self) -> usize {
        self.members.values().map(|member| member.contexts.callbacks()).sum()
    }

    /// Moves messages from the canisters that sent them to those that receive them.
    fn deliver(&mut self) {
        let ids: Vec<Principal> = self.members.keys().copied().collect();
        for id in ids {
            let Some(sender) = self.members.get_mut(&id) else { continue };
            if sender.status == Status::Running {
                for delivery in sender.queues.take_outputs_to(&id) {
                    sender.queues.push_input(delivery);
                }
            }
            for delivery in sender.queues.take_outputs() {
                self.route(delivery);
            }
        }
    }

    /// Gives a message to its receiver. A call to a canister that does not run is rejected, one to
    /// a canister that does not exist waits for the end of the round.
    fn route(&mut self, delivery: Delivery) {
        let callee = delivery.receiver;
        if callee == Principal::management_canister() {
            self.call_management(delivery);
            return;
        }
        let is_call = matches!(delivery.content, Content::Request { .. });
        if let Some(message) = self.too_large(&delivery) {
            self.reject(&delivery, RejectCode::CanisterError, message);
            return;
        }
        let Some(receiver) = self.members.get_mut(&callee) else {
            match self.away.get_mut(&callee) {
                Some(arrivals) => arrivals.push(delivery),
                None => self.unroutable.push(delivery),
            }
            return;
        };
        let state = match receiver.status {
            Status::Running => None,
            Status::Stopping => Some("stopping"),
            Status::Stopped => Some("stopped"),
        };
        match state {
            Some(state) if is_call => {
                let message = format!("Canister {callee} is {state}");
                self.reject(&delivery, RejectCode::CanisterError, message);
            }
            _ => receiver.queues.push_input(delivery),
        }
    }

    /// Returns the reject of a call to another part that is too large for another subnet.
    fn too_large(&self, delivery: &Delivery) -> Option<String> {
        let Content::Request { method, argument } = &delivery.content else { return None };
        let (sender, bytes) = (delivery.sender, (method.len() + argument.len()) as u64);
        let most = self.replica_of(&sender).rules().set().messages.argument;
        let outside = self.part_of(&sender) != self.part_of(&delivery.receiver);
        (outside && bytes > most.get()).then(|| {
            format!(
                "Canister {sender} violated contract: attempted to send a message of size {bytes} \
                 exceeding the limit {most}"
            )
        })
    }

    /// Passes a call to the management canister.
    fn call_management(&mut self, delivery: Delivery) {
        let Delivery { sender: caller, callback, deadline, cycles, cause, content, .. } = delivery;
        if let Content::Request { method, argument } = content {
            let origin = Origin::Canister { caller, callback, deadline };
            let part = self.part_of(&caller).unwrap_or_default();
            self.called.push(ManagementCall { origin, part, method, argument, cycles, cause });
        }
    }

    /// Rejects calls to canisters that do not exist, and drops responses to them.
    fn reject_unroutable(&mut self) {
        for delivery in std::mem::take(&mut self.unroutable) {
            if let Some(response) = self.answer_remote(&delivery) {
                self.route(response);
                continue;
            }
            if matches!(delivery.content, Content::Request { .. }) {
                let callee = delivery.receiver;
                let message = match self.hosts(&callee) {
                    true => format!("Canister {callee} not found"),
                    false => format!("No route to canister {callee}"),
                };
                self.reject(&delivery, RejectCode::DestinationInvalid, message);
            }
        }
    }

    /// Rejects best-effort calls whose time is over, and drops those that were not executed. Their
    /// cycles go back to the callers.
    fn expire(&mut self) {
        let time = self.time;
        let mut refunds = Vec::new();
        for (id, member) in &mut self.members {
            for (callback, call) in member.contexts.expire(time) {
                let message = "Call deadline has expired.".to_owned();
                let response = Err(Rejection { code: RejectCode::SysUnknown, message });
                member.queues.push_input(Delivery {
                    sender: call.callee,
                    receiver: *id,
                    callback,
                    deadline: call.deadline,
                    cycles: Cycles(0),
                    cause: None,
                    content: Content::Response(response),
                });
            }
            let dropped = member.queues.expire(time);
            refunds.extend(dropped.into_iter().map(|call| (call.sender, call.cycles)));
        }
        for (caller, cycles) in refunds {
            if let Some(caller) = self.members.get_mut(&caller) {
                caller.canister.add_cycles(cycles);
            }
        }
    }

    fn reject(&mut self, call: &Delivery, code: RejectCode, message: String) {
        let response = call.answer(Err(Rejection { code, message }), call.cycles);
        if let Some(caller) = self.members.get_mut(&response.receiver) {
            caller.queues.push_input(response);
        }
    }

    /// Returns the response to a call, if a function answers it.
    fn answer_remote(&self, call: &Delivery) -> Option<Delivery> {
        let RemoteAnswers(answer) = self.remote.as_ref()?;
        let Content::Request { method, argument } = &call.content else { return None };
        let remote = RemoteCall {
            caller: call.sender,
            callee: call.receiver,
            method,
            argument,
            cycles: call.cycles,
        };
        Some(match answer(&remote)? {
            Ok(reply) => call.answer(Ok(reply), Cycles(0)),
            Err(text) => {
                call.answer(Err(Rejection::new(RejectCode::CanisterReject, text)), call.cycles)
            }
        })
    }
}

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
