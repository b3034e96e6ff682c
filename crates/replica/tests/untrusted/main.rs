//! Invalid and unusual modules and saved canisters. They are refused with a message, quickly and
//! without much memory, or they run.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

mod modules;
#[path = "../fuzzing/targets/sealed.rs"]
mod sealed;
mod states;
#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

/// Longest time for one of them, on a machine that is busy otherwise.
const LONGEST: Duration = Duration::from_secs(20);

#[expect(clippy::disallowed_methods, reason = "this test limits wall time")]
fn now() -> Instant {
    Instant::now()
}

/// Checks the peak resident memory of this process.
#[track_caller]
fn bounded_memory(what: &str) {
    const MOST: u64 = 1 << 20;
    // Only Linux reports it.
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < MOST, "{what}: {} MiB at some time", peak >> 10);
}
