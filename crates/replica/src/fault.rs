//! Errors of messages and modules, in the words of the replica.
//!
//! A [`Fault`] ends a message. The caller receives it as a [`Reject`] with an [`ErrorCode`]. A
//! [`HostError`] is a failure of this machine, which the real replica would not report.

use std::fmt;
use std::io;

use crate::units::{Bytes, Instructions};

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident),* $(,)?) => {
        /// The error codes of the replica that a single canister can cause.
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
    /// The canister does not exist.
    CanisterNotFound,
    /// The canister has no module, or the module is empty.
    CanisterWasmModuleNotFound,
    /// The module broke a rule for canister modules.
    CanisterInvalidWasm,
    /// The WebAssembly engine refused the module.
    CanisterWasmEngineError,
    /// The canister has no update or query of that name.
    CanisterMethodNotFound,
    /// The canister's code trapped.
    CanisterTrapped,
    /// The canister called `ic0.trap`.
    CanisterCalledTrap,
    /// A System API call was not allowed in this context.
    CanisterContractViolation,
    /// The message exceeded its instruction limit.
    CanisterInstructionLimitExceeded,
    /// The message accessed or wrote more stable memory than it may.
    CanisterMemoryAccessLimitExceeded,
    /// The heap grew beyond the canister's limit.
    CanisterWasmMemoryLimitExceeded,
    /// The heap or stable memory does not fit.
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

/// A rejected message or install, in the words of the replica.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{code}: {message}")]
pub struct Reject {
    /// Error code.
    pub code: ErrorCode,
    /// Error message, with the canister's id where the replica names it.
    pub message: String,
}

/// A trap of the canister's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trap {
    /// The call stack overflowed.
    #[error("stack overflow")]
    StackOverflow,
    /// An address outside of the heap.
    #[error("heap out of bounds")]
    HeapOutOfBounds,
    /// An address outside of stable memory.
    #[error("stable memory out of bounds")]
    StableOutOfBounds,
    /// A 32-bit call on a large stable memory.
    #[error("32 bit stable memory api used on a memory larger than 4GB")]
    StableTooBig,
    /// Division or remainder by zero.
    #[error("integer division by 0")]
    DivisionByZero,
    /// The operator `unreachable`.
    #[error("unreachable")]
    Unreachable,
    /// An index outside of a table.
    #[error("table out of bounds")]
    TableOutOfBounds,
    /// An amount of cycles that does not fit into 64 bits.
    #[error("cycles amount exceeds 64-bit representation")]
    CyclesTooBig,
    /// Any other trap.
    #[error("unknown")]
    Other,
}

/// The error that ended a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The code trapped.
    #[error("Canister trapped: {0}")]
    Trapped(Trap),
    /// The canister called `ic0.trap`.
    #[error("Canister called `ic0.trap` with message: '{0}'")]
    CalledTrap(String),
    /// A System API call that was not allowed, or its arguments were not.
    #[error("Canister violated contract: {0}")]
    Contract(String),
    /// The message used more instructions than it may.
    #[error("Canister exceeded the limit of {0} instructions for single message execution.")]
    Instructions(Instructions),
    /// One charge exceeded what was left of the slice.
    #[error(
        "Canister attempted to perform a large memory operation that used {used} instructions \
         and exceeded the slice limit {limit}."
    )]
    Slice {
        /// Instructions since the slice began.
        used: Instructions,
        /// Instructions of a slice.
        limit: Instructions,
    },
    /// The message touched too many stable pages.
    #[error("Canister exceeded memory access limits: {0}")]
    StablePages(String),
    /// The heap grew beyond the canister's limit.
    #[error(
        "Canister exceeded its current Wasm memory limit of {limit} bytes. The peak Wasm memory \
         usage was {peak} bytes. If the canister reaches 4GiB, then it may stop functioning and \
         may become unrecoverable. Please reach out to the canister owner to investigate the \
         reason for the increased memory usage. It might be necessary to move data from the Wasm \
         memory to the stable memory. If such high Wasm memory usage is expected and safe, then \
         the developer can increase the Wasm memory limit in the canister settings."
    )]
    WasmMemoryLimit {
        /// Size of the heap after growing.
        peak: Bytes,
        /// The limit.
        limit: Bytes,
    },
    /// No environment variable has this name.
    #[error("Environment variable {0} not found.")]
    EnvironmentName(String),
    /// No environment variable has this index.
    #[error(
        "Environment variable index {index} is out of bounds. The number of environment variables \
         is {count}."
    )]
    EnvironmentIndex {
        /// The requested index.
        index: u64,
        /// Number of variables.
        count: usize,
    },
    /// A blob that is not a principal.
    #[error("Canister provided invalid principal id")]
    InvalidPrincipal,
    /// The engine returned an error.
    #[error("Canister encountered a Wasm engine error: {0}")]
    Engine(String),
    /// The canister has no such method.
    #[error("Canister has no {kind} method '{name}'.")]
    MethodNotFound {
        /// `update` or `query`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The module is not valid; the text is from validation.
    #[error("{message}")]
    Module {
        /// Error code.
        code: ErrorCode,
        /// Error message.
        message: String,
    },
    /// The canister has no module.
    #[error("Attempted to execute a message, but the canister contains no Wasm module.")]
    NoModule,
}

