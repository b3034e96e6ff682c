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
//! Source: `rs/execution_environment/src/{execution_environment,execution/call_or_task}.rs` and
//! `rs/execution_environment/src/query_handler/query_context.rs` of the replica.

use crate::canister::Canister;
use crate::fault::{ErrorCode, Fault, HostError, Reject};
use crate::instance::Entry;
use crate::rules::Rules;
use crate::run::Run;
use crate::system_api::message::{Mode, Status};
use crate::units::Bytes;
use crate::validate::MethodKind;

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
pub(crate) fn composite_query_in_replicated_mode() -> Reject {
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
