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

#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "passes the kernel addresses of memories and results")]
mod linux;
mod portable;

use std::env;
use std::ffi::{OsString, c_void};
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::OnceLock;

use super::budget::Claim;
use super::image::Image;
use super::mapping::Rights;
use super::pages::{PAGE, Pages};
use super::touch::Access;

/// Name of the environment variable that selects a backend.
const VARIABLE: &str = "STABLEBENCH_MEMORY";

/// A backend. `memory` are always the usable bytes of a [`Mapping`](super::Mapping).
pub trait Os: Debug + Sync {
    /// Creates an empty file without a name.
    ///
    /// # Errors
    ///
    /// Errors of creating a file.
    fn anonymous(&self) -> io::Result<File>;

    /// True if the system tells which pages were written. Otherwise access to heaps is tracked.
    fn finds_written(&self) -> bool {
        false
    }

    /// Returns the pages of a mapping that may have been written since it was created, ascending.
    /// The result may include pages that were not written, but never misses a written one.
    fn written(&self, memory: &[u8]) -> Vec<Pages>;

    /// Makes `pages` of `memory` those of `file` from `offset`. The file has all of them, and is not
    /// changed by writes to the memory. Those that are mapped have the given rights.
    ///
    /// # Errors
    ///
    /// If the system refuses the mapping, or the file cannot be read.
    fn show(
        &self,
        memory: &mut [u8],
        pages: Pages,
        file: &File,
        offset: u64,
        rights: Rights,
    ) -> io::Result<()>;

    /// Replaces `pages` of `memory` by those of `file`, if that saves memory. Their content is the
    /// same, and `rights` are their new access rights if they are replaced. `claim` is that of the
    /// memory.
    ///
    /// # Errors
    ///
    /// If no mapping is left, or the system refuses it.
    fn share(
        &self,
        _memory: &mut [u8],
        _pages: Pages,
        _file: &File,
        _rights: Rights,
        _claim: &Claim,
    ) -> io::Result<()> {
        Ok(())
    }

    /// Drops private copies of the pages `written`, if that saves memory. Their content is that of
    /// the file that is mapped there.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    fn forget(&self, _memory: &mut [u8], _written: &[Pages]) -> io::Result<()> {
        Ok(())
    }

    /// Undoes writes to the pages `written` of a mapping of `image`. No other page was written.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    fn undo(&self, memory: &mut [u8], written: &[Pages], image: &Image) -> io::Result<()>;

    /// Populates `memory`, of which no page was written, with private pages at once instead of one
    /// by one at the first write, if the system supports it.
    fn copy_ahead(&self, _memory: &mut [u8]) {}

    /// Returns the kind of access that caused a fault, if the system reports it.
    ///
    /// # Safety
    ///
    /// `context` is the third argument of a handler for `SIGSEGV` or `SIGBUS`.
    #[expect(unsafe_code, reason = "reads what the system passes to a signal handler")]
    unsafe fn access(&self, _context: *const c_void) -> Option<Access> {
        None
    }
}

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
