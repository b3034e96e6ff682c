//! Invalid and unusual modules and saved canisters. They are refused with a message, quickly and
//! without much memory, or they run.

mod modules;
#[path = "../../replica/fuzzing/targets/sealed.rs"]
mod sealed;
mod states;

use std::time::{Duration, Instant};

use super::{alone, peak_memory};

/// Longest time for one of them, on a machine that is busy otherwise.
const LONGEST: Duration = Duration::from_secs(20);

#[expect(clippy::disallowed_methods, reason = "this test limits wall time")]
fn now() -> Instant {
    Instant::now()
}

/// Checks the peak resident memory of a test.
#[track_caller]
fn bounded_memory(what: &str) {
    const MOST: u64 = 1 << 30;
    // Only Linux reports it.
    let Some(peak) = peak_memory() else { return };
    assert!(peak < MOST, "{what}: {} MiB at some time", peak >> 20);
}
