//! Messages of users, and their answers.

use ic_principal::Principal;

use super::trace::{Cause, Executed};
use crate::fault::{ErrorCode, HostError, Reject};
use crate::system_api::message::Status;

/// Rounds in which `Subnet::update` waits for an answer.
pub const MAX_ROUNDS: usize = 100;

/// The number of an ingress message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub(super) u64);

/// The answer to an ingress message.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The reply or reject.
    pub response: Result<Vec<u8>, Reject>,
    /// The number of the execution that answered.
    pub cause: Cause,
}

/// A call of a user, with everything that was executed until it was answered.
#[derive(Clone, Debug)]
pub struct Call {
    /// The reply or reject.
    pub response: Result<Vec<u8>, Reject>,
    /// True if the call was admitted. Otherwise it costs nothing and has no effect.
    pub admitted: bool,
    /// The executions, in order.
    pub executions: Vec<Executed>,
}

/// A call has no answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CallError {
    /// The canister, or one that it called, has not answered.
    #[error("no answer within {MAX_ROUNDS} rounds; the call goes on in later rounds")]
    Unanswered,
    /// A failure of this machine.
    #[error(transparent)]
    Host(#[from] HostError),
}

/// The reject of a message to a canister that does not exist.
pub fn not_found(id: &Principal) -> Reject {
    Reject { code: ErrorCode::CanisterNotFound, message: format!("Canister {id} not found") }
}

/// The reject of a message to a canister that does not run.
pub fn not_running(id: &Principal, status: Status) -> Option<Reject> {
    let (code, state) = match status {
        Status::Running => return None,
        Status::Stopping => (ErrorCode::CanisterStopping, "stopping"),
        Status::Stopped => (ErrorCode::CanisterStopped, "stopped"),
    };
    Some(Reject { code, message: format!("Canister {id} is {state}") })
}
