//! Canisters in WebAssembly text, and helpers to call them.

#![allow(dead_code, reason = "each test program uses a part of this module")]

use stablebench_replica::{Canister, ErrorCode, Execution, Module, Principal, Replica};

/// The caller of all messages and the controller of all canisters.
pub const CALLER: Principal = Principal::anonymous();

pub fn compile(wat: &str) -> Module {
    let wasm = wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}"));
    Replica::new(stablebench_replica::Rules::of_2025_10(), None).unwrap().compile(&wasm).unwrap()
}

/// Installs a module in a new canister.
pub fn install(wat: &str) -> Canister {
    let mut canister = Replica::new(stablebench_replica::Rules::of_2025_10(), None)
        .unwrap()
        .create_canister()
        .unwrap();
    let execution = canister.install(&compile(wat), CALLER, &[]).unwrap();
    execution.outcome.unwrap();
    canister
}

pub fn update(canister: &mut Canister, method: &str, argument: &[u8]) -> Execution {
    canister.update(CALLER, method, argument).unwrap()
}

pub fn query(canister: &Canister, method: &str, argument: &[u8]) -> Execution {
    canister.query(CALLER, method, argument).unwrap()
}

/// The code of the reject.
#[track_caller]
pub fn code(execution: &Execution) -> ErrorCode {
    execution.outcome.as_ref().expect_err("a reject").code
}

/// The 64-bit numbers of a reply.
#[track_caller]
pub fn numbers(execution: Execution) -> Vec<u64> {
    let reply = execution.outcome.expect("a reply");
    reply.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
}

/// The first line of a reject's message without `Error from Canister ID: ` and without full stops at
/// the end, which must equal the recorded one.
pub fn words(message: &str) -> &str {
    let line = message.lines().next().unwrap_or_default();
    let line = match line.strip_prefix("Error from Canister ") {
        Some(rest) => rest.split_once(": ").expect("an id and a colon").1,
        None => line,
    };
    line.trim_end_matches('.')
}

#[track_caller]
pub fn rejected(execution: &Execution, code: ErrorCode, expected: &str) {
    let reject = execution.outcome.as_ref().expect_err("a reject");
    assert_eq!((reject.code, words(&reject.message)), (code, expected));
}

#[track_caller]
pub fn trapped(execution: &Execution, expected: &str) {
    rejected(execution, ErrorCode::CanisterTrapped, &format!("Canister trapped: {expected}"));
}

/// Asserts that the message ended at its limit, which is what it is charged.
#[track_caller]
pub fn out_of_instructions(execution: &Execution, limit: u64) {
    rejected(
        execution,
        ErrorCode::CanisterInstructionLimitExceeded,
        &format!(
            "Canister exceeded the limit of {limit} instructions for single message execution"
        ),
    );
    assert_eq!(execution.charge.get(), limit);
}

/// Memory of this process: resident, and in anonymous files.
#[cfg(target_os = "linux")]
pub fn held() -> u64 {
    use std::fs;
    use std::os::unix::fs::MetadataExt;
    const PAGE: u64 = 4_096;
    const BLOCK: u64 = 512;
    let statm = fs::read_to_string("/proc/self/statm").unwrap();
    let resident: u64 = statm.split(' ').nth(1).unwrap().parse().unwrap();
    let in_files: u64 = fs::read_dir("/proc/self/fd")
        .unwrap()
        .filter_map(|entry| {
            let path = entry.unwrap().path();
            let target = fs::read_link(&path).ok()?;
            let ours = target.to_string_lossy().contains("memfd:");
            // A file may have been closed since it was listed.
            ours.then(|| fs::metadata(path).map_or(0, |file| file.blocks() * BLOCK))
        })
        .sum();
    resident * PAGE + in_files
}
