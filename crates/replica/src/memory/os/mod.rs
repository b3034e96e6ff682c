//! Services of the operating system, besides `mmap` and `mprotect`, that memories need.
//!
//! | | `linux` | `portable` |
//! |---|---|---|
//! | files | in memory (`memfd`) | temporary files |
//! | written pages | `PAGEMAP_SCAN`, or `/proc/self/pagemap` | Wasm pages that faulted, by comparison with the committed pages |
//! | commit | private pages are replaced by those of the file | private pages stay |
//! | undo | `MADV_DONTNEED` | pages are mapped again, or read |
//! | mapped ranges | of 4 KiB | of 64 KiB, others are read |
//! | read or write fault | from the error code of x86-64 | the second fault is a write |
//!
//! Both give the same content and the same counts. Linux with pages of 4 KiB uses the first, and
//! everything else the second, unless the environment variable [`VARIABLE`] names one.

mod backend;
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "passes the kernel addresses of memories and results")]
mod linux;
mod portable;

use std::env;
use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;

pub use backend::{Committed, Os};

use super::pages::{PAGE, Pages};

/// Name of the environment variable that selects a backend.
const VARIABLE: &str = "STABLEBENCH_MEMORY";

/// The environment variable names no backend of this system.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {VARIABLE} is {0:?}; here it can be {names}", names = names())]
pub struct UnknownOs(OsString);

/// The backends of this system, the default first.
fn known() -> Vec<(&'static str, &'static dyn Os)> {
    let portable: (_, &dyn Os) = ("portable", &portable::Portable);
    #[cfg(target_os = "linux")]
    if linux::Linux::is_usable() {
        return vec![("linux", &linux::Linux), portable];
    }
    vec![portable]
}

fn names() -> String {
    known().iter().map(|(name, _)| *name).collect::<Vec<_>>().join(" or ")
}

/// Returns the backend that the environment variable names, or the default.
///
/// # Errors
///
/// If this system has no such backend.
pub fn selected() -> Result<&'static dyn Os, UnknownOs> {
    let known = known();
    let name = env::var_os(VARIABLE).filter(|name| !name.is_empty());
    let found = match &name {
        Some(name) => known.iter().find(|(other, _)| name == other),
        None => known.first(),
    };
    found.map(|(_, os)| *os).ok_or_else(|| UnknownOs(name.unwrap_or_default()))
}

/// The backend of this process. A name that [`selected`] refuses is ignored.
pub fn current() -> &'static dyn Os {
    static CURRENT: OnceLock<&'static dyn Os> = OnceLock::new();
    *CURRENT.get_or_init(|| selected().unwrap_or(&portable::Portable))
}

/// Returns those of the first `pages` pages of `file` from `offset` that are not holes, as far as
/// the system reports them, ascending.
///
/// # Errors
///
/// Errors of reading the file.
pub fn present(file: &File, offset: u64, pages: usize) -> io::Result<Vec<Range<usize>>> {
    use rustix::fs::{SeekFrom, seek};
    use rustix::io::Errno;

    let end = offset + (pages * PAGE) as u64;
    let page = |at: u64| (at - offset) as usize / PAGE;
    let mut ranges: Vec<Pages> = Vec::new();
    let mut at = offset;
    while at < end {
        let data = match seek(file, SeekFrom::Data(at)) {
            Ok(data) if data < end => data,
            Ok(_) | Err(Errno::NXIO) => break,
            // The file system has no holes.
            Err(Errno::INVAL | Errno::NOTTY | Errno::NOTSUP) => at,
            Err(error) => return Err(error.into()),
        };
        at = seek(file, SeekFrom::Hole(data)).unwrap_or(end).min(end);
        let (from, to) = (page(data), page(at + PAGE as u64 - 1));
        match ranges.last_mut() {
            // Blocks may be smaller than pages.
            Some(last) if last.end >= from => last.end = last.end.max(to),
            _ => ranges.push(from..to),
        }
    }
    Ok(ranges)
}

#[cfg(test)]
mod tests;
