//! Modules and saved canisters that reviews tried, and more of their kinds: what is wrong with
//! them is told in words and at once, and costs no memory.

mod modules;
#[path = "../fuzzing/targets/sealed.rs"]
mod sealed;
mod states;
#[path = "../support/mod.rs"]
mod support;

use std::time::{Duration, Instant};

/// The longest that any of them may take, on a machine that does other things too.
const LONGEST: Duration = Duration::from_secs(20);

#[expect(clippy::disallowed_methods, reason = "what is bounded here is wall time")]
fn now() -> Instant {
    Instant::now()
}

/// Fails where this process has had more resident at any time than anything here needs.
#[track_caller]
fn bounded_memory(what: &str) {
    const MOST: u64 = 1 << 20;
    // Linux alone tells.
    let Ok(status) = std::fs::read_to_string("/proc/self/status") else { return };
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(peak < MOST, "{what}: {} MiB at some time", peak >> 10);
}
