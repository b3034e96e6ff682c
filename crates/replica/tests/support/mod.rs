//! Canisters written as text, and what they answer.

use stablebench_replica::{Canister, ErrorCode, Execution, Module, Principal, Replica};

/// The caller of everything, and the controller of every canister.
pub const CALLER: Principal = Principal::anonymous();

pub fn compile(wat: &str) -> Module {
    let wasm = wat::parse_str(wat).unwrap_or_else(|error| panic!("{error}"));
    Replica::new(None).unwrap().compile(&wasm).unwrap()
}

/// A canister with that module.
pub fn install(wat: &str) -> Canister {
    let mut canister = Replica::new(None).unwrap().create_canister().unwrap();
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

/// The code with which a message was rejected.
#[track_caller]
pub fn code(execution: &Execution) -> ErrorCode {
    execution.outcome.as_ref().expect_err("a reject").code
}

/// A reply of 64-bit numbers.
#[track_caller]
pub fn numbers(execution: Execution) -> Vec<u64> {
    let reply = execution.outcome.expect("a reply");
    reply.chunks_exact(8).map(|bytes| u64::from_le_bytes(bytes.try_into().unwrap())).collect()
}
