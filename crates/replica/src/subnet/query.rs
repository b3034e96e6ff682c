//! Queries, and composite queries that call queries.
//!
//! A query calls others one after another: each runs on the state before the first query, until it
//! answers, and its response runs a callback of the caller. The first answer of a canister ends its
//! part, whatever else it called.
//!
//! Source: `rs/execution_environment/src/query_handler/{query_call_graph,query_context}.rs` of the
//! replica.

use std::collections::VecDeque;

use ic_principal::Principal;

use super::execute::reported;
use super::member::{Member, Next, Start, Surroundings};
use super::messages::{
    Call, CallContext, CallbackId, Conclusion, Content, ContextId, Delivery, Origin, Outcome,
    not_found,
};
use super::subnet_state::Subnet;
use crate::canister::Canister;
use crate::canister::dispatch::{self, Called, Invocation, Place};
use crate::cycles::Saturation;
use crate::execution::{Cause, Function, Trace};
use crate::fault::{ErrorCode, Fault, HostError, Reject};
use crate::instance::Entry;
use crate::rules::{
    MAX_CALLBACKS, MAX_QUERY_DEPTH, MAX_QUERY_INSTRUCTIONS, QUERY_CALL_OVERHEAD, SubnetKind,
};
use crate::run::Run;
use crate::system_api::message::{Answer, Certificate, Certifier, Mode, Rejection, Status};
use crate::units::{Cycles, Instructions};
use crate::validate::MethodKind;

/// A query that called others and has not answered.
struct Node {
    member: Member,
    origin: Origin,
    /// Calls that were not made yet.
    requests: VecDeque<Delivery>,
    /// Its last execution.
    last: Cause,
}

/// The result of an execution.
enum QueryProgress {
    /// The query is answered. The cause is the execution that answered or, if the query did not run,
    /// the one that called it.
    Answer(Response, Cause),
    /// The query waits for the queries that it called.
    Waits(Box<Node>),
}

type Response = Result<Vec<u8>, Reject>;

/// The canister that executes a query.
enum Seat<'a> {
    /// The canister itself, for a query that changes nothing.
    Shared(&'a Member),
    /// A fork, which keeps the changes until the composite query ends.
    Forked(Box<Member>),
    /// Such a fork, for a callback.
    Waiting(&'a mut Member),
}

impl Seat<'_> {
    fn member(&self) -> &Member {
        match self {
            Self::Shared(member) => member,
            Self::Forked(member) => member,
            Self::Waiting(member) => member,
        }
    }
}

/// A canister that executes a query, or a callback of one.
struct InGraph<'a> {
    seat: Seat<'a>,
    start: Start<'a>,
    surroundings: Surroundings,
    /// The context of a call, which is opened when the call is admitted.
    opening: Option<CallContext>,
    /// That context.
    context: ContextId,
}

impl Place for InGraph<'_> {
    fn canister(&self) -> &Canister {
        &self.seat.member().canister
    }

    fn status(&self) -> Status {
        self.seat.member().status
    }

    fn refuses_queries(&self) -> bool {
        let member = self.seat.member();
        member.frozen(Next::Other) > member.canister.balance()
    }

    fn reject(&self, fault: &Fault) -> Reject {
        let member = self.seat.member();
        fault.reject_in_full(&member.canister.id(), member.rules())
    }

    fn run(&mut self, mode: Mode, entry: Entry<'_>) -> Result<Run, HostError> {
        if mode.is_composite()
            && let Seat::Shared(member) = self.seat
        {
            let mut fork = member.fork_for_query();
            if let Some(context) = self.opening.take() {
                self.context = fork.contexts.open(context);
            }
            self.seat = Seat::Forked(Box::new(fork));
        }
        self.seat.member().run(&self.start, mode, entry, self.surroundings)
    }

    fn commit(&mut self, run: &mut Run) -> Result<(), HostError> {
        match &mut self.seat {
            Seat::Shared(member) => member.canister.undo(run),
            Seat::Forked(member) => member.canister.commit_memories(run),
            Seat::Waiting(member) => member.canister.commit_memories(run),
        }
    }
}

/// The queries that a user's query caused.
struct Graph<'a> {
    subnet: &'a Subnet,
    trace: Trace,
    /// Instructions left for all of them.
    left: i64,
    /// True if the text of a reject has the replica's suggestion too.
    in_full: bool,
}

