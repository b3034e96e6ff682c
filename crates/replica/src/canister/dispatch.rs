//! The path of every message: whether a canister is by itself, on a subnet or part of a query graph.
//!
//! ```text
//!   call of a method ──→ resolve ──→ prepay ──→ admit ──┐
//!   callback, task ─────────────────────────────────────┴─→ run ──→ object ──→ commit or drop
//!            │ refused: a reject, and whether the base fee is due
//! ```
//!
//! A [`Place`] is where a canister executes. It says what differs: who pays and when a canister is
//! frozen, what the message knows of its surroundings, and where its changes go. The caller charges
//! for [`Run::charge`].
//!
//! A canister by itself is such a place. It pays for updates with what it has and never freezes, has no
//! calls, and its time advances by a nanosecond with each message.
//!
//! Source: `rs/execution_environment/src/{execution_environment,execution/call_or_task}.rs` and
//! `rs/execution_environment/src/query_handler/query_context.rs` of the replica.

use ic_principal::Principal;

use super::{Canister, now};
use crate::cycles;
use crate::execution::Execution;
use crate::fault::{ErrorCode, Fault, HostError, Reject};
use crate::instance::Entry;
use crate::module::Module;
use crate::profile::{Profile, ProfileError, Span};
use crate::rules::Rules;
use crate::run::Run;
use crate::system_api::message::{Message, Mode, Status};
use crate::units::{Bytes, Cycles, Instructions};
use crate::validate::{EntryPoint, MethodKind};

/// The way in which a method is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Invocation {
    /// On all nodes: an ingress message or the request of a canister.
    Replicated,
    /// On one node: the query of a user.
    Query,
    /// On one node: the query of a query.
    NestedQuery,
}

impl Invocation {
    /// The mode in which a method of a kind is executed, or would be if it were admitted.
    fn mode(self, kind: Option<MethodKind>) -> Mode {
        match (self, kind) {
            (Self::Replicated, Some(MethodKind::Query | MethodKind::CompositeQuery)) => {
                Mode::ReplicatedQuery
            }
            (Self::Replicated, Some(MethodKind::Update) | None) => Mode::Update,
            // A query that another query called may call queries too.
            (Self::NestedQuery, _) | (Self::Query, Some(MethodKind::CompositeQuery)) => {
                Mode::CompositeQuery
            }
            (Self::Query, Some(MethodKind::Query | MethodKind::Update) | None) => Mode::Query,
        }
    }

    /// The name of a method's export, if it can be called in this way.
    fn export(self, name: &str, kind: Option<MethodKind>) -> Result<String, Refused> {
        let expected = if self == Self::Replicated { "update" } else { "query" };
        let prefix = match (self, kind) {
            (Self::Replicated, Some(MethodKind::Update)) => "canister_update",
            (Self::Replicated, Some(MethodKind::CompositeQuery)) => {
                return Err(composite_query_in_replicated_mode().into());
            }
            (Self::Query | Self::NestedQuery, Some(MethodKind::CompositeQuery)) => {
                "canister_composite_query"
            }
            (_, Some(MethodKind::Query)) => "canister_query",
            (Self::Query | Self::NestedQuery, Some(MethodKind::Update)) | (_, None) => {
                return Err(Fault::MethodNotFound { kind: expected, name: name.to_owned() }.into());
            }
        };
        Ok(exported(&format!("{prefix} {name}")))
    }
}

/// The reject of a composite query that is called as an update.
fn composite_query_in_replicated_mode() -> Reject {
    Reject {
        code: ErrorCode::CompositeQueryCalledInReplicatedMode,
        message: "Composite query cannot be called in replicated mode".to_owned(),
    }
}

/// The reason for which a message is not executed.
enum Refused {
    Reject(Reject),
    Fault(Fault),
}

impl From<Reject> for Refused {
    fn from(reject: Reject) -> Self {
        Self::Reject(reject)
    }
}

