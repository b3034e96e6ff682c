//! Why a message or an install was refused, in the words of the replica.

use std::fmt;

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The error codes of the replica (those that a single canister can meet).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum ErrorCode { $($(#[$doc])* $name),* }

        impl ErrorCode {
            /// The name as the replica and PocketIC print it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

error_codes! {
    /// No such canister.
    CanisterNotFound,
    /// The canister has no module, or the module is empty.
    CanisterWasmModuleNotFound,
    /// The module broke a rule for canister modules.
    CanisterInvalidWasm,
    /// The WebAssembly engine refused the module.
    CanisterWasmEngineError,
    /// No update or query of that name.
    CanisterMethodNotFound,
    /// The canister's code trapped.
    CanisterTrapped,
    /// The canister called `ic0.trap`.
    CanisterCalledTrap,
    /// A System API call was not allowed where it was made.
    CanisterContractViolation,
    /// The message used more instructions than it may.
    CanisterInstructionLimitExceeded,
    /// Stable memory accessed or written past the limit of one message.
    CanisterMemoryAccessLimitExceeded,
    /// The heap grew past the canister's limit.
    CanisterWasmMemoryLimitExceeded,
    /// The heap or stable memory would not fit.
    CanisterOutOfMemory,
    /// The message ended without a reply or a reject.
    CanisterDidNotReply,
    /// The canister called `ic0.msg_reject`.
    CanisterRejectedMessage,
    /// The canister refused an ingress message.
    CanisterRejectedIngress,
    /// A composite query was called as an update.
    CompositeQueryCalledInReplicatedMode,
    /// The argument is larger than a message may be.
    InvalidManagementPayload,
}

impl fmt::Display for ErrorCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A refusal: its code and its message, worded as the replica words it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Reject {
    /// What kind of refusal.
    pub code: ErrorCode,
    /// The message, with the canister's id where the replica names it.
    pub message: String,
}
