//! Folders and memory limits.

use std::path::Path;

/// A temporary folder for an input, in memory if the system supports that.
#[allow(dead_code, reason = "not every target has files")]
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("fuzzed-").tempdir_in(directory).expect("a folder")
}

/// Checks the resident memory of this process.
pub fn bounded_memory() {
    const MOST: u64 = 4 << 30;
    // On other systems the fuzzer has its own limit.
    let Ok(statm) = std::fs::read_to_string("/proc/self/statm") else { return };
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let bytes = pages.expect("a number of pages") * 4_096;
    assert!(bytes < MOST, "{bytes} bytes are resident");
}
