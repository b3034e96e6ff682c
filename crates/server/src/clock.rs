//! The clock of this machine, which is the time that clients see.

use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the nanoseconds since 1970.
pub fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_nanos()).unwrap_or(u64::MAX)
}

/// Nanoseconds in a second.
pub const SECOND: u64 = 1_000_000_000;
/// Nanoseconds in a minute.
pub const MINUTE: u64 = 60 * SECOND;