impl Subnet {
    /// Calls a query or a composite query. No change of any canister stays.
    ///
    /// # Errors
    ///
    /// If the host has no memory left.
    pub fn query(
        &self,
        caller: Principal,
        callee: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Call, HostError> {
        if callee == Principal::management_canister() {
            let response = self.query_management(caller, method, argument);
            let response = response.map(|(reply, _)| reply);
            return Ok(Call { response, admitted: true, executions: Vec::new() });
        }
        let mut graph = Graph::new(self, &callee, false);
        let response = graph.query(caller, callee, method, argument)?;
        Ok(Call { response, admitted: true, executions: graph.trace.take() })
    }

    /// Calls a query as the replica itself does, which sees the rejects in full.
    pub(super) fn query_in_full(
        &self,
        caller: Principal,
        callee: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Response, HostError> {
        Graph::new(self, &callee, true).query(caller, callee, method, argument)
    }
}

impl Subnet {
    /// Signs the certified data of canisters, which queries can read: `sign` receives a canister's
    /// id, its certified data, and the time. Without this, queries that read a certificate trap.
    pub fn set_certifier(
        &mut self,
        sign: impl Fn(Principal, &[u8], u64) -> Vec<u8> + Send + Sync + 'static,
    ) {
        self.certifier = Some(Certifier::new(sign));
    }

    fn certificate(&self, canister: &Canister) -> Option<Certificate> {
        let certifier = self.certifier.as_ref()?;
        Some(certifier.certificate(canister.id(), canister.certified_data(), self.time))
    }
}

impl<'a> Graph<'a> {
    fn new(subnet: &'a Subnet, callee: &Principal, in_full: bool) -> Self {
        let rules = subnet.replica_of(callee).rules();
        let left = match rules.subnet() {
            SubnetKind::Benchmarking | SubnetKind::FreeBenchmarking => rules.instructions().query,
            _ => MAX_QUERY_INSTRUCTIONS,
        };
        let left = left.get().cast_signed();
        Self { subnet, trace: subnet.trace.of_query(), left, in_full }
    }

    /// Executes a query of a user.
    fn query(
        &mut self,
        caller: Principal,
        callee: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Response, HostError> {
        let origin = Origin::Query { caller };
        Ok(match self.call(origin, callee, method, argument, None)? {
            QueryProgress::Answer(response, _) => response,
            QueryProgress::Waits(root) => self.traverse(root)?,
        })
    }

    /// Executes the calls of a query, depth first, until it answers.
    fn traverse(&mut self, root: Box<Node>) -> Result<Response, HostError> {
        let mut stack = vec![root];
        // The answer to a call of the last node, and its cause.
        let mut answered: Option<(CallbackId, Result<Vec<u8>, Rejection>, Cause)> = None;
        loop {
            let Some(mut node) = stack.pop() else {
                return Ok(Err(internal("a query ended without an answer")));
            };
            if let Some(reject) = self.limit_reached(stack.len()) {
                return Ok(Err(reject));
            }
            let origin = node.origin.clone();
            let step = if let Some((callback, response, cause)) = answered.take() {
                self.respond(node, callback, response, cause)?
            } else if let Some(request) = node.requests.pop_front() {
                stack.push(node);
                match self.request(&request)? {
                    QueryProgress::Answer(response, cause) => {
                        answered = Some((request.callback, response.map_err(for_canister), cause));
                    }
                    QueryProgress::Waits(callee) => stack.push(callee),
                }
                continue;
            } else {
                QueryProgress::Answer(Err(silent(&node.member.canister.id())), node.last)
            };
            match (step, origin) {
                (QueryProgress::Waits(node), _) => stack.push(node),
                (QueryProgress::Answer(response, cause), Origin::Canister { callback, .. }) => {
                    answered = Some((callback, response.map_err(for_canister), cause));
                }
                (QueryProgress::Answer(response, _), _) => return Ok(response),
            }
        }
    }

    fn limit_reached(&self, depth: usize) -> Option<Reject> {
        let (code, limit) = if depth >= MAX_QUERY_DEPTH {
            (ErrorCode::QueryCallGraphTooDeep, "maximum call depth")
        } else if self.left <= 0 {
            (ErrorCode::QueryCallGraphTotalInstructionLimitExceeded, "instruction limit")
        } else {
            return None;
        };
        Some(Reject { code, message: format!("Composite query calls exceeded the {limit}.") })
    }

    fn request(&mut self, request: &Delivery) -> Result<QueryProgress, HostError> {
        let Content::Request { method, argument } = &request.content else {
            let failed = Err(internal("a query was sent a response"));
            return Ok(QueryProgress::Answer(failed, request.cause));
        };
        let (caller, callback) = (request.sender, request.callback);
        if request.receiver == Principal::management_canister() && !self.routes_management() {
            self.left -= QUERY_CALL_OVERHEAD.get().cast_signed();
            let response = self.subnet.query_management(caller, method, argument);
            let response = response.map(|(reply, instructions)| {
                self.left -= instructions.get().cast_signed();
                reply
            });
            return Ok(QueryProgress::Answer(response, request.cause));
        }
        let origin = Origin::Canister { caller, callback, deadline: 0 };
        let step = self.call(origin, request.receiver, method, argument, request.cause);
        self.left -= QUERY_CALL_OVERHEAD.get().cast_signed();
        step
    }

    /// Returns true if calls of the management canister are checked as those of updates are.
    fn routes_management(&self) -> bool {
        !self.subnet.replica.rules().set().management_queries
    }

    /// Executes a query on the state before the user's query.
    fn call(
        &mut self,
        origin: Origin,
        callee: Principal,
        method: &str,
        argument: &[u8],
        cause: Cause,
    ) -> Result<QueryProgress, HostError> {
        let refused = |reject: Reject| Ok(QueryProgress::Answer(Err(reject), cause));
        let Some(member) = self.subnet.members.get(&callee) else {
            return refused(not_found(&callee));
        };
        let rules = member.rules();
        let (invocation, caller) = match origin {
            Origin::Query { caller } => (Invocation::Query, caller),
            _ => (Invocation::NestedQuery, origin.caller()),
        };
        let context = CallContext::new(origin.clone(), Cycles(0));
        let start = Start {
            limit: Some(self.limit(rules.instructions().query)),
            certificate: self.subnet.certificate(&member.canister),
            ..Start::new(caller, argument, context.seen())
        };
        let seat = Seat::Shared(member);
        let mut place = self.place(seat, start, Some(context));
        let called = dispatch::call(&mut place, invocation, method, argument)?;
        let InGraph { seat, context, .. } = place;
        let Called { kind, mut run, .. } = match called {
            Ok(called) => called,
            Err(refusal) => return refused(refusal.reject),
        };
        let function = match kind {
            Some(MethodKind::CompositeQuery) => Function::CompositeQuery(method.to_owned()),
            _ => Function::Query(method.to_owned()),
        };
        run.hide_backtrace(member.shows_log_to(&caller));
        let charge = run.charge;
        self.left -= charge.get().cast_signed();
        let Seat::Forked(mut member) = seat else {
            // It called no others.
            let in_full = match &run.result {
                Err(fault) if self.in_full => Some(Err(fault.reject_in_full(&callee, rules))),
                _ => None,
            };
            let mut execution = run.into_execution(&callee, SILENT);
            execution.cycles = Cycles(0);
            let answer = in_full.unwrap_or_else(|| execution.outcome.clone());
            let number = self.trace.add(cause, callee, function, 0, Cycles(0), execution);
            return Ok(QueryProgress::Answer(answer, Some(number)));
        };
        let result = match run.result.clone() {
            Ok(()) => {
                let (number, routed) = (self.trace.next(), self.routes_management());
                Ok(member.send_all(&mut run, context, number, self.subnet.time, routed))
            }
            Err(fault) => Err(fault),
        };
        let last = Some(self.add(cause, &member, function, run, &result));
        Ok(match result {
            Ok(Answer::Reply(reply)) => QueryProgress::Answer(Ok(reply), last),
            Ok(Answer::Reject(message)) => {
                let code = ErrorCode::CanisterRejectedMessage;
                QueryProgress::Answer(Err(Reject { code, message }), last)
            }
            Ok(Answer::Pending(_) | Answer::Earlier) => {
                let pending = Ok(Answer::Pending(Vec::new()));
                member.contexts.finish(context, None, pending, charge);
                let requests = member.queues.take_outputs().into();
                QueryProgress::Waits(Box::new(Node { member: *member, origin, requests, last }))
            }
            Err(fault) => QueryProgress::Answer(Err(fault.reject_in_full(&callee, rules)), last),
        })
    }

    /// Runs the callback of a response.
    fn respond(
        &mut self,
        mut node: Box<Node>,
        id: CallbackId,
        response: Result<Vec<u8>, Rejection>,
        cause: Cause,
    ) -> Result<QueryProgress, HostError> {
        let canister = node.member.canister.id();
        let missing = || Ok(QueryProgress::Answer(Err(internal("a callback is missing")), cause));
        let contexts = &node.member.contexts;
        let Some(callback) = contexts.callback(id).cloned() else { return missing() };
        let Some(context) = contexts.get(callback.context) else { return missing() };
        let limit = self.limit(node.member.rules().instructions().query);
        let start = Start::callback(&callback, context, &response, Cycles(0));
        let start = Start { limit: Some(limit), ..start };
        let (caller, seen) = (start.caller, start.context.clone());
        let (mode, function) = match response {
            Ok(_) => (Mode::CompositeReplyCallback, Function::ReplyCallback),
            Err(_) => (Mode::CompositeRejectCallback, Function::RejectCallback),
        };
        let time = self.subnet.time;
        let entry = Entry::Callback(callback.closure(&response));
        let mut run = self.execute(&mut node.member, start, mode, entry)?;
        let member = &mut node.member;
        let shows_log = member.shows_log_to(&caller);
        run.hide_backtrace(shows_log);
        let mut charge = run.charge;
        let mut result = match run.result.clone() {
            Ok(()) => {
                let (number, routed) = (self.trace.next(), self.routes_management());
                Ok(member.send_all(&mut run, callback.context, number, time, routed))
            }
            Err(fault) => Err(fault),
        };
        let number = self.add(cause, &node.member, function, run, &result);
        node.last = Some(number);
        if let (Err(fault), Some(closure)) = (&result, callback.on_cleanup) {
            let left = Instructions(limit.get().saturating_sub(charge.get()));
            let cleanup = Start { limit: Some(left), ..Start::new(caller, &[], seen) };
            let entry = Entry::Callback(closure);
            let member = &mut node.member;
            let mut run = self.execute(member, cleanup, Mode::CompositeCleanup, entry)?;
            run.hide_backtrace(shows_log);
            charge += run.charge;
            let cleaned = run.result.clone();
            if let Err(cleanup) = &cleaned {
                let (callback, cleanup) = (Box::new(fault.clone()), Box::new(cleanup.clone()));
                result = Err(Fault::Cleanup { callback, cleanup });
            }
            let cleaned = cleaned.map(|()| Answer::Earlier);
            self.add(Some(number), &node.member, Function::Cleanup, run, &cleaned);
        }
        self.left -= charge.get().cast_signed();
        let member = &mut node.member;
        let rules = member.rules();
        let conclusion = member.contexts.finish(callback.context, Some(id), result, charge);
        node.requests.extend(node.member.queues.take_outputs());
        Ok(match conclusion {
            None => QueryProgress::Waits(node),
            Some(Conclusion { outcome, .. }) => {
                let response = match outcome {
                    Outcome::Reply(reply) => Ok(reply),
                    Outcome::Reject(message) => {
                        Err(Reject { code: ErrorCode::CanisterRejectedMessage, message })
                    }
                    Outcome::Silence => Err(silent(&canister)),
                    Outcome::Fault(fault) => Err(fault.reject_in_full(&canister, rules)),
                };
                QueryProgress::Answer(response, Some(number))
            }
        })
    }

    /// Executes a callback of a query that waits.
    fn execute(
        &self,
        member: &mut Member,
        start: Start<'_>,
        mode: Mode,
        entry: Entry<'_>,
    ) -> Result<Run, HostError> {
        dispatch::execute(&mut self.place(Seat::Waiting(member), start, None), mode, entry)
    }

    /// Queries reserve nothing for memory that grows.
    fn place<'p>(
        &self,
        seat: Seat<'p>,
        start: Start<'p>,
        opening: Option<CallContext>,
    ) -> InGraph<'p> {
        let surroundings = Surroundings {
            time: self.subnet.time,
            callbacks: MAX_CALLBACKS,
            saturation: Saturation::default(),
            profiles: self.trace.profiles(),
        };
        InGraph { seat, start, surroundings, opening, context: 0 }
    }

    /// The instructions of the next execution.
    fn limit(&self, query: Instructions) -> Instructions {
        query.min(Instructions(self.left.max(0).cast_unsigned()))
    }

    fn add(
        &mut self,
        cause: Cause,
        member: &Member,
        function: Function,
        run: Run,
        result: &Result<Answer, Fault>,
    ) -> u64 {
        let id = member.canister.id();
        let mut execution = run.into_execution_with(reported(result, &id));
        // Queries are free.
        execution.cycles = Cycles(0);
        self.trace.add(cause, id, function, 0, Cycles(0), execution)
    }
}

const SILENT: &str = "did not produce a response";

fn silent(id: &Principal) -> Reject {
    Reject { code: ErrorCode::CanisterDidNotReply, message: format!("Canister {id} {SILENT}") }
}

fn internal(what: &str) -> Reject {
    Reject { code: ErrorCode::CanisterWasmEngineError, message: format!("Composite query: {what}") }
}

/// The reject of a query as a calling query sees it.
fn for_canister(reject: Reject) -> Rejection {
    Rejection::new(reject.code.reject_code(), reject.message)
}
