//! Valid WebAssembly, as the replica's engine understands it.
//!
//! WebAssembly 2.0 with tail calls and 64-bit memories and tables; without several
//! memories, relaxed SIMD, extended constant expressions, garbage collection, typed
//! function references, exceptions and threads.

use wasmparser::{
    BinaryReaderError, FuncValidatorAllocations, Imports, Parser, Payload, TypeRef, ValidPayload,
    Validator, WasmFeatures,
};

use super::refusal::Invalid;
use crate::rules::ModuleLimits;

/// The proposals that are on in the replica's validation.
const FEATURES: WasmFeatures = WasmFeatures::WASM2
    .union(WasmFeatures::TAIL_CALL)
    .union(WasmFeatures::MEMORY64)
    .union(WasmFeatures::GC_TYPES);

/// Words that the validator changed since the replica's version of it.
const REWORDED: &[(&str, &str)] = &[(
    "invalid memop alignment: alignment must not be larger",
    "malformed memop alignment: alignment must not be larger",
)];

pub(super) fn check(wasm: &[u8], limits: &ModuleLimits) -> Result<(), Invalid> {
    check_code_size(wasm, limits)?;
    check_features(wasm).map_err(|error| Invalid::Wasm(reworded(&error.to_string())))?;
    check_no_exact_imports(wasm)
}

fn reworded(words: &str) -> String {
    match REWORDED.iter().find(|(now, _)| words.starts_with(now)) {
        Some((now, then)) => words.replacen(now, then, 1),
        None => words.to_owned(),
    }
}

/// Reads up to the code section: garbage before it is a decoding error, and garbage
/// behind it is left to the validator.
fn check_code_size(wasm: &[u8], limits: &ModuleLimits) -> Result<(), Invalid> {
    for payload in Parser::new(0).parse_all(wasm) {
        let payload = payload
            .map_err(|error| Invalid::Decoding(format!("Error finding code section: {error}")))?;
        if let Payload::CodeSectionStart { size, .. } = payload {
            let allowed = limits.code.get();
            if u64::from(size) > allowed {
                return Err(Invalid::CodeTooLarge { size, allowed });
            }
            break;
        }
    }
    Ok(())
}

/// Function bodies come last, after all sections: an error in a later section wins.
fn check_features(wasm: &[u8]) -> wasmparser::Result<()> {
    let mut validator = Validator::new_with_features(FEATURES);
    let mut functions = Vec::new();
    for payload in Parser::new(0).parse_all(wasm) {
        if let ValidPayload::Func(function, body) = validator.payload(&payload?)? {
            functions.push((function, body));
        }
    }
    let mut allocations = FuncValidatorAllocations::default();
    for (function, body) in functions {
        let mut validator = function.into_validator(allocations);
        validator.validate(&body)?;
        allocations = validator.into_allocations();
    }
    Ok(())
}

/// A kind of import that is newer than the replica's validator, and that this one passes
/// although the proposal is off.
fn check_no_exact_imports(wasm: &[u8]) -> Result<(), Invalid> {
    let refused = |error: BinaryReaderError| Invalid::Wasm(error.to_string());
    for payload in Parser::new(0).parse_all(wasm) {
        let Payload::ImportSection(imports) = payload.map_err(refused)? else {
            continue;
        };
        for imports in imports {
            if let Imports::Single(start, import) = imports.map_err(refused)?
                && let TypeRef::FuncExact(_) = import.ty
            {
                let kind = start + encoded_len(import.module) + encoded_len(import.name);
                return Err(Invalid::Wasm(format!(
                    "invalid leading byte (0x20) for external kind (at offset {kind:#x})"
                )));
            }
        }
        break;
    }
    Ok(())
}

/// Bytes of a name together with its length, which takes seven bits a byte.
fn encoded_len(name: &str) -> usize {
    let bits = usize::BITS - name.len().leading_zeros();
    name.len() + bits.div_ceil(7).max(1) as usize
}
