//! Finds the Wasm pages of a heap that a message touches, by page faults.
//!
//! Under rules that charge for touching pages, the heap is inaccessible when a message starts. The
//! first access to a page faults; the handler charges for the page and makes it accessible:
//!
//! ```text
//!   untouched ── read ──→ touched, read-only ── write ──→ written
//!       └────────────────────── write ──────────────────────↑
//! ```
//!
//! If writes are not charged, as in queries, a touched page is writable at once. Under rules that do
//! not charge, pages are tracked if the system does not tell which were written.
//!
//! Charges are added to a cell. Compiled code reads the cell wherever it checks its counter, because
//! it keeps the counter in a register, which a handler cannot change.
//!
//! The kernel splits a mapping where access rights differ, and limits the number of parts in a process
//! ([`Claim`]). After [`MAX_OPEN`] faults, or if no part is left, all pages become
//! inaccessible again. A page that was charged then faults once more, without another charge.
//!
//! A page is accessible only if its state says so, or if it is in the one range that was opened as a
//! whole. [`PageTracker::reset`] closes both, so that nothing stays accessible for the next message.

use std::ffi::{c_int, c_void};
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, AtomicU32, AtomicUsize, Ordering::Relaxed};

use rustix::io::Errno;
use rustix::mm::{MprotectFlags, mprotect};

use super::pages::{push, union};
use super::space::{Claim, NoMappings, Space, Word, make_room, with_room};
use crate::units::WASM_PAGE;

/// Bytes of a Wasm page, as a machine word.
const PAGE: usize = WASM_PAGE as usize;
/// Largest number of accessible pages: half of the mappings that Linux allows a process by default.
const MAX_OPEN: usize = 16_384;
/// Mappings that an accessible page can add: one of its own, and one after it.
const PER_PAGE: usize = 2;
/// Accessible pages that a message can always have. An operator needs a few at once.
const MIN_OPEN: usize = 128;
/// Further pages for which mappings are claimed at once.
const MORE_OPEN: usize = 64;
/// Idle instances are given up before a message until this number of pages can be accessible, since
/// a message with less soon closes them again and again.
const WANTED_OPEN: usize = 4_096;
/// Up to this number, ranges are made inaccessible separately after a message; beyond it, everything
/// from the first to the last is, accessible or not.
const MAX_RANGES: usize = 64;

const TOUCHED: u8 = 1;
const WRITTEN: u8 = 2;
/// Accessible: for reading if touched, also for writing if written.
const OPEN: u8 = 4;

/// Kind of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read.
    Read,
    /// A write.
    Write,
}

/// Prices of pages in a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TouchPrices {
    /// Instructions for the first touch.
    pub touched: i64,
    /// Instructions for the first write; `None` if writes are not charged.
    pub written: Option<i64>,
}

/// Number of pages that a message touched.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Touches {
    /// Pages that were read or written.
    pub touched: u64,
    /// Of those, pages charged as written.
    pub written: u64,
}

/// Tracks which pages of a heap a message touches.
///
/// Only the thread that runs the message and the signal handler on that thread change it. The
/// fields are atomic because of the handler, not because of other threads.
pub struct PageTracker {
    space: Arc<Space>,
    /// Size of the heap in bytes.
    size: AtomicUsize,
    pages: Box<[AtomicU8]>,
    /// The touched pages, in the order of their first touch.
    order: Box<[AtomicU32]>,
    touched: AtomicUsize,
    written: AtomicUsize,
    /// Faults since all pages were last inaccessible.
    opened: AtomicUsize,
    /// Mappings for accessible pages.
    claim: Claim,
    /// Pages that are accessible, whatever their state: from the first to the one after the last.
    whole: [AtomicUsize; 2],
    price_touched: AtomicI64,
    /// Negative if writes are not charged.
    price_written: AtomicI64,
    /// Instructions charged and not yet subtracted from the counter; `None` if pages cost nothing.
    cell: Option<Word>,
    /// Error of a system call in the handler, 0 for none.
    failed: AtomicU32,
}

impl std::fmt::Debug for PageTracker {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PageTracker").field("touches", &self.touches()).finish_non_exhaustive()
    }
}

