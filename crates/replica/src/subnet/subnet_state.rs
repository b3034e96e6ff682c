//! The state of a subnet: its canisters with their ids, and the calls that it has received.
//!
//! A subnet has one part. A server that offers several subnets has a part for each of them, with the
//! rules of its kind of subnet. Canisters of all parts run in the same rounds and call each other as
//! canisters of one subnet do. A function may answer calls to remote canisters, which are not on the
//! subnet.
//!
//! A new canister gets the next id of the last range of its part. Ids of the other ranges are for
//! those who ask for an id.

use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use ic_principal::Principal;

use super::execute::Round;
use super::management::call::{HttpRequest, ManagementCall};
use super::member::{Member, Next, Routes, canister_id, canister_number};
use super::messages::{
    Answered, Call, CallError, Delivery, Ingress, MAX_ROUNDS, MessageId, not_found, not_running,
};
use crate::canister::Canister;
use crate::cycles::{self, KEYS, NODES, Saturation};
use crate::execution::{Executed, Trace};
use crate::fault::{ErrorCode, HostError, Reject};
use crate::replica::Replica;
use crate::rules::{MAX_INGRESS, Rules};
use crate::system_api::message::{Certifier, Halt, Status};
use crate::units::{Bytes, Cycles};
use crate::validate::MethodKind;

/// Time of a subnet's first round, in nanoseconds since 1970.
const INITIAL_TIME: u64 = 1_620_328_630_000_000_000;
/// Most canisters, unless [`Subnet::set_max_canisters`] sets another limit.
const MAX_CANISTERS: usize = 1 << 20;

/// The number of the first canister id.
const FIRST_ID: u64 = 0xffff_ffff_ffe0_0000;
/// Number of canister ids.
const ID_COUNT: u64 = 0x10_0000;

/// A range of canister ids, and the rules by which their canisters are charged.
#[derive(Clone, Debug)]
pub struct Part {
    pub(super) replica: Replica,
    pub(super) ranges: Vec<RangeInclusive<u64>>,
    /// The number of the next canister id.
    pub(super) next: u64,
    /// Number of nodes.
    pub(super) nodes: u32,
}

impl Part {
    /// Creates a part with the usual ids.
    pub fn new(replica: &Replica) -> Self {
        Self::with_ranges(replica, vec![FIRST_ID..=FIRST_ID + ID_COUNT - 1])
    }

    /// Creates a part whose ids have numbers in the given ranges. New canisters get the ids of the
    /// last one.
    pub fn with_ranges(replica: &Replica, ranges: Vec<RangeInclusive<u64>>) -> Self {
        let next = ranges.last().map_or(FIRST_ID, |last| *last.start());
        Self { replica: replica.clone(), ranges, next, nodes: NODES as u32 }
    }

    /// Sets the number of nodes that canisters read. Fees are those of 13 nodes in any case.
    pub fn set_nodes(&mut self, nodes: u32) {
        self.nodes = nodes;
    }

    /// The rules of the part.
    pub fn rules(&self) -> Rules {
        self.replica.rules()
    }

    /// The number of the next canister id.
    pub fn next_number(&self) -> u64 {
        self.next
    }

    /// Sets the number of the next canister id. Returns false if it is not in the last range, nor the
    /// one after it.
    pub fn set_next_number(&mut self, next: u64) -> bool {
        let fits = self
            .ranges
            .last()
            .is_some_and(|last| last.contains(&next) || last.end().checked_add(1) == Some(next));
        if fits {
            self.next = next;
        }
        fits
    }

    /// The first and the last id of each range.
    pub fn ranges(&self) -> impl Iterator<Item = (Principal, Principal)> {
        self.ranges.iter().map(|range| (canister_id(*range.start()), canister_id(*range.end())))
    }

    /// Returns true if an id is in one of its ranges.
    pub fn hosts(&self, id: &Principal) -> bool {
        canister_number(id)
            .is_some_and(|number| self.ranges.iter().any(|range| range.contains(&number)))
    }
}

/// The routes to parts, with all keys.
fn routes_to(parts: &[Part]) -> Routes {
    Routes { ranges: all_ranges(parts), keys: KEYS.iter().map(|(name, _)| *name).collect() }
}

/// The numbers of the canister ids of all parts.
fn all_ranges(parts: &[Part]) -> Arc<[RangeInclusive<u64>]> {
    parts.iter().flat_map(|part| part.ranges.iter().cloned()).collect()
}