impl From<Fault> for Refused {
    fn from(fault: Fault) -> Self {
        Self::Fault(fault)
    }
}

/// A call that was executed.
#[derive(Debug)]
pub(crate) struct Called {
    /// The kind of its method.
    pub kind: Option<MethodKind>,
    /// The mode in which the method was executed.
    pub mode: Mode,
    /// The execution.
    pub run: Run,
}

/// A message that is not executed.
#[derive(Debug)]
pub(crate) struct Refusal {
    /// The answer.
    pub reject: Reject,
    /// True if the message was prepaid, so that the base fee is due.
    pub prepaid: bool,
}

/// A place where a canister executes messages.
pub(crate) trait Place {
    /// The canister.
    fn canister(&self) -> &Canister;

    /// `canister_status`.
    fn status(&self) -> Status {
        Status::Running
    }

    /// Deducts the most that an execution may cost. The error is a reject.
    fn prepay(&mut self, _mode: Mode) -> Result<(), Reject> {
        Ok(())
    }

    /// Returns true if the canister is frozen, so that it answers no queries.
    fn refuses_queries(&self) -> bool {
        false
    }

    /// The reject for a fault of a message that is not admitted.
    fn reject(&self, fault: &Fault) -> Reject;

    /// Runs a function.
    fn run(&mut self, mode: Mode, entry: Entry<'_>) -> Result<Run, HostError>;

    /// The reason for which a message fails although its function returned.
    fn objection(&self, _mode: Mode, _run: &Run) -> Option<Fault> {
        None
    }

    /// Commits a message that succeeded, or drops the changes of a query.
    fn commit(&mut self, run: &mut Run) -> Result<(), HostError>;
}

/// Executes a call of a method.
///
/// # Errors
///
/// If the host has no memory left. Errors of the canister are in [`Run::result`].
pub(crate) fn call(
    place: &mut impl Place,
    invocation: Invocation,
    method: &str,
    argument: &[u8],
) -> Result<Result<Called, Refusal>, HostError> {
    place.canister().check_consistent()?;
    let kind = place.canister().module().and_then(|module| module.method(method));
    let mode = invocation.mode(kind);
    if let Err(reject) = place.prepay(mode) {
        return Ok(Err(Refusal { reject, prepaid: false }));
    }
    let export = match admit(place, invocation, method, kind, argument) {
        Ok(export) => export,
        Err(refused) => {
            let reject = match refused {
                Refused::Reject(reject) => reject,
                Refused::Fault(fault) => place.reject(&fault),
            };
            return Ok(Err(Refusal { reject, prepaid: true }));
        }
    };
    let run = execute(place, mode, Entry::Export(&export))?;
    Ok(Ok(Called { kind, mode, run }))
}

/// Executes a function: that of a call, of a response or of a task.
///
/// # Errors
///
/// If the host has no memory left. Errors of the canister are in [`Run::result`].
pub(crate) fn execute(
    place: &mut impl Place,
    mode: Mode,
    entry: Entry<'_>,
) -> Result<Run, HostError> {
    let mut run = place.run(mode, entry)?;
    if run.result.is_ok()
        && let Some(fault) = place.objection(mode, &run)
    {
        place.canister().undo(&mut run)?;
        run.result = Err(fault);
    }
    if run.result.is_ok() {
        place.commit(&mut run)?;
    }
    Ok(run)
}

/// Returns the export that a call executes, if the canister takes the call.
fn admit(
    place: &impl Place,
    invocation: Invocation,
    method: &str,
    kind: Option<MethodKind>,
    argument: &[u8],
) -> Result<String, Refused> {
    let canister = place.canister();
    let replicated = invocation == Invocation::Replicated;
    check_status(canister, place.status(), replicated)?;
    let module = canister.module().ok_or(Fault::NoModule)?;
    if !replicated && let Some(reject) = reject_large_argument(module.rules(), argument) {
        return Err(reject.into());
    }
    let export = invocation.export(method, kind)?;
    if invocation.mode(kind) == Mode::Update {
        let peak = Bytes(canister.state.heap.size() as u64);
        let limit = canister.settings().heap_limit;
        if limit != Bytes(0) && peak > limit {
            return Err(Fault::WasmMemoryLimit { peak, limit }.into());
        }
    }
    if !replicated && place.refuses_queries() {
        let message = format!(
            "Canister {} is unable to process query calls because it's frozen. Please top up the \
             canister with cycles and try again.",
            canister.id()
        );
        return Err(Reject { code: ErrorCode::CanisterOutOfCycles, message }.into());
    }
    Ok(export)
}

/// Checks that a canister with this status takes calls.
fn check_status(canister: &Canister, status: Status, replicated: bool) -> Result<(), Reject> {
    let id = canister.id();
    let code = match status {
        Status::Running => return Ok(()),
        Status::Stopping if !replicated => return Ok(()),
        Status::Stopping => ErrorCode::CanisterStopping,
        Status::Stopped => ErrorCode::CanisterStopped,
    };
    let message = match replicated {
        true => format!("Canister {id} is not running"),
        false => {
            format!("Canister {id} is stopped and therefore does not have a CallContextManager")
        }
    };
    Err(Reject { code, message })
}

/// The name under which the rewritten module exports a function.
pub(crate) fn exported(name: &str) -> String {
    format!("function {name}")
}

/// Rejects an argument that exceeds the limit of a message.
pub(crate) fn reject_large_argument(rules: Rules, argument: &[u8]) -> Option<Reject> {
    let (bytes, most) = (argument.len(), rules.set().messages.argument);
    (bytes as u64 > most.get()).then(|| Reject {
        code: ErrorCode::InvalidManagementPayload,
        message: format!("the argument has {bytes} bytes, a message takes at most {most}"),
    })
}

/// The options of a query.
#[derive(Clone, Copy, Debug, Default)]
struct Query {
    /// The heap is copied before the query runs, because it writes to most pages.
    copies_ahead: bool,
    /// The part that is profiled.
    span: Option<Span>,
}

/// An execution, and its profile if that was requested.
type Profiled = (Execution, Option<Result<Profile, ProfileError>>);

/// A canister by itself, which executes an update.
struct Alone<'a> {
    canister: &'a mut Canister,
    caller: Principal,
    argument: &'a [u8],
    induction: Cycles,
    /// The most that the message may cost. It is kept back while the message runs.
    reserved: Cycles,
    span: Option<Span>,
    profile: Option<Result<Profile, ProfileError>>,
}

