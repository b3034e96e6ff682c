//! Errors of messages and modules, in the words of the replica.
//!
//! A [`Fault`] ends a message. The caller receives it as a [`Reject`] with an [`ErrorCode`]. A
//! [`HostError`] is a failure of this machine, which the real replica would not report.

use std::fmt;
use std::io;

use ic_principal::Principal;

use crate::memory::NoMappings;
use crate::rules::Rules;
use crate::units::{Bytes, Cycles, Instructions};

macro_rules! error_codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal),* $(,)?) => {
        /// The error codes of the replica that canisters can cause, with their numbers.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[non_exhaustive]
        pub enum ErrorCode { $($(#[$doc])* $name = $number),* }

        impl ErrorCode {
            /// The name as the replica and PocketIC print it.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => stringify!($name)),* }
            }
        }
    };
}

error_codes! {
    /// The subnet has no memory, compute or canister ids left.
    SubnetOversubscribed = 101,
    /// A queue of messages is full.
    CanisterQueueFull = 201,
    /// Messages wait for the canister or from it.
    CanisterQueueNotEmpty = 203,
    /// The canister did not stop in time.
    StopCanisterRequestTimeout = 206,
    /// The canister has too few cycles.
    CanisterOutOfCycles = 207,
    /// The canister does not exist.
    CanisterNotFound = 301,
    /// The snapshot does not exist.
    CanisterSnapshotNotFound = 305,
    /// The memory allocation is smaller than the canister.
    InsufficientMemoryAllocation = 402,
    /// The cycles do not pay for a new canister.
    InsufficientCyclesForCreateCanister = 403,
    /// The id is not one of the subnet.
    CanisterNotHostedBySubnet = 405,
    /// The canister called `ic0.msg_reject`.
    CanisterRejectedMessage = 406,
    /// The argument is larger than a message may be, or invalid.
    InvalidManagementPayload = 408,
    /// The snapshot was taken, not uploaded.
    CanisterSnapshotImmutable = 409,
    /// The canister's code trapped.
    CanisterTrapped = 502,
    /// The canister called `ic0.trap`.
    CanisterCalledTrap = 503,
    /// A System API call was not allowed in this context.
    CanisterContractViolation = 504,
    /// The module broke a rule for canister modules.
    CanisterInvalidWasm = 505,
    /// The message ended without a reply or a reject.
    CanisterDidNotReply = 506,
    /// The heap or stable memory does not fit.
    CanisterOutOfMemory = 507,
    /// The canister is stopped.
    CanisterStopped = 508,
    /// The canister is being stopped.
    CanisterStopping = 509,
    /// The canister is not stopped.
    CanisterNotStopped = 510,
    /// The canister was started before it had stopped.
    CanisterStoppingCancelled = 511,
    /// The caller does not control the canister.
    CanisterInvalidController = 512,
    /// A callback is not in the canister's table.
    CanisterFunctionNotFound = 513,
    /// The canister has a module already.
    CanisterNonEmpty = 514,
    /// The WebAssembly engine refused the module.
    CanisterWasmEngineError = 521,
    /// The message exceeded its instruction limit.
    CanisterInstructionLimitExceeded = 522,
    /// The message accessed or wrote more stable memory than it may.
    CanisterMemoryAccessLimitExceeded = 524,
    /// Composite queries called each other too deeply.
    QueryCallGraphTooDeep = 525,
    /// A composite query and those that it called used too many instructions.
    QueryCallGraphTotalInstructionLimitExceeded = 526,
    /// A composite query was called as an update.
    CompositeQueryCalledInReplicatedMode = 527,
    /// The canister has too few cycles for its compute allocation.
    InsufficientCyclesInComputeAllocation = 530,
    /// The canister has too few cycles for its memory allocation.
    InsufficientCyclesInMemoryAllocation = 531,
    /// The canister has too few cycles for more memory.
    InsufficientCyclesInMemoryGrow = 532,
    /// The canister does not want to reserve the cycles for its memory allocation.
    ReservedCyclesLimitExceededInMemoryAllocation = 533,
    /// The canister does not want to reserve the cycles for more memory.
    ReservedCyclesLimitExceededInMemoryGrow = 534,
    /// The canister has no update or query of that name.
    CanisterMethodNotFound = 536,
    /// The canister has no module, or the module is empty.
    CanisterWasmModuleNotFound = 537,
    /// The id is that of another canister.
    CanisterAlreadyInstalled = 538,
    /// The heap grew beyond the canister's limit.
    CanisterWasmMemoryLimitExceeded = 539,
    /// The canister has reserved more cycles already.
    ReservedCyclesLimitIsTooLow = 540,
}

impl ErrorCode {
    /// The number.
    pub const fn number(self) -> u16 {
        self as u16
    }

    /// The reject code, which is the first digit of the number.
    pub const fn reject_code(self) -> RejectCode {
        RejectCode::of(self.number() / 100)
    }
}

/// Reject codes of the Interface Specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RejectCode {
    /// Fatal system error; retrying is unlikely to be useful.
    SysFatal = 1,
    /// Transient system error; retrying may help.
    SysTransient = 2,
    /// Invalid destination, such as a canister that does not exist.
    DestinationInvalid = 3,
    /// The canister rejected the message.
    CanisterReject = 4,
    /// The canister failed.
    CanisterError = 5,
    /// The response of a best-effort call is unknown.
    SysUnknown = 6,
}

