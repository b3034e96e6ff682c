//! The outcome of a message: a reply, or a reject in the terms of the Interface Specification.

use candid::{CandidType, Encode, Principal};
use ic_error_types::{ErrorCode, RejectCode, UserError};
use ic_transport_types::RejectResponse;
use stablebench_replica::{Execution, HostError};

/// A reply or a reject.
pub type Outcome = Result<Vec<u8>, Reject>;

/// The reject of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The error code, which determines the reject code.
    pub code: ErrorCode,
    /// The message.
    pub message: String,
    /// `true` if the message was admitted. A message that was not has no request status.
    pub admitted: bool,
}

impl Reject {
    /// Creates the reject of a message that was admitted.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let error = UserError::new(code, message.into());
        Self { code, message: error.description().to_owned(), admitted: true }
    }

    /// Creates the reject of a message that was not admitted.
    pub fn not_admitted(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { admitted: false, ..Self::new(code, message) }
    }

    /// Creates the reject of an argument that is invalid.
    pub fn invalid(message: impl Into<String>) -> Self {
        Self::new(ErrorCode::InvalidManagementPayload, message)
    }

    /// Creates the reject of a message to a canister that does not exist.
    pub fn not_found(canister: &Principal) -> Self {
        let message = format!("Canister {canister} not found");
        Self::not_admitted(ErrorCode::CanisterNotFound, message)
    }

    /// Creates the reject of a message to a stopped canister.
    pub fn stopped(canister: &Principal) -> Self {
        let message = format!("Canister {canister} is stopped");
        Self::not_admitted(ErrorCode::CanisterStopped, message)
    }

    /// Converts the reject for a response that is not certified.
    pub fn response(&self) -> RejectResponse {
        use ic_transport_types::RejectCode as Transport;
        RejectResponse {
            reject_code: match RejectCode::from(self.code) {
                RejectCode::SysFatal => Transport::SysFatal,
                RejectCode::SysTransient | RejectCode::SysUnknown => Transport::SysTransient,
                RejectCode::DestinationInvalid => Transport::DestinationInvalid,
                RejectCode::CanisterReject => Transport::CanisterReject,
                RejectCode::CanisterError => Transport::CanisterError,
            },
            reject_message: self.message.clone(),
            error_code: Some(self.code.to_string()),
        }
    }
}

/// Converts the result of a message on the embedded replica.
pub fn outcome(executed: Result<Execution, HostError>) -> Outcome {
    match executed {
        Ok(execution) => execution.outcome.map_err(|reject| Reject {
            admitted: execution.admitted,
            ..Reject::new(error_code(reject.code), reject.message)
        }),
        Err(error) => Err(Reject::new(ErrorCode::CanisterOutOfMemory, error.to_string())),
    }
}

/// Encodes the reply of a management method.
pub fn reply(value: &impl CandidType) -> Outcome {
    Encode!(value).map_err(|error| Reject::invalid(format!("cannot encode the reply: {error}")))
}

/// Encodes the empty reply of a management method.
pub fn empty_reply() -> Outcome {
    Encode!().map_err(|error| Reject::invalid(format!("cannot encode the reply: {error}")))
}

/// Converts an error code of the embedded replica.
pub fn error_code(code: stablebench_replica::ErrorCode) -> ErrorCode {
    use stablebench_replica::ErrorCode as Embedded;
    match code {
        Embedded::CanisterNotFound => ErrorCode::CanisterNotFound,
        Embedded::CanisterWasmModuleNotFound => ErrorCode::CanisterWasmModuleNotFound,
        Embedded::CanisterInvalidWasm => ErrorCode::CanisterInvalidWasm,
        Embedded::CanisterWasmEngineError => ErrorCode::CanisterWasmEngineError,
        Embedded::CanisterMethodNotFound => ErrorCode::CanisterMethodNotFound,
        Embedded::CanisterTrapped => ErrorCode::CanisterTrapped,
        Embedded::CanisterCalledTrap => ErrorCode::CanisterCalledTrap,
        Embedded::CanisterContractViolation => ErrorCode::CanisterContractViolation,
        Embedded::CanisterInstructionLimitExceeded => ErrorCode::CanisterInstructionLimitExceeded,
        Embedded::CanisterMemoryAccessLimitExceeded => ErrorCode::CanisterMemoryAccessLimitExceeded,
        Embedded::CanisterWasmMemoryLimitExceeded => ErrorCode::CanisterWasmMemoryLimitExceeded,
        Embedded::CanisterOutOfMemory => ErrorCode::CanisterOutOfMemory,
        Embedded::CanisterDidNotReply => ErrorCode::CanisterDidNotReply,
        Embedded::CanisterRejectedMessage => ErrorCode::CanisterRejectedMessage,
        Embedded::CanisterQueueFull => ErrorCode::CanisterQueueFull,
        Embedded::CanisterOutOfCycles => ErrorCode::CanisterOutOfCycles,
        Embedded::CanisterStopped => ErrorCode::CanisterStopped,
        Embedded::CanisterStopping => ErrorCode::CanisterStopping,
        Embedded::CanisterFunctionNotFound => ErrorCode::CanisterFunctionNotFound,
        Embedded::QueryCallGraphTooDeep => ErrorCode::QueryCallGraphTooDeep,
        Embedded::QueryCallGraphTotalInstructionLimitExceeded => {
            ErrorCode::QueryCallGraphTotalInstructionLimitExceeded
        }
        Embedded::InsufficientCyclesInMemoryGrow => ErrorCode::InsufficientCyclesInMemoryGrow,
        Embedded::CompositeQueryCalledInReplicatedMode => {
            ErrorCode::CompositeQueryCalledInReplicatedMode
        }
        Embedded::InvalidManagementPayload => ErrorCode::InvalidManagementPayload,
    }
}
