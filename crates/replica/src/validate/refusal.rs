//! Error messages: one table for each of the three layers that refuse modules.

use crate::fault::{ErrorCode, Fault};

/// A module was refused.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Refusal {
    /// Error code.
    pub code: ErrorCode,
    /// The first line of the replica's message after `Error from Canister ID: `.
    pub message: String,
}

/// A rule of the Internet Computer that the module breaks.
#[derive(Debug, thiserror::Error)]
pub(super) enum Invalid {
    #[error("Failed to decode wasm module: {0}")]
    Decoding(String),
    #[error("Wasm module size of {size} exceeds the maximum allowed size of {allowed}.")]
    ModuleTooLarge { size: u64, allowed: u64 },
    #[error(
        "Wasm module code section size of {size} exceeds the maximum allowed size of {allowed}."
    )]
    CodeTooLarge { size: u32, allowed: u64 },
    #[error("Wasmtime failed to validate wasm module wasmtime::Module::validate() failed with {0}")]
    Wasm(String),
    #[error("Wasm module has an invalid import section. {0}")]
    Import(String),
    #[error("Wasm module has an invalid function signature. {0}")]
    Signature(String),
    #[error("Wasm module has an invalid export section. {0}")]
    Export(String),
    #[error(
        "Duplicate function '{0}' exported multiple times with different call types: \
         update, query, or composite_query."
    )]
    DuplicateMethod(String),
    #[error(
        "The number of exported functions called `canister_update <name>`, \
         `canister_query <name>`, or `canister_composite_query <name>` is {defined} \
         which exceeds {allowed}."
    )]
    TooManyMethods { defined: usize, allowed: usize },
    #[error(
        "The sum of `<name>` lengths in exported functions called \
         `canister_update <name>`, `canister_query <name>`, or \
         `canister_composite_query <name>` is {total} which exceeds the allowed limit of \
         {allowed}."
    )]
    MethodNamesTooLong { total: usize, allowed: usize },
    #[error("Wasm module has an invalid table section. {0}")]
    Table(String),
    #[error(
        "Wasm module contains a function at index {index} with name '{start}...' of size {size} \
         bytes that exceeds the maximum allowed size of {allowed} bytes."
    )]
    FunctionNameTooLong { index: u32, start: String, size: usize, allowed: u64 },
    #[error("Wasm module has an invalid data section. {0}")]
    Data(String),
    #[error("Wasm module has an invalid global section. {0}")]
    Global(String),
    #[error(
        "Wasm module defined {defined} globals which exceeds the maximum number allowed {allowed}."
    )]
    TooManyGlobals { defined: usize, allowed: usize },
    #[error(
        "Wasm module defined {defined} functions which exceeds the maximum number allowed \
         {allowed}."
    )]
    TooManyFunctions { defined: usize, allowed: usize },
    #[error(
        "Wasm module declares an initial Wasm64 heap memory size of {declared} pages which \
         exceeds the maximum allowed size of {allowed} pages."
    )]
    InitialHeapTooLarge { declared: u64, allowed: u64 },
    #[error(
        "Wasm module contains a function at index {index} with unsupported instruction \
         {instruction}."
    )]
    Operator { index: usize, instruction: &'static str },
    #[error(
        "Wasm module contains a function at index {index} with complexity {complexity} which \
         exceeds the maximum complexity allowed {allowed}."
    )]
    TooComplex { index: usize, complexity: u64, allowed: u64 },
    #[error("Wasm module has an invalid custom section. {0}")]
    Custom(String),
    #[error(
        "Wasm module defined {defined} custom sections which exceeds the maximum number \
         allowed {allowed}."
    )]
    TooManyCustom { defined: usize, allowed: usize },
    /// Not an error of the real replica.
    #[error(
        "Module uses '{0}', which the embedded replica does not support: it runs one \
         canister, without calls to others, timers or heartbeats."
    )]
    NotEmbedded(&'static str),
    /// Not an error of the real replica.
    #[error(
        "Function {index} has {locals} locals in {blocks} blocks. The embedded replica compiles \
         functions in which the product of both is at most {allowed}; reduce the locals, or \
         split the function."
    )]
    TooManyLocals { index: usize, locals: u64, blocks: u64, allowed: u64 },
    /// Not an error of the real replica.
    #[error(
        "The functions have too many locals: the sum of locals times blocks over all functions is \
         {cost}. The embedded replica compiles modules of at most {allowed}; reduce the locals of \
         the functions."
    )]
    TooManyLocalsTogether { cost: u64, allowed: u64 },
}

/// An error while the replica instruments a module.
#[derive(Debug, thiserror::Error)]
pub(super) enum Instrumentation {
    #[error("Wasm module has invalid data segment of {len} bytes at {offset}")]
    DataOutOfBounds { offset: u64, len: usize },
}

/// An error of the replica's WebAssembly engine on a module that breaks no rule.
#[derive(Debug, thiserror::Error)]
pub(super) enum Engine {
    #[error("failed to parse WebAssembly module")]
    Parse,
    #[error("unknown import: `{module}::{name}` has not been defined")]
    UnknownImport { module: String, name: String },
    #[error("resource limit exceeded: table count too high at {0}")]
    TooManyTables(usize),
    #[error("table minimum size of {0} elements exceeds table limits")]
    TableTooLarge(u64),
    #[error("wasm trap: undefined element: out of bounds table access")]
    ElementsOutOfBounds,
}

impl From<Invalid> for Refusal {
    fn from(broken: Invalid) -> Self {
        Self {
            code: ErrorCode::CanisterInvalidWasm,
            message: format!("Canister's Wasm module is not valid: {broken}"),
        }
    }
}

impl From<Instrumentation> for Refusal {
    fn from(broken: Instrumentation) -> Self {
        Self {
            code: ErrorCode::CanisterInvalidWasm,
            message: format!("Could not instrument wasm module of canister: {broken}"),
        }
    }
}

impl From<Engine> for Refusal {
    fn from(broken: Engine) -> Self {
        let place = "Canister encountered a Wasm engine error: Failed to instantiate module";
        Self { code: ErrorCode::CanisterWasmEngineError, message: format!("{place}: {broken}") }
    }
}

impl From<Refusal> for Fault {
    fn from(refusal: Refusal) -> Self {
        Self::Module { code: refusal.code, message: refusal.message }
    }
}