impl RejectCode {
    /// The reject code with a number, or [`RejectCode::SysUnknown`].
    pub const fn of(number: u16) -> Self {
        match number {
            1 => Self::SysFatal,
            2 => Self::SysTransient,
            3 => Self::DestinationInvalid,
            4 => Self::CanisterReject,
            5 => Self::CanisterError,
            _ => Self::SysUnknown,
        }
    }
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

const GRACEFULLY: &str = "Consider gracefully handling failures from this canister or altering \
                          the canister to handle exceptions.";

/// Longest message of a reject, in bytes.
pub const MAX_MESSAGE: usize = 8 << 10;

/// Cuts the middle of a text that is longer than `most` bytes, and keeps `percent` of them at its
/// start.
pub fn shortened(text: String, most: usize, percent: usize) -> String {
    const DOTS: &str = "...";
    if text.len() <= most {
        return text;
    }
    let kept = most.saturating_sub(DOTS.len());
    let start = text.floor_char_boundary((most * percent / 100).min(kept));
    let end = text.ceil_char_boundary(text.len() - (kept - start));
    format!("{}{DOTS}{}", &text[..start], &text[end..])
}

/// The words around the cycles that a canister needs.
const TOP_UP: (&str, &str) = (": please top up the canister with at least ", " additional cycles");

/// The part of a message about missing cycles, if their number may be known.
fn if_known(cycles: &Option<Cycles>, before: &str, after: &str) -> String {
    cycles.map_or_else(String::new, |cycles| format!("{before}{}{after}", grouped(cycles)))
}

/// Cycles in groups of three digits.
pub fn grouped(cycles: Cycles) -> String {
    let digits = cycles.get().to_string();
    let (first, rest) = digits.split_at(digits.len() % 3);
    let rest = rest.as_bytes().chunks(3).map(String::from_utf8_lossy);
    let groups: Vec<_> = std::iter::once(first.into()).chain(rest).collect();
    groups.join("_").trim_start_matches('_').to_owned()
}

/// A suggestion of the replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Help {
    /// The suggestion.
    pub suggestion: &'static str,
    /// The section of the documentation of errors, if it has one.
    pub section: &'static str,
}

