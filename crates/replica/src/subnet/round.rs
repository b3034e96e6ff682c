//! Rounds: what the canisters of a subnet do at one point in time.
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
//! round here; on the network it takes a round for each slice.
//!
//! Source: `inner_round` in `rs/execution_environment/src/scheduler.rs` of the replica.

use ic_principal::Principal;

use super::contexts::Origin;
use super::execute::Round;
use super::management::call::ManagementCall;
use super::member::Member;
use super::queues::{Content, Delivery};
use super::remote::{RemoteAnswers, RemoteCall};
use super::subnet_state::Subnet;
use crate::cycles::Saturation;
use crate::fault::{HostError, RejectCode};
use crate::limits::{CORES, ITERATION_OVERHEAD, MAX_CALLBACKS};
use crate::system_api::message::{Rejection, Status};
use crate::units::{Cycles, Instructions};

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
    pub(super) fn begin_round(&mut self) {
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
    pub(super) fn end_round(&mut self) -> Result<(), HostError> {
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
    pub(super) fn round_limit(&self) -> i64 {
        let limits = self.parts.iter().map(|part| part.rules().instructions().round);
        limits.max().unwrap_or(Instructions(0)).get().cast_signed() + 1
    }

    /// Memory of the subnet that is in use.
    pub(super) fn saturation(&self) -> Saturation {
        Saturation::new(self.members.values().map(Member::occupied).sum())
    }

    /// Number of callbacks of all canisters.
    pub(super) fn callbacks(&self) -> usize {
        self.members.values().map(|member| member.contexts.callbacks()).sum()
    }

    /// Moves messages from the canisters that sent them to those that receive them.
    pub(super) fn deliver(&mut self) {
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
