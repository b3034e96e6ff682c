//! Address space of one memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};

use super::PAGE;
use super::pages::{Pages, joined};
use super::touch::PageTracker;

/// Ranges that are discarded one by one; of more, neighbours are discarded together.
const MOST_SINGLE: usize = 64;
/// Pages between two neighbours, at the most: two Wasm pages.
const NEAR: usize = 32;

/// Access rights of mapped pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// Nothing, until a fault is handled: the pages are tracked.
    None,
    /// Everything.
    ReadWrite,
}

/// A reserved range of addresses of which the first `size` bytes may be used. What is
/// written there stays there: files laid over it are mapped privately.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    size: usize,
    reserved: usize,
    whole: usize,
    /// Tracks which pages are touched, if somebody does.
    tracker: Option<Arc<PageTracker>>,
}

// SAFETY: the range belongs to this value alone, wherever it is sent.
unsafe impl Send for Mapping {}
// SAFETY: through a shared reference it can only be read.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves addresses, none of them usable yet.
    ///
    /// # Errors
    ///
    /// If the system has no such range left.
    pub fn reserve(reserved: usize, guard: usize) -> io::Result<Self> {
        let whole = reserved
            .checked_add(guard)
            .ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?
            .max(1);
        // SAFETY: a fresh range at an address of the system's choice.
        let base = unsafe {
            mmap_anonymous(
                std::ptr::null_mut(),
                whole,
                ProtFlags::empty(),
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )?
        };
        let base =
            NonNull::new(base.cast()).ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?;
        Ok(Self { base, size: 0, reserved, whole, tracker: None })
    }

    /// Lays `file` from `offset` on over the start, then zeros, and makes `size`
    /// bytes usable.
    ///
    /// # Errors
    ///
    /// If the system refuses the mapping.
    pub fn extend_with(&mut self, file: &File, offset: u64, size: usize) -> io::Result<()> {
        let in_file = file.metadata()?.len().saturating_sub(offset);
        let length = usize::try_from(in_file).unwrap_or(usize::MAX).min(size);
        if length > self.reserved {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        // SAFETY: the range was reserved by this value and nobody else uses it.
        unsafe { lay(self.base.as_ptr(), length, file, offset, Rights::ReadWrite)? };
        self.size = length;
        self.grow(size)
    }

    /// Makes the first `size` bytes usable; new ones are zero.
    ///
    /// # Errors
    ///
    /// If `size` is more than was reserved.
    pub fn grow(&mut self, size: usize) -> io::Result<()> {
        if size > self.reserved {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        if size > self.size {
            match &self.tracker {
                // New pages are inaccessible, as untouched ones are.
                Some(tracker) => tracker.grown(size),
                // SAFETY: the range was reserved by this value and was unusable so far.
                None => unsafe {
                    mprotect(
                        self.base.as_ptr().add(self.size).cast(),
                        size - self.size,
                        MprotectFlags::READ | MprotectFlags::WRITE,
                    )?;
                },
            }
            self.size = size;
        }
        Ok(())
    }

    /// Tracks from now on which pages are touched: they become inaccessible. Charges are
    /// collected in `cell`, which must stay valid as long as this mapping.
    ///
    /// # Errors
    ///
    /// If the system refuses.
    pub fn track(&mut self, cell: NonNull<AtomicI64>) -> io::Result<Arc<PageTracker>> {
        // SAFETY: the range is this value's, and only the engine that owns it accesses it. The
        // cell is valid as long, as the caller promises.
        let tracker = unsafe { PageTracker::new(self.base, self.size, self.reserved, cell)? };
        self.tracker = Some(Arc::clone(&tracker));
        Ok(tracker)
    }

    /// The word at an offset of a mapping that is not tracked, as one that a signal handler
    /// may change. It is valid as long as the mapping.
    pub fn word(&self, offset: usize) -> Option<NonNull<AtomicI64>> {
        let inside = offset.is_multiple_of(8) && offset + 8 <= self.size;
        // SAFETY: the word lies inside of the range.
        inside.then(|| unsafe { self.base.add(offset).cast() })
    }

    /// Bytes that may be used.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Bytes up to which the mapping can grow.
    pub fn reserved(&self) -> usize {
        self.reserved
    }

    /// Bytes behind `reserved` that are never usable.
    pub fn guard(&self) -> usize {
        self.whole - self.reserved
    }

    /// Address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The usable bytes.
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the first `size` bytes are mapped for reading.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.size) }
    }

    /// The usable bytes, to be written.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the first `size` bytes are mapped for writing and are ours.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.size) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: the range was reserved by this value; no reference outlives it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.whole) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
    }
}