impl Alone<'_> {
    /// The cost of an execution.
    fn cost(&self, charge: Instructions) -> Cycles {
        let wasm64 = self.canister.module().is_some_and(Module::is_64_bit);
        self.induction + cycles::execution(self.canister.rules(), charge, wasm64)
    }
}

impl Place for Alone<'_> {
    fn canister(&self) -> &Canister {
        self.canister
    }

    fn prepay(&mut self, mode: Mode) -> Result<(), Reject> {
        self.reserved = self.cost(mode.instructions(self.canister.rules()).0);
        Ok(())
    }

    fn reject(&self, fault: &Fault) -> Reject {
        fault.reject(&self.canister.id())
    }

    fn run(&mut self, mode: Mode, entry: Entry<'_>) -> Result<Run, HostError> {
        let Self { canister, caller, argument, reserved, span, .. } = self;
        let rules = canister.rules();
        let message = canister.message(rules, mode, *caller, argument.to_vec());
        let limit = mode.instructions(rules).0;
        let balance = Cycles(message.balance.get().saturating_sub(reserved.get()));
        let message = Message { balance, ..message };
        let (run, profile) = canister.run(message, entry, limit, *span)?;
        self.profile = profile;
        Ok(run)
    }

    fn commit(&mut self, run: &mut Run) -> Result<(), HostError> {
        // A replicated query counts too, although its changes are dropped.
        self.canister.commit(run)
    }
}

