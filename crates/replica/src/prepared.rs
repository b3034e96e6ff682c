//! A module, validated, rewritten and compiled.

use wasmtime::Engine;

use crate::fault::{ErrorCode, Fault};
use crate::instrument::{Instrumented, Metering, instrument};
use crate::rules::Rules;
use crate::validate::{ModuleInfo, Purpose, decode, validate};

/// A module before it is linked to the System API, as the cache keeps it.
pub(crate) struct Prepared {
    pub info: ModuleInfo,
    /// Without the rewritten module itself, which is no longer needed.
    pub rewritten: Instrumented,
    pub compiled: wasmtime::Module,
}

impl Prepared {
    /// Validates, rewrites and compiles an uploaded module, plain or gzipped.
    pub fn new(
        engine: &Engine,
        uploaded: &[u8],
        metering: Metering,
        rules: Rules,
        purpose: Purpose,
    ) -> Result<Self, Fault> {
        let wasm = decode(uploaded)?;
        let info = validate(&wasm, rules, purpose)?;
        let mut rewritten = instrument(&wasm, metering, rules).map_err(|error| Fault::Module {
            code: ErrorCode::CanisterInvalidWasm,
            message: format!("Could not instrument wasm module of canister: {error}"),
        })?;
        let wasm = std::mem::take(&mut rewritten.wasm);
        let compiled = wasmtime::Module::new(engine, &wasm)
            .map_err(|error| Fault::Engine(format!("Failed to compile: {error:#}")))?;
        Ok(Self { info, rewritten, compiled })
    }
}
