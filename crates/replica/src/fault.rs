//! Why a message ended without success, and how the replica words it.

use crate::reject::{ErrorCode, Reject};
use crate::units::{Bytes, Instructions};

/// A trap of the canister's code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Trap {
    /// The call stack is used up.
    #[error("stack overflow")]
    StackOverflow,
    /// An address outside the heap.
    #[error("heap out of bounds")]
    HeapOutOfBounds,
    /// An address outside stable memory.
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
    /// An index outside a table.
    #[error("table out of bounds")]
    TableOutOfBounds,
    /// More cycles than 64 bits hold.
    #[error("cycles amount exceeds 64-bit representation")]
    CyclesTooBig,
    /// Any other trap.
    #[error("unknown")]
    Other,
}

/// What ended a message.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The code trapped.
    #[error("Canister trapped: {0}")]
    Trapped(Trap),
    /// The canister called `ic0.trap`.
    #[error("Canister called `ic0.trap` with message: '{0}'")]
    CalledTrap(String),
    /// A call was not allowed, or its arguments were not.
    #[error("Canister violated contract: {0}")]
    Contract(String),
    /// More instructions than the message may use.
    #[error("Canister exceeded the limit of {0} instructions for single message execution.")]
    Instructions(Instructions),
    /// One charge larger than what a slice has left.
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
    /// Too many stable pages.
    #[error("Canister exceeded memory access limits: {0}")]
    StablePages(String),
    /// The heap grew past the canister's limit.
    #[error(
        "Canister exceeded its current Wasm memory limit of {limit} bytes. The peak Wasm memory \
         usage was {peak} bytes. If the canister reaches 4GiB, then it may stop functioning and \
         may become unrecoverable. Please reach out to the canister owner to investigate the \
         reason for the increased memory usage. It might be necessary to move data from the Wasm \
         memory to the stable memory. If such high Wasm memory usage is expected and safe, then \
         the developer can increase the Wasm memory limit in the canister settings."
    )]
    WasmMemoryLimit {
        /// The heap's size after growing.
        peak: Bytes,
        /// The limit.
        limit: Bytes,
    },
    /// An environment variable that there is not.
    #[error("Environment variable {0} not found.")]
    EnvironmentName(String),
    /// The same, by its index.
    #[error(
        "Environment variable index {index} is out of bounds. The number of environment variables \
         is {count}."
    )]
    EnvironmentIndex {
        /// The index that was asked for.
        index: u64,
        /// Variables that there are.
        count: usize,
    },
    /// A blob that is no principal.
    #[error("Canister provided invalid principal id")]
    InvalidPrincipal,
    /// The engine failed on the module.
    #[error("Canister encountered a Wasm engine error: {0}")]
    Engine(String),
    /// No such method.
    #[error("Canister has no {kind} method '{name}'.")]
    MethodNotFound {
        /// `update` or `query`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// The module is not valid; worded by the validation.
    #[error("{message}")]
    Module {
        /// Which kind of refusal.
        code: ErrorCode,
        /// What was refused.
        message: String,
    },
    /// The canister has no module.
    #[error("Attempted to execute a message, but the canister contains no Wasm module.")]
    NoModule,
}

impl Fault {
    /// The replica's code for it.
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

    /// What an error of the engine means.
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

impl From<crate::validate::Refusal> for Fault {
    fn from(refusal: crate::validate::Refusal) -> Self {
        Self::Module { code: refusal.code, message: refusal.message }
    }
}