impl Fault {
    /// The replica's error code.
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::Trapped(_) => ErrorCode::CanisterTrapped,
            Self::CalledTrap(_) => ErrorCode::CanisterCalledTrap,
            Self::Contract(_)
            | Self::InvalidPrincipal
            | Self::EnvironmentName(_)
            | Self::EnvironmentIndex { .. } => ErrorCode::CanisterContractViolation,
            Self::Instructions(_) | Self::Slice { .. } => {
                ErrorCode::CanisterInstructionLimitExceeded
            }
            Self::StablePages(_) => ErrorCode::CanisterMemoryAccessLimitExceeded,
            Self::WasmMemoryLimit { .. } => ErrorCode::CanisterWasmMemoryLimitExceeded,
            Self::Engine(_) => ErrorCode::CanisterWasmEngineError,
            Self::MethodNotFound { .. } => ErrorCode::CanisterMethodNotFound,
            Self::Module { code, .. } => *code,
            Self::NoModule => ErrorCode::CanisterWasmModuleNotFound,
        }
    }

    /// The reject that a caller of `canister` sees.
    pub fn reject(&self, canister: &ic_principal::Principal) -> Reject {
        Reject { code: self.code(), message: format!("Error from Canister {canister}: {self}") }
    }

    /// Converts an error of the engine.
    pub fn from_engine(error: wasmtime::Error) -> Self {
        let error = match error.downcast::<Self>() {
            Ok(fault) => return fault,
            Err(error) => error,
        };
        match error.downcast_ref::<wasmtime::Trap>() {
            Some(wasmtime::Trap::BadSignature) => {
                Self::Contract("function invocation does not match its signature".to_owned())
            }
            Some(trap) => Self::Trapped(match trap {
                wasmtime::Trap::StackOverflow => Trap::StackOverflow,
                wasmtime::Trap::MemoryOutOfBounds => Trap::HeapOutOfBounds,
                wasmtime::Trap::TableOutOfBounds => Trap::TableOutOfBounds,
                wasmtime::Trap::IntegerDivisionByZero => Trap::DivisionByZero,
                wasmtime::Trap::UnreachableCodeReached => Trap::Unreachable,
                _ => Trap::Other,
            }),
            None => Self::Engine(format!("{error:#}")),
        }
    }
}

impl From<Trap> for Fault {
    fn from(trap: Trap) -> Self {
        Self::Trapped(trap)
    }
}

/// A failure of this machine, not of the canister.
#[derive(Debug, thiserror::Error)]
pub enum HostError {
    /// The host has no memory, disk space or file descriptors left.
    #[error("the embedded replica has no memory left for the canister")]
    Exhausted(#[from] io::Error),
    /// The host ran out of memory while it committed a message. The canister's state is partly that
    /// before the message and partly that after it.
    #[error(
        "the embedded replica ran out of memory while it committed a message, so the state of the \
         canister is inconsistent; install it again, restore a snapshot, or load a saved state"
    )]
    Torn,
}