impl PageTracker {
    /// Tracks the first `size` bytes of `space`, which may grow to `reserved`, and makes them
    /// inaccessible. Charges are added to `cell`, if there are any.
    ///
    /// # Safety
    ///
    /// `space` has `reserved` bytes. Nobody has a reference to any of them, and from now on, only the
    /// instance that runs the message accesses them, and only where faults are handled or the tracker
    /// has made a page accessible.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    pub(super) unsafe fn new(
        space: Arc<Space>,
        size: usize,
        reserved: usize,
        cell: Option<Word>,
    ) -> io::Result<Arc<Self>> {
        let pages = reserved.div_ceil(PAGE);
        let tracker = Self {
            space,
            size: AtomicUsize::new(size),
            pages: zeroed_bytes(pages),
            order: zeroed_words(pages),
            touched: AtomicUsize::new(0),
            written: AtomicUsize::new(0),
            opened: AtomicUsize::new(0),
            claim: Claim::none(),
            whole: [AtomicUsize::new(0), AtomicUsize::new(0)],
            price_touched: AtomicI64::new(0),
            price_written: AtomicI64::new(0),
            cell,
            failed: AtomicU32::new(0),
        };
        tracker.protect_or_make_room(0..size.div_ceil(PAGE), MprotectFlags::empty())?;
        Ok(Arc::new(tracker))
    }

    /// Claims the mappings that the next message needs in any case. Idle instances are given up for
    /// those that it probably needs.
    ///
    /// # Errors
    ///
    /// If too few are left.
    pub fn claim(&self) -> Result<(), NoMappings> {
        make_room(PER_PAGE * WANTED_OPEN);
        self.claim.extend((PER_PAGE * MIN_OPEN).saturating_sub(self.claim.held()))
    }

    /// Sets the prices for the next message.
    pub fn begin(&self, prices: TouchPrices) {
        self.price_touched.store(prices.touched, Relaxed);
        self.price_written.store(prices.written.unwrap_or(-1), Relaxed);
    }

    /// Sets the size of the heap after it has grown. New bytes are already inaccessible.
    pub fn grown(&self, size: usize) {
        self.size.store(size, Relaxed);
    }

    /// Charges for an access by the host to a range of the heap, and makes the range accessible. An
    /// empty range touches nothing.
    pub fn touch(&self, range: Range<usize>, access: Access) {
        if range.is_empty() {
            return;
        }
        for page in range.start / PAGE..=(range.end - 1) / PAGE {
            while !self.is_open(page, access) {
                self.fault(page, Some(access));
            }
        }
    }

    /// Handles a fault at an address. Returns true if the address is in the heap, so that the access
    /// can be retried.
    pub fn handle(&self, address: usize, access: Option<Access>) -> bool {
        let Some(offset) = address.checked_sub(self.space.base().addr().get()) else {
            return false;
        };
        if offset >= self.size.load(Relaxed) {
            return false;
        }
        let page = offset / PAGE;
        // An access that is allowed has faulted for another reason.
        if self.is_open(page, access.unwrap_or(Access::Write)) {
            return false;
        }
        self.fault(page, access);
        true
    }

    fn is_open(&self, page: usize, access: Access) -> bool {
        if self.whole().contains(&page) {
            return true;
        }
        let state = self.pages[page].load(Relaxed);
        let wanted = match access {
            Access::Read => OPEN | TOUCHED,
            Access::Write => OPEN | TOUCHED | WRITTEN,
        };
        state & wanted == wanted
    }

    /// Charges for a page and makes it accessible. Runs in the signal handler: it takes no lock,
    /// allocates nothing and cannot panic, since the page is inside of the heap.
    fn fault(&self, page: usize, access: Option<Access>) {
        let opened = self.opened.load(Relaxed);
        let claimed = opened < self.claim.held() / PER_PAGE
            || opened < MAX_OPEN && self.claim.try_extend_further(PER_PAGE * MORE_OPEN);
        if !claimed {
            self.close();
        }
        let state = self.pages[page].load(Relaxed);
        let charges_writes = self.price_written.load(Relaxed) >= 0;
        // If the kind of access is unknown: it reads at first, and writes if it could already read.
        let writes = match access {
            Some(access) => access == Access::Write,
            None => state & OPEN != 0,
        };
        let mut charge = 0;
        let mut after = state | TOUCHED | OPEN;
        if state & TOUCHED == 0 {
            charge += self.price_touched.load(Relaxed);
            let place = self.touched.fetch_add(1, Relaxed);
            self.order[place].store(page as u32, Relaxed);
        }
        if state & WRITTEN == 0 {
            if !charges_writes {
                after |= WRITTEN;
            } else if writes {
                after |= WRITTEN;
                charge += self.price_written.load(Relaxed);
                self.written.fetch_add(1, Relaxed);
            }
        }
        self.pages[page].store(after, Relaxed);
        if charge > 0 {
            self.cell(|cell| cell.fetch_add(charge, Relaxed));
        }
        self.opened.fetch_add(1, Relaxed);
        let flags = match after & WRITTEN {
            0 => MprotectFlags::READ,
            _ => MprotectFlags::READ | MprotectFlags::WRITE,
        };
        let mut opened = self.protect(page..page + 1, flags);
        if opened == Err(Errno::NOMEM) {
            // Others of this process use more mappings than were left to them.
            self.close();
            self.pages[page].store(after, Relaxed);
            self.opened.store(1, Relaxed);
            opened = self.protect(page..page + 1, flags);
        }
        if let Err(error) = opened {
            self.fail(error);
        }
    }

    /// Makes the heap accessible, so that the message can end. It is then reported as failed.
    fn fail(&self, error: Errno) {
        self.failed.store(error.raw_os_error().unsigned_abs(), Relaxed);
        let all = self.including(0..self.heap_pages());
        // The end of the heap may become the end of a mapping.
        self.space.give_up_spare();
        let _ = self.protect(all, MprotectFlags::READ | MprotectFlags::WRITE);
    }

    /// Number of pages of the heap.
    fn heap_pages(&self) -> usize {
        self.size.load(Relaxed).div_ceil(PAGE)
    }

    /// The range that was opened as a whole.
    fn whole(&self) -> Range<usize> {
        let [start, end] = &self.whole;
        start.load(Relaxed)..end.load(Relaxed)
    }

    fn set_whole(&self, pages: &Range<usize>) {
        let [start, end] = &self.whole;
        start.store(pages.start, Relaxed);
        end.store(pages.end, Relaxed);
    }

    /// Makes all pages of a range accessible, and those between it and the range that already is.
    fn open_whole(&self, pages: Range<usize>) -> io::Result<()> {
        let both = self.including(pages);
        self.protect_or_make_room(both, MprotectFlags::READ | MprotectFlags::WRITE)
    }

    /// Extends the range that is opened as a whole, before it is: it may be opened only in part.
    fn including(&self, pages: Range<usize>) -> Range<usize> {
        let whole = self.whole();
        let both = match (pages.is_empty(), whole.is_empty()) {
            (true, _) => whole,
            (false, true) => pages,
            (false, false) => pages.start.min(whole.start)..pages.end.max(whole.end),
        };
        self.set_whole(&both);
        both
    }

    /// Makes all tracked pages inaccessible, and gives their mappings back; charges stay. Runs in the
    /// signal handler.
    fn close(&self) {
        let (mut first, mut end) = (usize::MAX, 0);
        for place in 0..self.touched.load(Relaxed) {
            let page = self.order[place].load(Relaxed) as usize;
            if self.pages[page].fetch_and(!OPEN, Relaxed) & OPEN != 0 {
                (first, end) = (first.min(page), end.max(page + 1));
            }
        }
        self.opened.store(0, Relaxed);
        // Pages fault only outside of what is open as a whole, so no page of that is closed here
        // unless open pages are on both sides.
        let whole = self.whole();
        let parts = match whole.is_empty() {
            true => [first..end, 0..0],
            false => [first..end.min(whole.start), first.max(whole.end)..end],
        };
        for part in parts {
            if let Err(error) = self.protect(part, MprotectFlags::empty()) {
                self.fail(error);
            }
        }
        self.claim.shrink_to(PER_PAGE * MIN_OPEN);
    }

    fn protect(&self, pages: Range<usize>, flags: MprotectFlags) -> rustix::io::Result<()> {
        if pages.is_empty() {
            return Ok(());
        }
        // SAFETY: the creator of the tracker guarantees that the range is the heap's, and that
        // nobody has a reference to it.
        unsafe {
            let start = self.space.base().add(pages.start * PAGE).cast::<c_void>();
            mprotect(start.as_ptr(), pages.len() * PAGE, flags)
        }
    }

    /// Changes access rights outside of the handler: idle instances are given up if no mapping is
    /// left.
    fn protect_or_make_room(&self, pages: Range<usize>, flags: MprotectFlags) -> io::Result<()> {
        with_room(|| self.protect(pages.clone(), flags))
    }

    fn cell(&self, access: impl FnOnce(&AtomicI64) -> i64) -> i64 {
        self.cell.as_ref().map_or(0, |cell| access(cell.get()))
    }

    /// Returns and clears the pending charges; the caller subtracts them from the counter.
    pub fn take_charges(&self) -> i64 {
        self.cell(|cell| cell.swap(0, Relaxed))
    }

    /// Instructions charged since the last [`PageTracker::take_charges`].
    pub fn pending(&self) -> i64 {
        self.cell(|cell| cell.load(Relaxed))
    }

    /// Instructions charged in the message so far.
    pub fn charged(&self) -> u64 {
        let Touches { touched, written } = self.touches();
        let price = |price: &AtomicI64| price.load(Relaxed).max(0).unsigned_abs();
        touched * price(&self.price_touched) + written * price(&self.price_written)
    }

    /// Pages touched in the message so far.
    pub fn touches(&self) -> Touches {
        Touches {
            touched: self.touched.load(Relaxed) as u64,
            written: self.written.load(Relaxed) as u64,
        }
    }

    /// Returns the ranges of Wasm pages that the message may have written, ascending, and makes them
    /// accessible.
    ///
    /// # Errors
    ///
    /// If the system failed to change access rights, now or in the handler.
    pub fn written_ranges(&self) -> io::Result<Vec<Range<usize>>> {
        let failed = self.failed.load(Relaxed);
        if failed != 0 {
            return Err(NoMappings::because_of(Errno::from_raw_os_error(failed.cast_signed())));
        }
        let ranges = self.ranges(|state| state & WRITTEN != 0);
        let closed = self.ranges(|state| state & (WRITTEN | OPEN) == WRITTEN);
        if !closed.is_empty()
            && let (Some(first), Some(last)) = (ranges.first(), ranges.last())
        {
            self.open_whole(first.start..last.end)?;
        }
        Ok(ranges)
    }

    /// The touched pages in certain states, as ranges.
    fn ranges(&self, select: impl Fn(u8) -> bool) -> Vec<Range<usize>> {
        let touched = &self.order[..self.touched.load(Relaxed)];
        let mut pages: Vec<usize> = touched
            .iter()
            .map(|page| page.load(Relaxed) as usize)
            .filter(|page| select(self.pages[*page].load(Relaxed)))
            .collect();
        pages.sort_unstable();
        let mut ranges = Vec::new();
        for page in pages {
            push(&mut ranges, page);
        }
        ranges
    }

    /// Makes the whole heap accessible without charges until [`PageTracker::reset`]. Pages by which
    /// the heap grows are still tracked.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    pub fn suspend(&self) -> io::Result<()> {
        self.open_whole(0..self.heap_pages())
    }

    /// Resets the tracker: no page is touched, all are inaccessible.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    pub fn reset(&self) -> io::Result<()> {
        let mut open = self.ranges(|state| state & OPEN != 0);
        let whole = self.whole();
        if !whole.is_empty() {
            open = union(&open, std::slice::from_ref(&whole));
        }
        if open.len() > MAX_RANGES
            && let (Some(first), Some(last)) = (open.first(), open.last())
        {
            open = std::iter::once(first.start..last.end).collect();
        }
        for range in open {
            self.protect_or_make_room(range, MprotectFlags::empty())?;
        }
        self.set_whole(&(0..0));
        self.claim.shrink_to(0);
        for place in 0..self.touched.load(Relaxed) {
            let page = self.order[place].load(Relaxed) as usize;
            self.pages[page].store(0, Relaxed);
        }
        for count in [&self.touched, &self.written, &self.opened] {
            count.store(0, Relaxed);
        }
        self.take_charges();
        Ok(())
    }
}

