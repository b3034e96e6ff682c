//! Tests of what the replica does to its process: peaks of memory, and the limit of mappings. They
//! have a program of their own, and run one after the other, because others would change what they
//! measure.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

mod endless;
#[cfg(target_os = "linux")]
mod forks;
#[cfg(target_os = "linux")]
mod mappings;
#[path = "../support/mod.rs"]
mod support;
mod untrusted;

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps other tests from running, and forgets the peak of memory until now.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Where the system cannot forget it, the peak is that of all tests until now.
    let _ = fs::write("/proc/self/clear_refs", "5");
    alone
}

/// The peak of resident memory since a test began, in bytes. Only Linux reports it.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    Some(peak << 10)
}
