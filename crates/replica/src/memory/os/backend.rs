//! The interface of a backend.

use std::ffi::c_void;
use std::fmt::Debug;
use std::fs::File;
use std::io;

use super::super::budget::Claim;
use super::super::mapping::Rights;
use super::super::pages::Pages;
use super::super::touch::Access;

/// The committed pages of a mapping.
pub trait Committed {
    /// Reads pages.
    ///
    /// # Errors
    ///
    /// Errors of reading the file.
    fn read(&self, pages: Pages, buffer: &mut Vec<u8>) -> io::Result<()>;

    /// Makes pages of the mapping whose usable bytes are `memory` those that are committed.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    fn restore(&self, memory: &mut [u8], pages: Pages) -> io::Result<()>;
}

/// A backend. `memory` are always the usable bytes of a mapping.
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

    /// Undoes writes to the pages `written` of a mapping of `committed`. No other page was written.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    fn undo(
        &self,
        memory: &mut [u8],
        written: &[Pages],
        committed: &dyn Committed,
    ) -> io::Result<()>;

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