/// A call to a canister that is not on the subnet.
#[derive(Clone, Copy, Debug)]
pub struct RemoteCall<'a> {
    /// The canister that calls.
    pub caller: Principal,
    /// The canister that it calls.
    pub callee: Principal,
    /// The method.
    pub method: &'a str,
    /// The argument.
    pub argument: &'a [u8],
    /// Cycles that come with the call. A reply accepts all of them.
    pub cycles: Cycles,
}

/// Answers calls: a reply or the text of a reject. `None` if there is no such canister.
type Answer = dyn Fn(&RemoteCall<'_>) -> Option<Result<Vec<u8>, String>> + Send + Sync;

/// A function that answers calls.
#[derive(Clone)]
pub struct RemoteAnswers(pub(super) Arc<Answer>);

impl fmt::Debug for RemoteAnswers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RemoteAnswers")
    }
}

/// A canister cannot join a subnet.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the subnet has a canister {0} already")]
pub struct Taken(Principal);

/// Canisters that call each other.
#[derive(Debug)]
pub struct Subnet {
    pub(super) replica: Replica,
    pub(super) members: BTreeMap<Principal, Member>,
    /// Canisters that execute outside of the subnet, with the messages that they will receive.
    pub(super) away: BTreeMap<Principal, Vec<Delivery>>,
    pub(super) answers: BTreeMap<MessageId, Answered>,
    /// Calls to canisters that do not exist.
    pub(super) unroutable: Vec<Delivery>,
    /// Calls of the management canister, for this round and for the next one.
    pub(super) management: VecDeque<ManagementCall>,
    pub(super) called: Vec<ManagementCall>,
    /// Its answers, which arrive in the next round.
    pub(super) returned: Vec<Delivery>,
    /// HTTPS outcalls that wait for an answer.
    pub(super) http: Vec<HttpRequest>,
    pub(super) http_allowed: bool,
    pub(super) next_http: u64,
    pub(super) certifier: Option<Certifier>,
    pub(super) remote: Option<RemoteAnswers>,
    /// Seed of the random generator, and the number of draws.
    pub(super) seed: u64,
    pub(super) drawn: u64,
    pub(super) trace: Trace,
    pub(super) time: u64,
    pub(super) last_round: u64,
    /// Number of rounds.
    pub(super) rounds: u64,
    pub(super) next_message: u64,
    pub(super) parts: Vec<Part>,
    pub(super) routes: Routes,
    pub(super) max_canisters: usize,
    /// True if canisters can be created without cycles for the store of their log.
    pub(super) unpaid_logs: bool,
    pub(super) halt: Halt,
}

impl Subnet {
    /// Creates a subnet without canisters.
    pub fn new(replica: &Replica) -> Self {
        let parts = vec![Part::new(replica)];
        Self {
            replica: replica.clone(),
            members: BTreeMap::new(),
            away: BTreeMap::new(),
            answers: BTreeMap::new(),
            unroutable: Vec::new(),
            management: VecDeque::new(),
            called: Vec::new(),
            returned: Vec::new(),
            http: Vec::new(),
            http_allowed: false,
            next_http: 0,
            certifier: None,
            remote: None,
            seed: 0,
            drawn: 0,
            trace: Trace::default(),
            time: INITIAL_TIME,
            last_round: INITIAL_TIME - 1,
            rounds: 0,
            next_message: 0,
            routes: routes_to(&parts),
            parts,
            max_canisters: MAX_CANISTERS,
            unpaid_logs: false,
            halt: Halt::default(),
        }
    }

    /// Creates a second subnet with the same canisters, messages and calls. The canisters of both
    /// share pages copy-on-write and do not affect each other, and equal calls of both have equal
    /// answers. Canisters that are [borrowed](Self::borrow) are not in the fork.
    #[must_use]
    pub fn fork(&self) -> Self {
        let halt = Halt::default();
        let fork = |(id, member): (&Principal, &Member)| {
            let mut member = member.fork();
            member.canister.halt = Some(halt.clone());
            member.canister.holds_keys = true;
            (*id, member)
        };
        Self {
            replica: self.replica.clone(),
            members: self.members.iter().map(fork).collect(),
            away: BTreeMap::new(),
            answers: self.answers.clone(),
            unroutable: self.unroutable.clone(),
            management: self.management.clone(),
            called: self.called.clone(),
            returned: self.returned.clone(),
            http: self.http.clone(),
            certifier: self.certifier.clone(),
            remote: self.remote.clone(),
            trace: self.trace.clone(),
            parts: self.parts.clone(),
            routes: self.routes.clone(),
            halt,
            ..*self
        }
    }

