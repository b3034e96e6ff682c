//! Limits of messages and modules: a message at the limit succeeds, and one beyond it fails.
//!
//! The expected costs are computed here from the operators with the prices below. Codes and messages
//! are compared completely, as those of recorded cases are.

use stablebench_replica::{Canister, Execution, Replica};

mod execution;
mod memory;
mod sizes;

use crate::support::{CALLER, compile, out_of_instructions, rejected, trapped, words};

/// A function, and each of the operators `const`, `local.get`, `local.tee`,
/// `drop`, `i32.sub`.
const ONE: u64 = 1;
const BR: u64 = 2;
const BR_IF: u64 = 2;
const CALL: u64 = 5;
const F64_MIN: u64 = 18;
const MEMORY_FILL: u64 = 100;
/// A System API call, without the operator.
const SYSTEM_CALL: u64 = 500;
const PERFORMANCE_COUNTER: u64 = 200;
const DEBUG_PRINT: u64 = 100;
const STABLE_GROW: u64 = 100;
const STABLE_READ: u64 = 20;
const STABLE_WRITE: u64 = 20;
const STABLE_PAGE_WRITTEN: u64 = 1_000;

const UPDATE: u64 = 40_000_000_000;
const QUERY: u64 = 5_000_000_000;
const INSTALL: u64 = 300_000_000_000;
const INSPECT: u64 = 200_000_000;
const SLICE: u64 = 2_000_000_000;

const GIB: u64 = 1 << 30;
const MIB: usize = 1 << 20;
const WASM_PAGE: u64 = 65_536;
const OS_PAGE: u64 = 4_096;

/// The result of `memory.grow` and similar calls that fail.
const REFUSED: u64 = u64::MAX;

fn empty() -> Canister {
    Replica::new(stablebench_replica::Rules::of_2025_10(), None).unwrap().create_canister().unwrap()
}

/// Installs a module into an empty canister.
fn try_install(wat: &str) -> Execution {
    empty().install(&compile(wat), CALLER, &[]).unwrap()
}
