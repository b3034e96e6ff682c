//! Queries, and composite queries that call queries.
//!
//! A query calls others one after another: each runs on the state before the first query, until it
//! answers, and its response runs a callback of the caller. The first answer of a canister ends its
//! part, whatever else it called.
//!
//! Source: `rs/execution_environment/src/query_handler/{query_call_graph,query_context}.rs` of the
//! replica.

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;

use ic_principal::Principal;

use super::contexts::{CallContext, CallbackId, Conclusion, Origin, Outcome};
use super::execute::reported;
use super::funds::Next;
use super::member::{Member, Start};
use super::queues::{Content, Delivery};
use super::trace::{Cause, Function, Trace};
use super::{Call, Subnet, not_found};
use crate::canister::{Canister, exported, reject_large_argument};
use crate::fault::{ErrorCode, Fault, HostError, Reject};
use crate::instance::Entry;
use crate::limits::{MAX_CALLBACKS, MAX_QUERY_DEPTH, MAX_QUERY_INSTRUCTIONS, QUERY_CALL_OVERHEAD};
use crate::rules::SubnetKind;
use crate::run::Run;
use crate::saturation::Saturation;
use crate::system_api::message::{Answer, Certificate, Mode, Rejection, Status};
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
enum Step {
    /// The query is answered. The cause is the execution that answered or, if the query did not run,
    /// the one that called it.
    Answer(Response, Cause),
    /// The query waits for the queries that it called.
    Waits(Box<Node>),
}

type Response = Result<Vec<u8>, Reject>;

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
        self.certifier = Some(Certifier(Arc::new(sign)));
    }

    fn certificate(&self, canister: &Canister) -> Option<Certificate> {
        let Certifier(sign) = self.certifier.clone()?;
        let (id, data, time) = (canister.id(), canister.certified_data().to_vec(), self.time);
        Some(Certificate::new(move || sign(id, &data, time)))
    }
}

/// A function that signs the certified data of a canister at a time.
type Sign = dyn Fn(Principal, &[u8], u64) -> Vec<u8> + Send + Sync;

/// A function that signs certified data.
#[derive(Clone)]
pub struct Certifier(Arc<Sign>);

