//! Refusals in the words of the real replica, and what a good module tells.

mod arbitrary;
mod decoding;
mod limits;
mod recorded;
mod rules;

use super::*;
use crate::reject::ErrorCode;

/// Those that the recorded refusals are of.
const RULES: Rules = Rules::of_2025_10();

fn wasm(wat: &str) -> Vec<u8> {
    wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}"))
}

fn validate(wasm: &[u8], rules: Rules) -> Result<ModuleInfo, Refusal> {
    validate_for(Purpose::Everything, wasm, rules)
}

fn validate_for(purpose: Purpose, wasm: &[u8], rules: Rules) -> Result<ModuleInfo, Refusal> {
    super::validate(wasm, rules, purpose)
}

fn accept(wat: &str) -> ModuleInfo {
    validate(&wasm(wat), RULES).unwrap_or_else(|refusal| panic!("{refusal}"))
}

/// The code and the words that follow its common beginning, trailing full stops aside.
fn refusal(wasm: &[u8]) -> (ErrorCode, String) {
    let refusal = validate(wasm, RULES).expect_err("the module breaks a rule");
    (refusal.code, refusal.message.trim_end_matches('.').to_owned())
}

/// Asserts that a module breaks a rule of the Internet Computer, in these words.
fn refuse(wat: &str, words: &str) {
    let expected = format!("Canister's Wasm module is not valid: {words}");
    assert_eq!(refusal(&wasm(wat)), (ErrorCode::CanisterInvalidWasm, expected), "{wat}");
}

/// Asserts that the engine refuses a module, in these words.
fn refuse_in_engine(wat: &str, words: &str) {
    let place = "Canister encountered a Wasm engine error: Failed to instantiate module";
    let expected = (ErrorCode::CanisterWasmEngineError, format!("{place}: {words}"));
    assert_eq!(refusal(&wasm(wat)), expected, "{wat}");
}

/// Appends a section to a module; `content` has to be shorter than 2^28 bytes.
fn push_section(module: &mut Vec<u8>, id: u8, content: &[u8]) {
    module.push(id);
    module.extend(leb(content.len()));
    module.extend(content);
}

fn push_custom(module: &mut Vec<u8>, name: &str, content: &[u8]) {
    let mut section = leb(name.len());
    section.extend(name.as_bytes());
    section.extend(content);
    push_section(module, 0, &section);
}

/// An unsigned number in LEB128.
fn leb(mut number: usize) -> Vec<u8> {
    let mut bytes = Vec::new();
    loop {
        let low = (number & 0x7f) as u8;
        number >>= 7;
        if number == 0 {
            bytes.push(low);
            return bytes;
        }
        bytes.push(low | 0x80);
    }
}
