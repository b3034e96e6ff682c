//! What the system tells about the canister; all zeros outside of one.

use std::fmt::Display;

/// `performance_counter(0)`: instructions of this message so far.
#[inline(always)]
pub fn instructions() -> u64 {
    #[cfg(target_family = "wasm")]
    return ic_cdk::api::performance_counter(0u32);
    #[cfg(not(target_family = "wasm"))]
    0
}

/// Wasm pages (64 KiB) of heap.
pub fn heap_pages() -> u64 {
    #[cfg(target_arch = "wasm32")]
    return core::arch::wasm32::memory_size::<0>() as u64;
    #[cfg(not(target_arch = "wasm32"))]
    0
}

/// Wasm pages (64 KiB) of stable memory.
pub fn stable_pages() -> u64 {
    #[cfg(target_family = "wasm")]
    return ic_cdk::api::stable_size();
    #[cfg(not(target_family = "wasm"))]
    0
}

/// Ends the message, all of whose changes the system undoes.
pub fn trap(because: &impl Display) -> ! {
    #[cfg(target_family = "wasm")]
    ic_cdk::api::trap(because.to_string());
    #[cfg(not(target_family = "wasm"))]
    panic!("{because}")
}
