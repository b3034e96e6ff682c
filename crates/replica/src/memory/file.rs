//! Files that hold pages.

use std::fs::File;
use std::io;
use std::ops::Range;

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

/// Those of the first `pages` pages of `file` from `offset` on that are no holes, as
/// far as the system tells; ascending.
///
/// # Errors
///
/// Whatever reading the file can meet.
#[cfg(target_os = "linux")]
pub fn present(file: &File, offset: u64, pages: usize) -> io::Result<Vec<Range<usize>>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    use super::PAGE;

    let end = offset + (pages * PAGE) as u64;
    let page = |at: u64| (at - offset) as usize / PAGE;
    let mut ranges = Vec::new();
    let mut at = offset;
    while at < end {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) if data < end => data,
            Ok(_) | Err(Errno::NXIO) => break,
            Err(error) => return Err(error.into()),
        };
        at = seek(file, SeekFrom::Hole(data))?.min(end);
        ranges.push(page(data)..page(at + PAGE as u64 - 1));
    }
    Ok(ranges)
}

/// All pages: other systems are not asked.
///
/// # Errors
///
/// Never.
#[cfg(not(target_os = "linux"))]
pub fn present(_file: &File, _offset: u64, pages: usize) -> io::Result<Vec<Range<usize>>> {
    Ok(std::iter::once(0..pages).collect())
}
