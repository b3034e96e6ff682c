//! The outcome of a message: a reply, or a reject in the terms of the Interface Specification.

use ic_transport_types::RejectResponse;
use stablebench_replica::{ErrorCode, HostError, Reject, RejectCode};

/// A reply or a reject.
pub type Outcome = Result<Vec<u8>, Rejected>;

/// The reject of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rejected {
    /// The reject.
    pub reject: Reject,
    /// `true` if the message was admitted. A message that was not has no request status.
    pub admitted: bool,
}

impl Rejected {
    /// The reject of a message that was admitted.
    pub fn admitted(reject: Reject) -> Self {
        Self { reject, admitted: true }
    }

    /// The reject of a message that was not admitted.
    pub fn not_admitted(reject: Reject) -> Self {
        Self { reject, admitted: false }
    }

    /// The error code as clients see it.
    pub fn error_code(&self) -> String {
        format!("IC{:04}", self.reject.code.number())
    }

    /// The reject code of the Interface Specification.
    pub fn code(&self) -> u8 {
        self.reject.code.reject_code() as u8
    }

    /// Converts the reject for a response that is not certified.
    pub fn response(&self) -> RejectResponse {
        use ic_transport_types::RejectCode as Transport;
        RejectResponse {
            reject_code: match self.reject.code.reject_code() {
                RejectCode::SysFatal => Transport::SysFatal,
                RejectCode::SysTransient | RejectCode::SysUnknown => Transport::SysTransient,
                RejectCode::DestinationInvalid => Transport::DestinationInvalid,
                RejectCode::CanisterReject => Transport::CanisterReject,
                RejectCode::CanisterError => Transport::CanisterError,
            },
            reject_message: self.reject.message.clone(),
            error_code: Some(self.error_code()),
        }
    }
}

/// Names the tool that converts a module for WASI, if that is the reason of a reject.
pub fn with_converter(reject: Reject) -> Reject {
    let Reject { code, mut message } = reject;
    if code == ErrorCode::CanisterInvalidWasm && message.contains("from 'wasi_") {
        message += " The module is for WASI; wasi2ic converts it for the Internet Computer.";
    }
    Reject { code, message }
}

/// The reject of a message that this machine failed to execute.
pub fn failed(error: &HostError) -> Reject {
    Reject { code: ErrorCode::CanisterOutOfMemory, message: error.to_string() }
}

/// The reject of a message whose execution panicked.
pub fn panicked() -> Reject {
    let message = "the replica failed; see its log".to_owned();
    Reject { code: ErrorCode::CanisterWasmEngineError, message }
}
