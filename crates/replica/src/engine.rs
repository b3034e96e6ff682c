//! The engine that compiles and runs rewritten modules.

use std::sync::Arc;

use wasmtime::{Config, Engine, OptLevel};

use crate::limits::WASM_STACK;
use crate::memory::Creator;
use crate::rules::Rules;

/// Address space that each memory reserves; a 32-bit heap then needs no bounds
/// checks in compiled code.
pub const RESERVED: usize = 4 << 30;
/// Unusable addresses behind a memory, into which small offsets may reach.
pub const GUARD: usize = 32 << 20;
/// Stack that running a canister needs, with room for the host's own frames.
pub const STACK: usize = WASM_STACK + (3 << 20);

/// An engine that executes as the replica's does: the same features, NaNs made
/// canonical, the same stack. Unlike the replica's it optimises.
///
/// # Errors
///
/// If the machine is not one that the engine compiles for.
#[expect(unsafe_code, reason = "a flag of the compiler is set that no setting reaches")]
pub fn new(rules: Rules) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    if rules.charges_touches() {
        // What is charged for pages is stored by a signal handler. The compiler would take a
        // loop that stores nothing for one in which that stays the same.
        // SAFETY: the flag turns an optimisation off.
        unsafe { config.cranelift_flag_set("enable_alias_analysis", "false") };
    }
    config
        .cranelift_opt_level(OptLevel::Speed)
        .cranelift_nan_canonicalization(true)
        .generate_address_map(false)
        .async_stack_size(WASM_STACK + (1 << 20))
        .max_wasm_stack(WASM_STACK)
        .memory_guard_size(GUARD as u64)
        .memory_init_cow(false)
        // Memories do not move. To the compiler that would mean that none is larger
        // than this, and stable memories are.
        .memory_may_move(true)
        .memory_reservation(RESERVED as u64)
        .parallel_compilation(true)
        .wasm_branch_hinting(true)
        .wasm_backtrace_max_frames(None)
        .wasm_bulk_memory(true)
        .wasm_extended_const(false)
        .wasm_memory64(true)
        .wasm_multi_memory(true)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(true)
        .with_host_memory(Arc::new(Creator));
    Engine::new(&config)
}
