//! What became of a message, in the terms of the interface specification.

use ic_error_types::{ErrorCode, RejectCode, UserError};
use ic_transport_types::RejectResponse;
use stablebench_replica::{Execution, HostError};

/// The reply, or why there is none.
pub type Outcome = Result<Vec<u8>, Reject>;

/// Why there is no reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reject {
    /// The error code, from which the reject code follows.
    pub code: ErrorCode,
    /// The message.
    pub message: String,
    /// Whether the message was let in. One that was not has no status.
    pub admitted: bool,
}

impl Reject {
    /// The rejection of a message that was let in.
    pub fn new(code: ErrorCode, message: impl Into<String>) -> Self {
        let error = UserError::new(code, message.into());
        Self { code, message: error.description().to_owned(), admitted: true }
    }

    /// The rejection of a message that was not.
    pub fn outside(code: ErrorCode, message: impl Into<String>) -> Self {
        Self { admitted: false, ..Self::new(code, message) }
    }

    /// As clients get it, outside of a certificate.
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

/// What a message on the embedded replica came to.
pub fn outcome(executed: Result<Execution, HostError>) -> Outcome {
    match executed {
        Ok(execution) => execution.outcome.map_err(|reject| Reject {
            admitted: execution.admitted,
            ..Reject::new(error_code(reject.code), reject.message)
        }),
        Err(error) => Err(Reject::new(ErrorCode::CanisterOutOfMemory, error.to_string())),
    }
}

/// The number of an error code.
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
        Embedded::CanisterRejectedMessage | Embedded::CanisterRejectedIngress => {
            ErrorCode::CanisterRejectedMessage
        }
        Embedded::CompositeQueryCalledInReplicatedMode => {
            ErrorCode::CompositeQueryCalledInReplicatedMode
        }
        Embedded::InvalidManagementPayload => ErrorCode::InvalidManagementPayload,
    }
}