/// A canister by itself, which executes a query or decides on a message.
struct AloneReading<'a> {
    canister: &'a Canister,
    caller: Principal,
    method: &'a str,
    argument: &'a [u8],
    options: Query,
    profile: Option<Result<Profile, ProfileError>>,
}

impl Place for AloneReading<'_> {
    fn canister(&self) -> &Canister {
        self.canister
    }

    fn reject(&self, fault: &Fault) -> Reject {
        fault.reject(&self.canister.id())
    }

    fn run(&mut self, mode: Mode, entry: Entry<'_>) -> Result<Run, HostError> {
        let Self { canister, caller, method, argument, options, .. } = self;
        let rules = canister.rules();
        let mut message = canister.message(rules, mode, *caller, argument.to_vec());
        if mode == Mode::InspectMessage {
            (*method).clone_into(&mut message.method);
        }
        message.copies_ahead = options.copies_ahead;
        if matches!(mode, Mode::Query | Mode::CompositeQuery)
            && let Some(certifier) = &canister.certifier
        {
            let (id, data) = (canister.id(), canister.certified_data());
            message.certificate = Some(certifier.certificate(id, data, canister.time));
        }
        let limit = mode.instructions(rules).0;
        let (run, profile) = canister.run(message, entry, limit, options.span)?;
        self.profile = profile;
        Ok(run)
    }

    fn commit(&mut self, run: &mut Run) -> Result<(), HostError> {
        self.canister.undo(run)
    }
}

impl Canister {
    /// Calls a method as an update. All changes of the message are committed, or none if it fails.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. Errors of the canister are in [`Execution::outcome`].
    pub fn update(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        Ok(self.execute_update(caller, method, argument, None)?.0)
    }

