//! The WebAssembly engine that compiles and runs rewritten modules.

use std::num::NonZeroUsize;
use std::sync::Arc;

use wasmtime::{Config, Engine, OptLevel, RegallocAlgorithm};

use crate::backtrace::CAPTURED;
use crate::limits::WASM_STACK;
use crate::memory::Creator;
use crate::rules::Rules;

/// Address space reserved for each memory. With this much, a 32-bit heap needs no bounds checks in
/// compiled code.
pub const RESERVED: usize = 4 << 30;
/// Inaccessible addresses after a memory, which small offsets may reach.
pub const GUARD: usize = 32 << 20;
/// Stack needed to run a canister, including the host's own frames.
pub const STACK: usize = WASM_STACK + (3 << 20);

/// The optimisation of a module by the compiler.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As much as possible, for modules that run for long.
    Full,
    /// Not at all: compiling takes half as long, running up to two and a half times as long.
    Least,
}

/// Creates an engine that executes as the replica's does: the same features, canonical NaNs, the
/// same stack. Unlike the replica's engine it optimizes.
///
/// # Errors
///
/// If the engine does not support this machine.
#[expect(unsafe_code, reason = "sets a compiler flag that has no safe setter")]
pub fn new(rules: Rules, effort: Effort) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    let (level, registers, stack) = match effort {
        Effort::Full => (OptLevel::Speed, RegallocAlgorithm::Backtracking, WASM_STACK),
        // Functions need more stack without optimisation. With half of it, each recursion that
        // overflows the whole stack with optimisation overflows this one, and is repeated there.
        Effort::Least => (OptLevel::None, RegallocAlgorithm::SinglePass, WASM_STACK / 2),
    };
    if rules.charges_touches() {
        // A signal handler stores the charges for pages. The compiler must not assume that they
        // stay the same in a loop that stores nothing.
        // SAFETY: the flag turns an optimization off.
        unsafe { config.cranelift_flag_set("enable_alias_analysis", "false") };
    }
    config
        .cranelift_opt_level(level)
        .cranelift_regalloc_algorithm(registers)
        .cranelift_nan_canonicalization(true)
        .generate_address_map(false)
        .async_stack_size(WASM_STACK + (1 << 20))
        .max_wasm_stack(stack)
        .memory_guard_size(GUARD as u64)
        .memory_init_cow(false)
        // Memories do not move, but declaring that would limit their size to the reservation,
        // and stable memories are larger.
        .memory_may_move(true)
        .memory_reservation(RESERVED as u64)
        // The handler of page faults needs signals.
        .macos_use_mach_ports(false)
        .parallel_compilation(true)
        .wasm_branch_hinting(true)
        .wasm_backtrace_max_frames(NonZeroUsize::new(CAPTURED))
        .wasm_bulk_memory(true)
        .wasm_extended_const(false)
        .wasm_memory64(true)
        .wasm_multi_memory(true)
        .wasm_relaxed_simd(false)
        .wasm_tail_call(true)
        .with_host_memory(Arc::new(Creator));
    Engine::new(&config)
}