/// Zeroed atomics, whose memory the system allocates on demand.
fn zeroed_bytes(count: usize) -> Box<[AtomicU8]> {
    let numbers = Box::into_raw(vec![0_u8; count].into_boxed_slice());
    // SAFETY: an atomic number has size, alignment and values of the plain one.
    unsafe { Box::from_raw(numbers as *mut [AtomicU8]) }
}

/// Zeroed atomics, whose memory the system allocates on demand.
fn zeroed_words(count: usize) -> Box<[AtomicU32]> {
    const { assert!(align_of::<AtomicU32>() == align_of::<u32>()) };
    let numbers = Box::into_raw(vec![0_u32; count].into_boxed_slice());
    // SAFETY: an atomic has the size, alignment and values of the plain integer.
    unsafe { Box::from_raw(numbers as *mut [AtomicU32]) }
}

/// Address of a fault, if the signal is one of an access to memory. The engine passes on other
/// signals too.
///
/// # Safety
///
/// `info` is the second argument of a handler for `signal`.
pub unsafe fn faulted(signal: c_int, info: *const libc::siginfo_t) -> Option<usize> {
    // SAFETY: guaranteed by the caller; these signals have an address.
    matches!(signal, libc::SIGSEGV | libc::SIGBUS).then(|| unsafe { (*info).si_addr() }.addr())
}