    /// Sets the seed of `raw_rand`, which is 0 otherwise.
    pub fn set_seed(&mut self, seed: u64) {
        self.seed = seed;
    }

    /// Answers calls to canisters that are not on the subnet. Without this, they are rejected.
    pub fn answer_remote_calls(
        &mut self,
        answer: impl Fn(&RemoteCall<'_>) -> Option<Result<Vec<u8>, String>> + Send + Sync + 'static,
    ) {
        self.remote = Some(RemoteAnswers(Arc::new(answer)));
    }

    /// Limits the number of canisters that exist when the management canister creates another.
    pub fn set_max_canisters(&mut self, limit: usize) {
        self.max_canisters = limit;
    }

    /// Allows users to create canisters without the cycles that these need for the store of their log,
    /// for clients of the time before there were such stores. The network refuses that.
    pub fn allow_unpaid_logs(&mut self) {
        self.unpaid_logs = true;
    }

    /// The switch that ends its messages from another thread.
    pub fn halt(&self) -> Halt {
        self.halt.clone()
    }

    /// Cycles that a canister pays to create another.
    pub fn creation_fee(&self) -> Cycles {
        cycles::creation(self.replica.rules())
    }

    /// Adds a canister.
    ///
    /// # Errors
    ///
    /// If the subnet has a canister with its id.
    pub fn add(&mut self, canister: Canister) -> Result<(), Taken> {
        let id = canister.id();
        if self.exists(&id) {
            return Err(Taken(id));
        }
        self.members.insert(id, self.member_of(canister));
        Ok(())
    }

    /// Returns true if a canister exists, in the subnet or borrowed.
    pub fn exists(&self, id: &Principal) -> bool {
        self.members.contains_key(id) || self.away.contains_key(id)
    }

    /// The canisters, in the order of their ids.
    pub fn canisters(&self) -> impl Iterator<Item = &Canister> {
        self.members.values().map(|member| &member.canister)
    }

    pub(super) fn member_of(&self, mut canister: Canister) -> Member {
        canister.halt = Some(self.halt());
        canister.holds_keys = true;
        canister.nodes = self.nodes_of(&canister.id());
        let rules = self.replica_of(&canister.id()).rules();
        Member::new(canister, rules, self.routes.clone(), self.time)
    }

    /// Returns a canister.
    pub fn canister(&self, id: &Principal) -> Option<&Canister> {
        self.members.get(id).map(|member| &member.canister)
    }

    /// Starts or stops a canister. One with open calls stops in the round in which the last of them
    /// ends, and accepts no calls until then. Returns the new status, or `None` if there is no such
    /// canister.
    pub fn set_running(&mut self, id: &Principal, running: bool) -> Option<Status> {
        let member = self.members.get_mut(id)?;
        member.status = match (running, member.status) {
            (true, _) => Status::Running,
            (false, Status::Stopped) => Status::Stopped,
            (false, _) => Status::Stopping,
        };
        member.settle();
        member.canister.count_change();
        Some(member.status)
    }

    /// Returns the status of a canister.
    pub fn status(&self, id: &Principal) -> Option<Status> {
        self.members.get(id).map(|member| member.status)
    }

    /// Sets how many bytes of heap a canister wants to have left: `canister_on_low_wasm_memory` runs
    /// after the message that leaves less. 0 turns the hook off.
    pub fn set_low_memory_threshold(&mut self, id: &Principal, threshold: Bytes) {
        if let Some(member) = self.members.get_mut(id) {
            member.low_memory_threshold = threshold;
        }
    }

    /// Returns true if a method of a canister is a composite query.
    pub fn is_composite(&self, id: &Principal, method: &str) -> bool {
        let module = self.members.get(id).and_then(|member| member.canister.module());
        module.is_some_and(|module| module.method(method) == Some(MethodKind::CompositeQuery))
    }

    /// Takes a canister off the subnet, without its messages and calls.
    pub fn remove(&mut self, id: &Principal) -> Option<Canister> {
        let mut canister = self.members.remove(id)?.canister;
        canister.halt = None;
        canister.holds_keys = false;
        canister.nodes = NODES as u32;
        Some(canister)
    }

    /// Returns true if no message waits and no call is open. Timers may be set.
    pub fn is_idle(&self) -> bool {
        let managing = !(self.management.is_empty() && self.called.is_empty());
        !managing
            && self.away.is_empty()
            && self.returned.is_empty()
            && self.members.values().all(Member::is_idle)
    }

    /// Returns a canister, between two rounds.
    pub fn canister_mut(&mut self, id: &Principal) -> Option<&mut Canister> {
        self.members.get_mut(id).map(|member| &mut member.canister)
    }

    /// The time of the last round, or a later one that was set since then, in nanoseconds since
    /// 1970.
    pub fn time(&self) -> u64 {
        self.time
    }

    /// Sets the time of the next round. Time never goes back.
    pub fn set_time(&mut self, time: u64) {
        self.time = self.time.max(time);
    }

    /// Sends a message, which is executed in the next rounds. Returns its number, or the reject if
    /// it is not admitted.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn submit(
        &mut self,
        caller: Principal,
        callee: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Result<MessageId, Reject>, HostError> {
        self.submit_to(0, caller, callee, method, argument)
    }

    /// Sends a message as [`Subnet::submit`] does. If it creates a canister, the canister belongs to
    /// the given part.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn submit_to(
        &mut self,
        part: usize,
        caller: Principal,
        callee: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Result<MessageId, Reject>, HostError> {
        if callee == Principal::management_canister() {
            return Ok(self.submit_management(part, caller, method, argument));
        }
        let Some(member) = self.members.get_mut(&callee) else {
            return Ok(Err(not_found(&callee)));
        };
        if let Some(reject) = not_running(&callee, member.status) {
            return Ok(Err(reject));
        }
        if member.queues.ingress() >= MAX_INGRESS {
            let message = format!("Canister {callee} input queue is full");
            return Ok(Err(Reject { code: ErrorCode::CanisterQueueFull, message }));
        }
        member.canister.set_time(self.time);
        if let Some(reject) = member.canister.admit(caller, method, argument)? {
            return Ok(Err(reject));
        }
        let induction = cycles::induction(member.rules(), method, argument);
        if let Err(missing) = member.withdraw(induction, Next::Other) {
            return Ok(Err(member.out_of_cycles(&caller, missing)));
        }
        let (method, argument) = (method.to_owned(), argument.to_vec());
        let id = MessageId(self.next_message);
        member.queues.push_ingress(Ingress { id, caller, method, argument });
        Ok(Ok(self.new_message()))
    }

    pub(super) fn new_message(&mut self) -> MessageId {
        let id = MessageId(self.next_message);
        self.next_message += 1;
        id
    }

    /// Removes the code of a canister and its memories. Its open calls are rejected.
    pub(super) fn uninstall(&mut self, id: &Principal) -> Result<(), HostError> {
        let saturation = Saturation::default();
        let Self { members, trace, answers, time, .. } = self;
        let Some(member) = members.get_mut(id) else { return Ok(()) };
        member.canister.uninstall()?;
        member.managed.log.clear();
        member.managed.chunks.clear();
        member.count_stored();
        let mut round = Round { time: *time, trace, answers, callbacks: 0, saturation };
        let reject = Reject {
            code: ErrorCode::CanisterRejectedMessage,
            message: "Canister has been uninstalled.".to_owned(),
        };
        member.reject_open_calls(&reject, &mut round);
        Ok(())
    }

    /// Takes the answer to a message, if it has one.
    pub fn take_answer(&mut self, id: MessageId) -> Option<Result<Vec<u8>, Reject>> {
        self.answers.remove(&id).map(|answered| answered.response)
    }

    /// Takes the answers to all messages that have one.
    pub fn take_answers(&mut self) -> Vec<(MessageId, Result<Vec<u8>, Reject>)> {
        let answers = std::mem::take(&mut self.answers);
        answers.into_iter().map(|(id, answered)| (id, answered.response)).collect()
    }

    /// Sets whether later executions are profiled ([`Execution::profile`]), with the exception of
    /// installs and upgrades, and of canisters that execute [outside](Self::borrow). Nothing else
    /// changes, but executions take longer. Off by default.
    ///
    /// Profiles with 1 048 576 nodes in all are kept, counted from this call, and as many of each
    /// query. The executions after them have none.
    ///
    /// [`Execution::profile`]: crate::Execution::profile
    pub fn set_profiling(&mut self, on: bool) {
        self.trace.set_profiling(on);
    }

    /// Number of executions until now, without those of queries.
    pub fn executed(&self) -> u64 {
        self.trace.next()
    }

    /// Takes the executions since they were last taken: the first 65 536.
    pub fn take_executions(&mut self) -> Vec<Executed> {
        self.trace.take()
    }

    /// Sends a message and executes rounds until it is answered.
    ///
    /// # Errors
    ///
    /// If there is no answer within 100 rounds, or the host has no memory left.
    pub fn update(
        &mut self,
        caller: Principal,
        callee: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Call, CallError> {
        self.trace.take();
        let id = match self.submit(caller, callee, method, argument)? {
            Ok(id) => id,
            Err(reject) => {
                let response = Err(reject);
                return Ok(Call { response, admitted: false, executions: Vec::new() });
            }
        };
        for _ in 0..MAX_ROUNDS {
            self.tick()?;
            if let Some(response) = self.take_answer(id) {
                let executions = self.take_executions();
                return Ok(Call { response, admitted: true, executions });
            }
        }
        Err(CallError::Unanswered)
    }

    /// Creates a subnet of these parts, without canisters. The first part is that of callers that name
    /// none.
    pub fn with_parts(first: Part, others: Vec<Part>) -> Self {
        let replica = first.replica.clone();
        let mut subnet = Self::new(&replica);
        subnet.parts = [vec![first], others].concat();
        subnet.share_routes();
        subnet
    }

    /// Adds a part, whose ids must not be in a range of another one. Returns its number.
    pub fn add_part(&mut self, part: Part) -> usize {
        self.parts.push(part);
        self.share_routes();
        self.parts.len() - 1
    }

    /// Removes the ids of a part and its canisters, whose messages and calls are lost. The numbers of
    /// the other parts stay.
    pub fn empty_part(&mut self, number: usize) {
        let Some(part) = self.parts.get_mut(number) else { return };
        let removed = Part { ranges: std::mem::take(&mut part.ranges), ..part.clone() };
        self.members.retain(|id, _| !removed.hosts(id));
        self.share_routes();
    }

    /// Limits the threshold keys to those with the given names. There are `key_1`, `test_key_1` and
    /// `dfx_test_key` otherwise.
    pub fn set_keys(&mut self, names: &[&str]) {
        let known = KEYS.iter().map(|(name, _)| *name);
        self.routes.keys = known.filter(|name| names.contains(name)).collect();
        self.share_routes();
    }

    /// The parts by number.
    pub fn parts(&self) -> &[Part] {
        &self.parts
    }

    /// Returns the number of the part with an id.
    pub fn part_of(&self, id: &Principal) -> Option<usize> {
        self.parts.iter().position(|part| part.hosts(id))
    }

    /// Number of the canisters of a part, and the bytes that they occupy.
    pub fn occupied(&self, part: usize) -> (usize, Bytes) {
        let Some(part) = self.parts.get(part) else { return (0, Bytes(0)) };
        let members = self.members.iter().filter(|(id, _)| part.hosts(id));
        let sizes = members.map(|(_, member)| member.occupied());
        sizes.fold((0, Bytes(0)), |(count, sum), size| (count + 1, sum + size))
    }

    /// Returns true if an id is one of those that the subnet gives to canisters.
    pub fn hosts(&self, id: &Principal) -> bool {
        self.routes.host(id)
    }

    /// Takes the id of the next canister of the first part. `None` if there is none left.
    pub fn next_id(&mut self) -> Option<Principal> {
        self.next_id_in(0)
    }

    /// Takes the id of the next canister of a part. `None` if there is none left.
    pub(super) fn next_id_in(&mut self, part: usize) -> Option<Principal> {
        let last = *self.parts.get(part)?.ranges.last()?.end();
        while self.parts[part].next <= last {
            let id = canister_id(self.parts[part].next);
            self.parts[part].next += 1;
            if !self.exists(&id) {
                return Some(id);
            }
        }
        None
    }

    /// Makes an id that was taken last the next one again.
    pub(super) fn return_id(&mut self, part: usize, id: &Principal) {
        if let Some(number) = canister_number(id)
            && let Some(part) = self.parts.get_mut(part)
            && part.next == number + 1
        {
            part.next = number;
        }
    }

    /// The replica on which a canister's modules are compiled.
    pub fn replica_of(&self, id: &Principal) -> &Replica {
        let part = self.parts.iter().find(|part| part.hosts(id));
        part.map_or(&self.replica, |part| &part.replica)
    }

    /// The number of nodes of the part with a canister.
    fn nodes_of(&self, id: &Principal) -> u32 {
        let part = self.parts.iter().find(|part| part.hosts(id));
        part.map_or(NODES as u32, |part| part.nodes)
    }

    fn share_routes(&mut self) {
        self.routes.ranges = all_ranges(&self.parts);
        for member in self.members.values_mut() {
            member.routes = self.routes.clone();
        }
    }
}