/// Maps `length` bytes of `file` from `offset` on privately at `at`.
///
/// # Safety
///
/// The range is the caller's, and nothing but bytes is read from it.
unsafe fn lay(
    at: *mut u8,
    length: usize,
    file: &File,
    offset: u64,
    rights: Rights,
) -> io::Result<()> {
    if length == 0 {
        return Ok(());
    }
    let flags = MapFlags::PRIVATE | MapFlags::FIXED | MapFlags::NORESERVE;
    let protection = match rights {
        Rights::None => ProtFlags::empty(),
        Rights::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
    };
    // SAFETY: the caller's promise.
    unsafe { mmap(at.cast(), length, protection, flags, file, offset)? };
    Ok(())
}

/// The bytes of `pages` of a mapping's usable bytes.
fn bytes_of(memory: &mut [u8], pages: Range<usize>) -> &mut [u8] {
    assert!(memory.as_ptr().addr().is_multiple_of(PAGE), "memories begin with a page");
    &mut memory[pages.start * PAGE..pages.end * PAGE]
}

/// Lays `pages` of `file`, from `offset` on, over the same pages of `memory`, which are the
/// usable bytes of a [`Mapping`]. What was written there is gone. `rights` is what may be done
/// with the pages then.
///
/// # Errors
///
/// If the system refuses the mapping.
pub fn lay_over(
    memory: &mut [u8],
    pages: Range<usize>,
    file: &File,
    offset: u64,
    rights: Rights,
) -> io::Result<()> {
    let offset = offset + (pages.start * PAGE) as u64;
    let bytes = bytes_of(memory, pages);
    // SAFETY: the exclusive reference shows that nobody else uses the range, and bytes
    // have no invalid values.
    unsafe { lay(bytes.as_mut_ptr(), bytes.len(), file, offset, rights) }
}

/// Gives `memory`, the usable bytes of a [`Mapping`] of which no page was written, pages of
/// its own at once instead of one by one as they are written: a page that was read first and
/// is written then makes the kernel interrupt every processor that runs this process. Where
/// the system cannot do that, nothing happens. Only on Linux.
pub fn copy_ahead(memory: &mut [u8]) {
    #[cfg(target_os = "linux")]
    {
        use rustix::mm::{Advice, madvise};
        let pages = 0..memory.len() / PAGE;
        let bytes = bytes_of(memory, pages);
        if bytes.is_empty() {
            return;
        }
        for advice in [Advice::LinuxDontNeed, Advice::LinuxPopulateWrite] {
            // SAFETY: the exclusive reference shows that nobody else uses the range. None of
            // its pages was written, so what is dropped is as the file below has it.
            if unsafe { madvise(bytes.as_mut_ptr().cast(), bytes.len(), advice) }.is_err() {
                return;
            }
        }
    }
    #[cfg(not(target_os = "linux"))]
    let _ = memory;
}

/// Takes back what was written to `written`, pages of `memory`, which are the usable bytes of
/// a [`Mapping`]: they are again as the file below has them, or zero. No other page was
/// written: some may be dropped too, and come back from the file. Only on Linux.
///
/// # Errors
///
/// If the system refuses that.
pub fn discard_all(memory: &mut [u8], written: &[Pages]) -> io::Result<()> {
    // Each call takes longer than a few pages do that are mapped again.
    let gap = if written.len() > MOST_SINGLE { NEAR } else { 0 };
    joined(written, gap).into_iter().try_for_each(|range| discard(memory, range))
}

/// Takes back what was written to `pages`.
pub(super) fn discard(memory: &mut [u8], pages: Pages) -> io::Result<()> {
    let bytes = bytes_of(memory, pages);
    if bytes.is_empty() {
        return Ok(());
    }
    // SAFETY: the exclusive reference shows that nobody else uses the range, and bytes
    // have no invalid values.
    #[cfg(target_os = "linux")]
    unsafe {
        use rustix::mm::{Advice, madvise};
        madvise(bytes.as_mut_ptr().cast(), bytes.len(), Advice::LinuxDontNeed)?;
    }
    Ok(())
}
