//! What targets need of the machine.

use std::path::Path;

/// A folder of its own for an input, in memory where the system offers that.
#[allow(dead_code, reason = "not every target has files")]
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("fuzzed-").tempdir_in(directory).expect("a folder")
}

/// Fails where this process holds more than anything here needs.
pub fn bounded_memory() {
    const MOST: u64 = 4 << 30;
    // Elsewhere a fuzzer has a limit of its own.
    let Ok(statm) = std::fs::read_to_string("/proc/self/statm") else { return };
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let bytes = pages.expect("a number of pages") * 4_096;
    assert!(bytes < MOST, "{bytes} bytes are resident");
}
