//! Rewritten modules.

use wasmparser::ValType;

use crate::system_api::names::{AddressWidth, SystemCall};

/// Name of the export of the canister's table.
pub const TABLE: &str = "table";

/// Module name of the imports from the host.
pub const HOST: &str = "stablebench";

/// Indices and types of globals.
pub type Globals = Vec<(u32, ValType)>;
/// Heap addresses and the bytes there.
pub type Data = Vec<(u64, Vec<u8>)>;

/// A rewritten module with the properties that the host needs.
#[derive(Clone, Debug)]
pub struct Instrumented {
    /// The module.
    pub wasm: Vec<u8>,
    /// Width of heap addresses.
    pub address_width: AddressWidth,
    /// True if the module declares a heap.
    pub has_heap: bool,
    /// Initial pages of the heap.
    pub heap_pages: u64,
    /// Indices and types of the mutable globals, exported as `global N`.
    pub globals: Globals,
    /// Active data segments: heap address and bytes, in order.
    pub data: Data,
    /// True if a function may drop segments, which an instance cannot undo.
    pub drops_segments: bool,
    /// True if the module charges for touched pages, and so has a `page map`.
    pub tracks_pages: bool,
    /// The stable calls, by number.
    pub stable_calls: Vec<SystemCall>,
    /// True if `start` is exported.
    pub has_start: bool,
}

/// A module that passed validation could not be rewritten.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The module could not be parsed.
    #[error(transparent)]
    Parse(#[from] wasmparser::BinaryReaderError),
    /// A part of the module could not be encoded again.
    #[error("cannot re-encode the module: {0}")]
    Encode(String),
    /// An operator has no price.
    #[error("operator {operator} in function {function} has no price")]
    Unpriced {
        /// Index of the function.
        function: u32,
        /// Name of the operator.
        operator: String,
    },
    /// The module contains something that validation should have refused.
    #[error("unsupported: {0}")]
    Unsupported(&'static str),
}

impl From<wasm_encoder::reencode::Error> for Error {
    fn from(error: wasm_encoder::reencode::Error) -> Self {
        Self::Encode(error.to_string())
    }
}