impl Help {
    /// The second line of a reject.
    pub fn line(&self, rules: Rules) -> String {
        let Self { suggestion, section } = self;
        match *section {
            "" => (*suggestion).to_owned(),
            _ => {
                let page = rules.set().error_documentation;
                format!("{suggestion} See documentation: {page}#{section}")
            }
        }
    }
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
    /// A trap, and the functions that were active.
    #[error("{fault}\n{backtrace}")]
    Traced {
        /// The trap.
        fault: Box<Fault>,
        /// The functions, in the words of the replica.
        backtrace: String,
    },
    /// A System API call that was not allowed, or its arguments were not.
    #[error("Canister violated contract: {0}")]
    Contract(String),
    /// As [`Fault::Contract`], where the replica suggests what to do.
    #[error("Canister violated contract: {0}")]
    Misuse(String, Help),
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
    /// The canister has too few cycles.
    #[error("Canister {canister} is out of cycles{}", if_known(.missing, TOP_UP.0, TOP_UP.1))]
    OutOfCycles {
        /// The canister.
        canister: Principal,
        /// Cycles that are missing, if the caller may know.
        missing: Option<Cycles>,
    },
    /// The canister has too few cycles for what the message did.
    #[error("Canister {canister} is out of cycles{}", if_known(.missing, TOP_UP.0, TOP_UP.1))]
    Frozen {
        /// The canister.
        canister: Principal,
        /// Cycles that are missing, if the caller may know.
        missing: Option<Cycles>,
    },
    /// The canister has too few cycles for more memory.
    #[error(
        "Canister cannot grow memory by {bytes} bytes due to insufficient cycles.{}",
        if_known(.missing, " At least ", " additional cycles are required.")
    )]
    MemoryGrow {
        /// The additional memory.
        bytes: Bytes,
        /// Cycles that are missing, if the caller may know.
        missing: Option<Cycles>,
    },
    /// The canister does not want to reserve the cycles for more memory.
    #[error(
        "Canister cannot grow memory by {bytes} bytes due to its reserved cycles limit. The \
         current limit ({}) would be exceeded by {}.", grouped(*.limit), grouped(*.excess)
    )]
    ReservedCycles {
        /// The additional memory.
        bytes: Bytes,
        /// The most that it wants to reserve.
        limit: Cycles,
        /// Cycles beyond it.
        excess: Cycles,
    },
    /// A callback is not in the canister's table.
    #[error("Canister requested to invoke a non-existent Wasm function {0} from table 0")]
    FunctionNotFound(u32),
    /// A callback failed, and so did the cleanup.
    #[error("{callback}\n\ncall_on_cleanup also failed:\n\n{cleanup}")]
    Cleanup {
        /// The error of the callback.
        callback: Box<Fault>,
        /// The error of the cleanup.
        cleanup: Box<Fault>,
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
            Self::Traced { fault, .. } => fault.code(),
            Self::Contract(_)
            | Self::Misuse(..)
            | Self::InvalidPrincipal
            | Self::OutOfCycles { .. }
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
            Self::Frozen { .. } => ErrorCode::CanisterOutOfCycles,
            Self::MemoryGrow { .. } => ErrorCode::InsufficientCyclesInMemoryGrow,
            Self::ReservedCycles { .. } => ErrorCode::ReservedCyclesLimitExceededInMemoryGrow,
            Self::FunctionNotFound(_) => ErrorCode::CanisterFunctionNotFound,
            Self::Cleanup { callback, .. } => callback.code(),
            Self::NoModule => ErrorCode::CanisterWasmModuleNotFound,
        }
    }

    /// What the replica suggests, in its words, as the second line of the message.
    fn help(&self) -> Option<Help> {
        const TOOLCHAIN: Help = Help {
            suggestion: "If you are running this canister in a test environment (e.g., dfx), make \
                         sure the test environment is up to date. Otherwise, this is likely an \
                         error with the compiler/CDK toolchain being used to build the canister. \
                         Please report the error to IC devs on the forum: \
                         https://forum.dfinity.org and include which language/CDK was used to \
                         create the canister.",
            section: "",
        };
        let (suggestion, section) = match self {
            Self::Contract(_)
            | Self::InvalidPrincipal
            | Self::FunctionNotFound(_)
            | Self::Module { .. } => return Some(TOOLCHAIN),
            Self::Misuse(_, help) => return Some(*help).filter(|help| !help.suggestion.is_empty()),
            Self::Traced { fault, .. } => return fault.help(),
            Self::OutOfCycles { .. }
            | Self::Frozen { .. }
            | Self::Cleanup { .. }
            | Self::Engine(_)
            | Self::EnvironmentName(_)
            | Self::EnvironmentIndex { .. } => return None,
            Self::MethodNotFound { .. } => (
                "Check that the method being called is exported by the target canister.",
                "method-not-found",
            ),
            Self::Instructions(_) => (
                "Try optimizing this method to consume fewer instructions or split the work \
                 across multiple messages.",
                "instruction-limit-exceeded",
            ),
            Self::Trapped(_) => (GRACEFULLY, "trapped"),
            Self::CalledTrap(_) => (GRACEFULLY, "trapped-explicitly"),
            Self::NoModule => {
                ("Please install code to this canister before calling it.", "wasm-module-not-found")
            }
            Self::MemoryGrow { .. } => {
                ("Try topping up the canister.", "insufficient-cycles-in-memory-grow")
            }
            Self::ReservedCycles { .. } => (
                "Try increasing the canister's reserved cycles limit.",
                "reserved-cycles-limit-exceeded-in-memory-grow",
            ),
            Self::Slice { .. } => (
                "Try breaking up large copies within the canister code into smaller chunks.",
                "slice-overrun",
            ),
            Self::StablePages(_) => (
                "Try optimizing the use of stable memory so that individual messages don't need \
                 to access as much stable memory.",
                "memory-access-limit-exceeded",
            ),
            Self::WasmMemoryLimit { .. } => (
                "Try checking the canister for a possible memory leak or modifying it to use more \
                 stable memory instead of Wasm memory.",
                "wasm-memory-limit-exceeded",
            ),
        };
        Some(Help { suggestion, section })
    }

    /// The trap of the canister's code, if it is one.
    pub fn trap(&self) -> Option<Trap> {
        match self {
            Self::Trapped(trap) => Some(*trap),
            Self::Traced { fault, .. } => fault.trap(),
            _ => None,
        }
    }

    /// Adds a backtrace to a trap.
    pub fn traced(self, backtrace: impl FnOnce() -> Option<String>) -> Self {
        if !matches!(self, Self::Trapped(_) | Self::CalledTrap(_)) {
            return self;
        }
        match backtrace() {
            Some(backtrace) => Self::Traced { fault: Box::new(self), backtrace },
            None => self,
        }
    }

    /// The fault as a caller sees it. Only callers who see the log of the canister, which contains
    /// backtraces, see them.
    pub fn seen(self, sees_log: bool) -> Self {
        match self {
            Self::Traced { fault, .. } if !sees_log => *fault,
            Self::Cleanup { callback, cleanup } => Self::Cleanup {
                callback: Box::new(callback.seen(sees_log)),
                cleanup: Box::new(cleanup.seen(sees_log)),
            },
            fault => fault,
        }
    }

    /// The reject in full, with the suggestion: what another canister sees.
    pub fn reject_in_full(&self, canister: &Principal, rules: Rules) -> Reject {
        let Reject { code, message } = self.reject(canister);
        let message = match self.help() {
            Some(help) => format!("{message}.\n{}", help.line(rules)),
            None => message,
        };
        Reject { code, message: shortened(message, MAX_MESSAGE, 50) }
    }

    /// The reject that a caller of `canister` sees.
    pub fn reject(&self, canister: &Principal) -> Reject {
        let message = match self {
            Self::Frozen { .. } => self.to_string(),
            _ => format!("Error from Canister {canister}: {self}"),
        };
        Reject { code: self.code(), message }
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
            // The context of the error is a backtrace of the engine.
            None => Self::Engine(error.root_cause().to_string()),
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
#[non_exhaustive]
pub enum HostError {
    /// The host has no memory, disk space or file descriptors left.
    #[error("the embedded replica has no memory left for the canister")]
    Exhausted(#[source] io::Error),
    /// The host allows no more mappings of memory.
    #[error(transparent)]
    Mappings(#[from] NoMappings),
    /// The host ran out of memory while it committed a message. The canister's state is partly that
    /// before the message and partly that after it.
    #[error(
        "the embedded replica ran out of memory while it committed a message, so the state of the \
         canister is inconsistent; install it again, restore a snapshot, or load a saved state"
    )]
    Torn,
    /// A copy does not fit into the memory of this machine.
    #[error("{0} bytes do not fit into the memory of this machine; read them in parts")]
    TooLarge(Bytes),
    /// The profile of a message does not add up. This must not happen.
    #[error("{0}")]
    Profile(String),
}

impl From<io::Error> for HostError {
    fn from(error: io::Error) -> Self {
        let mappings = error.get_ref().and_then(|inner| inner.downcast_ref::<NoMappings>());
        mappings.copied().map_or_else(|| Self::Exhausted(error), Self::Mappings)
    }
}