#[cfg(test)]
mod tests {
    use super::super::Mapping;
    use super::*;

    #[test]
    fn only_memory_faults_have_an_address() {
        // SAFETY: zeros are a valid value of the type.
        let info: libc::siginfo_t = unsafe { std::mem::zeroed() };
        // SAFETY: the reference is valid.
        let address = |signal| unsafe { faulted(signal, &raw const info) };
        assert_eq!([libc::SIGSEGV, libc::SIGBUS].map(address), [Some(0); 2]);
        assert_eq!([libc::SIGILL, libc::SIGFPE, libc::SIGTRAP].map(address), [None; 3]);
    }

    fn tracker(pages: usize) -> (Mapping, Arc<PageTracker>) {
        let mut mapping = Mapping::reserve_to_track(pages * PAGE, 0).unwrap();
        mapping.grow(pages * PAGE).unwrap();
        let tracker = mapping.track(None).unwrap();
        (mapping, tracker)
    }

    /// A message that may have the smallest number of accessible pages ends with the same result.
    #[test]
    fn few_open_pages_are_enough() {
        let (_mapping, tracker) = tracker(3 * MIN_OPEN);
        tracker.begin(TouchPrices { touched: 1, written: Some(1) });
        for access in [Access::Write, Access::Read] {
            for page in 0..3 * MIN_OPEN {
                tracker.touch(page * PAGE..page * PAGE + 1, access);
                assert!(tracker.is_open(page, access));
                // As if nothing was left for others.
                if tracker.opened.load(Relaxed) >= MIN_OPEN {
                    tracker.close();
                }
            }
        }
        let touches = Touches { touched: 3 * MIN_OPEN as u64, written: 3 * MIN_OPEN as u64 };
        assert_eq!(tracker.touches(), touches);
        let all: Vec<Range<usize>> = std::iter::once(0..3 * MIN_OPEN).collect();
        assert_eq!(tracker.written_ranges().unwrap(), all);
        tracker.reset().unwrap();
        assert_eq!((tracker.touches(), tracker.whole()), (Touches::default(), 0..0));
        assert_eq!((tracker.claim.held(), tracker.written_ranges().unwrap()), (0, Vec::new()));
    }

    /// A message has a minimum that it gets before it starts, and gives everything back at its end.
    #[test]
    fn mappings_are_claimed_for_a_message() {
        let (_mapping, tracker) = tracker(2 * MIN_OPEN);
        tracker.claim().unwrap();
        tracker.claim().unwrap();
        assert_eq!(tracker.claim.held(), PER_PAGE * MIN_OPEN);
        tracker.touch(0..2 * MIN_OPEN * PAGE, Access::Write);
        assert_eq!(tracker.claim.held(), PER_PAGE * 2 * MIN_OPEN);
        tracker.close();
        assert_eq!(tracker.claim.held(), PER_PAGE * MIN_OPEN);
        tracker.reset().unwrap();
        assert_eq!(tracker.claim.held(), 0);
    }
}
