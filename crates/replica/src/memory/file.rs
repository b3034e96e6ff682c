//! A file without a name that holds pages.

use std::fs::File;
use std::io;

/// An empty anonymous file, in memory where the system offers that.
///
/// # Errors
///
/// Whatever creating a file can meet.
pub fn anonymous() -> io::Result<File> {
    #[cfg(target_os = "linux")]
    {
        use rustix::fs::{MemfdFlags, memfd_create};
        Ok(memfd_create("stablebench", MemfdFlags::CLOEXEC)?.into())
    }
    #[cfg(not(target_os = "linux"))]
    {
        tempfile::tempfile()
    }
}