impl fmt::Debug for Certifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Certifier")
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
            Step::Answer(response, _) => response,
            Step::Waits(root) => self.traverse(root)?,
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
                    Step::Answer(response, cause) => {
                        answered = Some((request.callback, response.map_err(for_canister), cause));
                    }
                    Step::Waits(callee) => stack.push(callee),
                }
                continue;
            } else {
                Step::Answer(Err(silent(&node.member.canister.id())), node.last)
            };
            match (step, origin) {
                (Step::Waits(node), _) => stack.push(node),
                (Step::Answer(response, cause), Origin::Canister { callback, .. }) => {
                    answered = Some((callback, response.map_err(for_canister), cause));
                }
                (Step::Answer(response, _), _) => return Ok(response),
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

    fn request(&mut self, request: &Delivery) -> Result<Step, HostError> {
        let Content::Request { method, argument } = &request.content else {
            let failed = Err(internal("a query was sent a response"));
            return Ok(Step::Answer(failed, request.cause));
        };
        let (caller, callback) = (request.sender, request.callback);
        if request.receiver == Principal::management_canister() && !self.routes_management() {
            self.left -= QUERY_CALL_OVERHEAD.get().cast_signed();
            let response = self.subnet.query_management(caller, method, argument);
            let response = response.map(|(reply, instructions)| {
                self.left -= instructions.get().cast_signed();
                reply
            });
            return Ok(Step::Answer(response, request.cause));
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
    ) -> Result<Step, HostError> {
        let refused = |reject: Reject| Ok(Step::Answer(Err(reject), cause));
        let Some(member) = self.subnet.members.get(&callee) else {
            return refused(not_found(&callee));
        };
        if member.status == Status::Stopped {
            let message = format!(
                "Canister {callee} is stopped and therefore does not have a CallContextManager"
            );
            return refused(Reject { code: ErrorCode::CanisterStopped, message });
        }
        let Some(module) = member.canister.module() else {
            return refused(Fault::NoModule.reject_in_full(&callee, member.rules()));
        };
        let rules = module.rules();
        if let Some(reject) = reject_large_argument(rules, argument) {
            return refused(reject);
        }
        let by_user = matches!(origin, Origin::Query { .. });
        let (mode, prefix, function) = match module.method(method) {
            // A query that another query called may call queries too.
            Some(MethodKind::Query) => {
                let mode = if by_user { Mode::Query } else { Mode::CompositeQuery };
                (mode, "canister_query", Function::Query(method.to_owned()))
            }
            Some(MethodKind::CompositeQuery) => {
                let function = Function::CompositeQuery(method.to_owned());
                (Mode::CompositeQuery, "canister_composite_query", function)
            }
            Some(MethodKind::Update) | None => {
                let fault = Fault::MethodNotFound { kind: "query", name: method.to_owned() };
                return refused(fault.reject_in_full(&callee, member.rules()));
            }
        };
        if member.frozen(Next::Other) > member.canister.balance() {
            let message = format!(
                "Canister {callee} is unable to process query calls because it's frozen. Please \
                 top up the canister with cycles and try again."
            );
            return refused(Reject { code: ErrorCode::CanisterOutOfCycles, message });
        }
        let export = exported(&format!("{prefix} {method}"));
        let context = CallContext::new(origin.clone(), Cycles(0));
        let start = Start {
            mode,
            entry: Entry::Export(&export),
            caller: origin.caller(),
            argument: argument.to_vec(),
            context: context.seen(),
            limit: self.limit(rules.instructions().query),
            next: Next::Other,
            paid: Cycles(0),
            certificate: self.subnet.certificate(&member.canister),
        };
        let shows_log = member.shows_log_to(&start.caller);
        if mode == Mode::Query {
            // It changes nothing, so the canister itself runs it.
            let mut run = self.run(member, &start)?;
            member.canister.undo(&mut run)?;
            run.hide_backtrace(shows_log);
            self.left -= run.charge.get().cast_signed();
            let in_full = match &run.result {
                Err(fault) if self.in_full => Some(Err(fault.reject_in_full(&callee, rules))),
                _ => None,
            };
            let mut execution = run.into_execution(&callee, SILENT);
            execution.cycles = Cycles(0);
            let answer = in_full.unwrap_or_else(|| execution.outcome.clone());
            let number = self.trace.add(cause, callee, function, 0, Cycles(0), execution);
            return Ok(Step::Answer(answer, Some(number)));
        }
        let mut member = member.fork_for_query();
        let context = member.contexts.open(context);
        let mut run = self.run(&member, &start)?;
        run.hide_backtrace(shows_log);
        let charge = run.charge;
        self.left -= charge.get().cast_signed();
        let result = match run.result.clone() {
            Ok(()) => {
                member.canister.commit_memories(&mut run)?;
                let (number, routed) = (self.trace.next(), self.routes_management());
                Ok(member.send_all(&mut run, context, number, self.subnet.time, routed))
            }
            Err(fault) => Err(fault),
        };
        let last = Some(self.add(cause, &member, function, run, &result));
        Ok(match result {
            Ok(Answer::Reply(reply)) => Step::Answer(Ok(reply), last),
            Ok(Answer::Reject(message)) => {
                let code = ErrorCode::CanisterRejectedMessage;
                Step::Answer(Err(Reject { code, message }), last)
            }
            Ok(Answer::Pending(_) | Answer::Earlier) => {
                let pending = Ok(Answer::Pending(Vec::new()));
                member.contexts.finish(context, None, pending, charge);
                let requests = member.queues.take_outputs().into();
                Step::Waits(Box::new(Node { member, origin, requests, last }))
            }
            Err(fault) => Step::Answer(Err(fault.reject_in_full(&callee, rules)), last),
        })
    }

    /// Runs the callback of a response.
    fn respond(
        &mut self,
        mut node: Box<Node>,
        id: CallbackId,
        response: Result<Vec<u8>, Rejection>,
        cause: Cause,
    ) -> Result<Step, HostError> {
        let member = &mut node.member;
        let canister = member.canister.id();
        let missing = || Ok(Step::Answer(Err(internal("a callback is missing")), cause));
        let Some(callback) = member.contexts.callback(id).cloned() else { return missing() };
        let Some(context) = member.contexts.get(callback.context) else { return missing() };
        let start = Start {
            limit: self.limit(member.rules().instructions().query),
            ..Start::callback(&callback, context, response, Cycles(0), true)
        };
        let function = match start.mode {
            Mode::CompositeReplyCallback => Function::ReplyCallback,
            _ => Function::RejectCallback,
        };
        let time = self.subnet.time;
        let mut run = self.run(member, &start)?;
        let shows_log = member.shows_log_to(&start.caller);
        run.hide_backtrace(shows_log);
        let mut charge = run.charge;
        let mut result = match run.result.clone() {
            Ok(()) => {
                member.canister.commit_memories(&mut run)?;
                let (number, routed) = (self.trace.next(), self.routes_management());
                Ok(member.send_all(&mut run, callback.context, number, time, routed))
            }
            Err(fault) => Err(fault),
        };
        let number = self.add(cause, &node.member, function, run, &result);
        node.last = Some(number);
        let member = &mut node.member;
        if let (Err(fault), Some(cleanup)) = (&result, callback.on_cleanup) {
            let limit = Instructions(start.limit.get().saturating_sub(charge.get()));
            let (mode, entry) = (Mode::CompositeCleanup, Entry::Callback(cleanup));
            let cleanup = Start { mode, entry, limit, argument: Vec::new(), ..start };
            let mut run = self.run(member, &cleanup)?;
            run.hide_backtrace(shows_log);
            charge += run.charge;
            let cleaned = run.result.clone();
            if cleaned.is_ok() {
                member.canister.commit_memories(&mut run)?;
            }
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
            None => Step::Waits(node),
            Some(Conclusion { outcome, .. }) => {
                let response = match outcome {
                    Outcome::Reply(reply) => Ok(reply),
                    Outcome::Reject(message) => {
                        Err(Reject { code: ErrorCode::CanisterRejectedMessage, message })
                    }
                    Outcome::Silence => Err(silent(&canister)),
                    Outcome::Fault(fault) => Err(fault.reject_in_full(&canister, rules)),
                };
                Step::Answer(response, Some(number))
            }
        })
    }

    /// Runs a function of a canister. Queries reserve nothing for memory that grows.
    fn run(&self, member: &Member, start: &Start<'_>) -> Result<Run, HostError> {
        member.run(start, self.subnet.time, MAX_CALLBACKS, Saturation::default(), &self.trace)
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
