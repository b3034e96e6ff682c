//! The lock of a file with a canister.

use std::path::Path;

use anyhow::{Result, anyhow};
use stablebench_replica::{LockError, StateLock};

/// Locks the file of a canister for this process. `option` is the option that names it.
pub fn lock(path: &Path, option: &str) -> Result<StateLock> {
    StateLock::take(path).map_err(|error| {
        let next = match &error {
            LockError::Taken { .. } => format!("end that one, or choose another {option}"),
            LockError::Io { .. } => format!("choose another {option}"),
        };
        anyhow!("{} cannot be saved: {error}; {next}", path.display())
    })
}