    /// Calls a method as a query. Its changes are dropped.
    ///
    /// # Errors
    ///
    /// If the host has no memory left. Errors of the canister are in [`Execution::outcome`].
    pub fn query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        Ok(self.execute_query(caller, method, argument, Query::default())?.0)
    }

    /// Returns the cycles that a query would cost as an ingress message with the same number of
    /// instructions. Queries themselves are free.
    pub fn cycles_as_update(&self, method: &str, argument: &[u8], query: &Execution) -> Cycles {
        let Some(module) = &self.module else {
            return Cycles(0);
        };
        let rules = module.rules();
        cycles::induction(rules, method, argument)
            + cycles::execution(rules, query.charge, module.is_64_bit())
    }

    /// Calls a method as a query that touches most of the canister's heap.
    ///
    /// The reply is that of [`Canister::query`]. It is faster if the canister writes to most pages
    /// of its heap, as SQLite does when it fills its cache: the pages are copied together before
    /// the query instead of one by one. The counts are not exact: charges for touching heap pages
    /// are missing.
    ///
    /// # Errors
    ///
    /// The errors of [`Canister::query`].
    pub fn query_all(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Execution, HostError> {
        let options = Query { copies_ahead: true, ..Query::default() };
        Ok(self.execute_query(caller, method, argument, options)?.0)
    }

    /// Calls a method as [`Canister::update`] does and profiles the message or a span of it. If
    /// the message fails, the profile ends there; if it was not executed, the profile is empty.
    ///
    /// Outcome and cost are those of the update without profiling, except that the stack depth at
    /// which a message overflows the stack depends on the compiled code.
    ///
    /// # Errors
    ///
    /// If the host has no memory left, or the canister did not read its counter at the start or
    /// end of the span.
    pub fn profile_update(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        span: Span,
    ) -> Result<(Execution, Profile), ProfileError> {
        let (execution, profile) = self.execute_update(caller, method, argument, Some(span))?;
        Ok((execution, profile.transpose()?.unwrap_or_default()))
    }

    /// Calls a method as [`Canister::query`] does and profiles it.
    ///
    /// # Errors
    ///
    /// The errors of [`Canister::profile_update`].
    pub fn profile_query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        span: Span,
    ) -> Result<(Execution, Profile), ProfileError> {
        let options = Query { span: Some(span), ..Query::default() };
        let (execution, profile) = self.execute_query(caller, method, argument, options)?;
        Ok((execution, profile.transpose()?.unwrap_or_default()))
    }

    fn execute_update(
        &mut self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        span: Option<Span>,
    ) -> Result<Profiled, HostError> {
        let began = now();
        if let Some(reject) = self.admit(caller, method, argument)? {
            return Ok((Execution::refused(reject), None));
        }
        let id = self.id();
        let sees_log = self.settings.controllers.contains(&caller);
        let induction = cycles::induction(self.rules(), method, argument);
        let mut place = Alone {
            canister: self,
            caller,
            argument,
            induction,
            reserved: Cycles(0),
            span,
            profile: None,
        };
        let mut execution = match call(&mut place, Invocation::Replicated, method, argument)? {
            Ok(Called { mut run, .. }) => {
                run.hide_backtrace(sees_log);
                run.into_execution(&id, "did not reply to the call")
            }
            Err(refusal) => Execution::of(Err(refusal.reject)),
        };
        let cost = place.cost(execution.charge);
        let profile = place.profile;
        self.charge(cost);
        execution.cycles += cost;
        execution.wall = began.elapsed();
        Ok((execution, profile))
    }

    fn execute_query(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
        options: Query,
    ) -> Result<Profiled, HostError> {
        let began = now();
        let mut place =
            AloneReading { canister: self, caller, method, argument, options, profile: None };
        let mut run = match call(&mut place, Invocation::Query, method, argument)? {
            Ok(Called { run, .. }) => run,
            Err(refusal) => return Ok((Execution::refused(refusal.reject), None)),
        };
        let profile = place.profile;
        run.hide_backtrace(self.settings.controllers.contains(&caller));
        let mut execution = run.into_execution(&self.id(), "did not produce a response");
        execution.cycles = Cycles(0);
        execution.wall = began.elapsed();
        Ok((execution, profile))
    }

    /// Runs `canister_inspect_message`. Returns a reject if the message is not accepted.
    fn inspect(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Option<Reject>, HostError> {
        let export = exported(EntryPoint::InspectMessage.name());
        let mut place = AloneReading {
            canister: self,
            caller,
            method,
            argument,
            options: Query::default(),
            profile: None,
        };
        let ran = execute(&mut place, Mode::InspectMessage, Entry::Export(&export))?;
        Ok(match ran.result {
            Err(fault) => {
                let sees_log = self.settings.controllers.contains(&caller);
                Some(fault.seen(sees_log).reject(&self.id()))
            }
            Ok(()) if ran.effects.accepted => None,
            Ok(()) => Some(Reject {
                code: ErrorCode::CanisterRejectedMessage,
                message: format!(
                    "Error from Canister {}: Canister rejected the message",
                    self.id()
                ),
            }),
        })
    }

    /// Returns the reject of an ingress message that is not admitted.
    pub(crate) fn admit(
        &self,
        caller: Principal,
        method: &str,
        argument: &[u8],
    ) -> Result<Option<Reject>, HostError> {
        self.check_consistent()?;
        let Some(module) = &self.module else {
            // The replica rejects the message before execution, with another text.
            return Ok(Some(Reject {
                code: ErrorCode::CanisterWasmModuleNotFound,
                message: "Requested canister has no wasm module".to_owned(),
            }));
        };
        if let Some(reject) = reject_large_argument(module.rules(), argument) {
            return Ok(Some(reject));
        }
        if module.has(EntryPoint::InspectMessage)
            && let Some(reject) = self.inspect(caller, method, argument)?
        {
            return Ok(Some(reject));
        }
        let composite = module.method(method) == Some(MethodKind::CompositeQuery);
        Ok(composite.then(composite_query_in_replicated_mode))
    }
}
