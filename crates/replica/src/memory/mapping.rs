//! Address space of one memory, files mapped into it, and its use by the engine.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mprotect};
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use super::pages::PAGE;
use super::space::{Claim, Space, Word, with_room};
use super::touch::PageTracker;
use crate::units::WASM_PAGE;

/// Mappings of a memory without files: the usable and the reserved addresses, and one between files.
const MAPPINGS: usize = 3;
/// Mappings that a file can add when it is mapped over a part of another one.
pub const PER_RANGE: usize = 2;
/// Longer ranges are written to before they are split, in bytes.
const UNSPLIT: usize = 2 * WASM_PAGE as usize;

/// Access rights of mapped pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// No access until a fault is handled: the pages are tracked, and so are opened one by one.
    None,
    /// Reading and writing.
    ReadWrite,
}

/// Reserved addresses with `size` usable bytes. Files are mapped privately, so writes do not change
/// them.
#[derive(Debug)]
pub struct Mapping {
    space: Arc<Space>,
    size: usize,
    reserved: usize,
    /// Tracker of touched pages, if enabled.
    tracker: Option<Arc<PageTracker>>,
}

impl Mapping {
    /// Reserves addresses, none of which are usable yet.
    ///
    /// # Errors
    ///
    /// If the system has no such range.
    pub fn reserve(reserved: usize, guard: usize) -> io::Result<Self> {
        let space = Space::reserve(length(reserved, guard)?, MAPPINGS)?;
        Ok(Self { space, size: 0, reserved, tracker: None })
    }

    /// Reserves addresses of a mapping that will be tracked.
    ///
    /// # Errors
    ///
    /// As [`Mapping::reserve`].
    pub fn reserve_to_track(reserved: usize, guard: usize) -> io::Result<Self> {
        let space = Space::reserve_with_spare(length(reserved, guard)?, MAPPINGS)?;
        let mapping = Self { space, size: 0, reserved, tracker: None };
        let start = mapping.as_ptr();
        // SAFETY: nobody else knows the range yet.
        unsafe {
            let length = mapping.space.whole().min(PAGE);
            let protect = |flags| with_room(|| mprotect(start.cast(), length, flags));
            protect(MprotectFlags::READ | MprotectFlags::WRITE)?;
            keep_mergeable(std::slice::from_raw_parts_mut(start, length));
            protect(MprotectFlags::empty())?;
        }
        Ok(mapping)
    }

    /// Makes the first `size` bytes usable; new bytes are zero.
    ///
    /// # Errors
    ///
    /// If `size` exceeds the reservation.
    pub fn grow(&mut self, size: usize) -> io::Result<()> {
        if size > self.reserved {
            return Err(io::Error::from(io::ErrorKind::OutOfMemory));
        }
        if size > self.size {
            match &self.tracker {
                // New pages are inaccessible, like untouched ones.
                Some(tracker) => tracker.grown(size),
                // SAFETY: this value reserved the range, which was unusable so far.
                None => with_room(|| unsafe {
                    mprotect(
                        self.as_ptr().add(self.size).cast(),
                        size - self.size,
                        MprotectFlags::READ | MprotectFlags::WRITE,
                    )
                })?,
            }
            self.size = size;
        }
        Ok(())
    }

    /// Starts tracking which pages are touched and makes them inaccessible. Charges are added to
    /// `charges`, if there are any.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    ///
    /// # Panics
    ///
    /// If the mapping is tracked already, has a [`Word`], or does not reserve whole Wasm pages: the
    /// access rights of what comes after it would change, too.
    pub fn track(&mut self, charges: Option<Word>) -> io::Result<Arc<PageTracker>> {
        assert!(Arc::get_mut(&mut self.space).is_some(), "the memory is used elsewhere");
        let wasm_pages = self.reserved.is_multiple_of(WASM_PAGE as usize);
        assert!(wasm_pages, "a tracked memory reserves whole Wasm pages");
        // SAFETY: the exclusive reference and the check above show that nobody else uses the range.
        // From now on, this type lends out none of its bytes.
        let tracker = unsafe {
            PageTracker::new(Arc::clone(&self.space), self.size, self.reserved, charges)?
        };
        self.tracker = Some(Arc::clone(&tracker));
        Ok(tracker)
    }

    /// The word at an offset of an untracked mapping, if it is inside.
    pub fn word(&self, offset: usize) -> Option<Word> {
        let end = offset.checked_add(8)?;
        let inside = self.tracker.is_none() && offset.is_multiple_of(8) && end <= self.size;
        // SAFETY: the aligned word is inside of the range. It stays accessible, because a mapping that
        // has a word is not tracked. While compiled code runs, only the handler changes it.
        inside.then(|| unsafe {
            Word::new(Arc::clone(&self.space), self.space.base().add(offset).cast())
        })
    }

    /// The claim on the mappings of this memory. It holds as long as the memory.
    pub fn claim(&self) -> &Arc<Claim> {
        self.space.claim()
    }

    /// Number of usable bytes.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Number of bytes to which the mapping can grow.
    pub fn reserved(&self) -> usize {
        self.reserved
    }

    /// Number of inaccessible bytes after `reserved`.
    pub fn guard(&self) -> usize {
        self.space.whole() - self.reserved
    }

    /// Address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.space.base().as_ptr()
    }

    /// The usable bytes of an untracked mapping.
    ///
    /// # Panics
    ///
    /// If the mapping is tracked: its pages are inaccessible.
    pub fn bytes(&self) -> &[u8] {
        assert!(self.tracker.is_none(), "the pages of a tracked memory are inaccessible");
        // SAFETY: without a tracker, the first `size` bytes are mapped for reading and writing.
        unsafe { std::slice::from_raw_parts(self.as_ptr(), self.size) }
    }

    /// The usable bytes of an untracked mapping, for writing.
    ///
    /// # Panics
    ///
    /// If the mapping is tracked: its pages are inaccessible.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.tracker.is_none(), "the pages of a tracked memory are inaccessible");
        // SAFETY: without a tracker, the first `size` bytes are mapped for reading and writing, and
        // belong to this value.
        unsafe { std::slice::from_raw_parts_mut(self.as_ptr(), self.size) }
    }
}

/// Bytes of a reservation and its guard.
fn length(reserved: usize, guard: usize) -> io::Result<usize> {
    let sum = reserved.checked_add(guard);
    Ok(sum.ok_or_else(|| io::Error::from(io::ErrorKind::OutOfMemory))?.max(1))
}

/// Writes a byte as it is, so that the kernel keeps the parts mergeable into which it splits these
/// bytes.
///
/// Linux joins two neighbours of the same access rights only if they share what it keeps for their
/// private pages. It creates that at the first write to a mapping, and parts that are split off later
/// share it. Otherwise each page that is written on its own would stay a mapping of its own.
fn keep_mergeable(bytes: &mut [u8]) {
    if let Some(first) = bytes.first_mut() {
        *first = std::hint::black_box(*first);
    }
}

/// Maps `length` bytes of `file` from `offset` privately at `at`.
///
/// # Safety
///
/// The range belongs to the caller and is only used as bytes.
unsafe fn map_file(
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
    // SAFETY: guaranteed by the caller.
    with_room(|| unsafe { mmap(at.cast(), length, protection, flags, file, offset) })?;
    Ok(())
}

/// The bytes of `pages` of a mapping's usable bytes.
pub fn bytes_of(memory: &mut [u8], pages: Range<usize>) -> &mut [u8] {
    assert!(memory.as_ptr().addr().is_multiple_of(PAGE), "memories start at a page boundary");
    &mut memory[pages.start * PAGE..pages.end * PAGE]
}

/// Maps `pages` of `file` from `offset` over the same pages of `memory`, the usable bytes of a
/// [`Mapping`]. Previous writes to these pages are discarded. `rights` are the new access rights.
///
/// # Errors
///
/// If the system refuses the mapping.
pub fn map_over(
    memory: &mut [u8],
    pages: Range<usize>,
    file: &File,
    offset: u64,
    rights: Rights,
) -> io::Result<()> {
    let offset = offset + (pages.start * PAGE) as u64;
    let bytes = bytes_of(memory, pages.clone());
    let splits = rights == Rights::None && bytes.len() > UNSPLIT;
    let first = if splits { Rights::ReadWrite } else { rights };
    // SAFETY: the exclusive reference shows that nobody else uses the range, and bytes
    // have no invalid values.
    unsafe { map_file(bytes.as_mut_ptr(), bytes.len(), file, offset, first)? };
    if splits {
        keep_mergeable(bytes);
        set_rights(memory, pages, rights)?;
    }
    Ok(())
}

/// Sets the access rights of `pages` of `memory`, the usable bytes of a [`Mapping`].
///
/// # Errors
///
/// If the system refuses them.
pub fn set_rights(memory: &mut [u8], pages: Range<usize>, rights: Rights) -> io::Result<()> {
    let bytes = bytes_of(memory, pages);
    let (start, length) = (bytes.as_mut_ptr().cast(), bytes.len());
    let flags = match rights {
        Rights::None => MprotectFlags::empty(),
        Rights::ReadWrite => MprotectFlags::READ | MprotectFlags::WRITE,
    };
    // SAFETY: the exclusive reference shows that nobody else uses the range, and bytes have no
    // invalid values.
    with_room(|| unsafe { mprotect(start, length, flags) })
}

thread_local! {
    static PREPARED: RefCell<VecDeque<Mapping>> = const { RefCell::new(VecDeque::new()) };
}

/// Sets the memories for the next instantiation on this thread, in the order in which the module
/// defines them. The engine requests memories in that order without an index.
pub fn prepare(mappings: impl IntoIterator<Item = Mapping>) {
    PREPARED.with_borrow_mut(|prepared| {
        prepared.clear();
        prepared.extend(mappings);
    });
}

/// The engine's source of memories, which returns those set by [`prepare`].
#[derive(Debug)]
pub struct Creator;

// SAFETY: the engine gets a range that nobody else uses, reserved and guarded as requested; smaller
// mappings are refused.
unsafe impl MemoryCreator for Creator {
    fn new_memory(
        &self,
        _ty: MemoryType,
        minimum: usize,
        _maximum: Option<usize>,
        reserved: Option<usize>,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let mapping = PREPARED
            .with_borrow_mut(VecDeque::pop_front)
            .ok_or("a memory was created that was not prepared")?;
        if mapping.size() < minimum
            || mapping.reserved() < reserved.unwrap_or(0)
            || mapping.guard() < guard
        {
            return Err("the prepared memory is too small".to_owned());
        }
        Ok(Box::new(mapping))
    }
}

// SAFETY: the base never moves. Bytes below `byte_size` are accessible, or become so when they are
// accessed: a page of a tracked memory faults, and the handler of its tracker, which the instance
// installs before its code runs, makes it accessible and retries the access. The host accesses a
// tracked memory only inside of calls from that code, where the handler is active, and otherwise only
// pages that the tracker has made accessible (`PageTracker::written_ranges`).
unsafe impl LinearMemory for Mapping {
    fn byte_size(&self) -> usize {
        self.size()
    }

    fn byte_capacity(&self) -> usize {
        self.reserved()
    }

    fn grow_to(&mut self, size: usize) -> wasmtime::Result<()> {
        Ok(self.grow(size)?)
    }

    fn as_ptr(&self) -> *mut u8 {
        Mapping::as_ptr(self)
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use super::super::os::current;
    use super::*;

    /// A file of pages, each filled with its number, starting at 1.
    fn numbered(pages: u8) -> File {
        let mut file = current().anonymous().unwrap();
        for page in 1..=pages {
            file.write_all(&[page; PAGE]).unwrap();
        }
        file
    }

    fn firsts(mapping: &Mapping) -> Vec<u8> {
        mapping.bytes().iter().copied().step_by(PAGE).collect()
    }

    #[test]
    fn a_mapping_is_usable_after_it_grows() {
        let mut mapping = Mapping::reserve(4 * PAGE, PAGE).unwrap();
        assert_eq!(
            (mapping.bytes().len(), mapping.reserved(), mapping.guard()),
            (0, 4 * PAGE, PAGE)
        );
        mapping.grow(3 * PAGE).unwrap();
        mapping.bytes_mut()[3 * PAGE - 1] = 7;
        mapping.grow(2 * PAGE).unwrap();
        assert_eq!(mapping.size(), 3 * PAGE, "it never shrinks");
        mapping.grow(4 * PAGE).unwrap();
        assert_eq!((mapping.bytes()[3 * PAGE - 1], mapping.bytes()[4 * PAGE - 1]), (7, 0));
        assert!(mapping.grow(4 * PAGE + 1).is_err());
        assert_eq!(mapping.size(), 4 * PAGE);
        let empty = Mapping::reserve(0, 0).unwrap();
        assert_eq!(empty.bytes(), b"");
        assert!(Mapping::reserve(usize::MAX, 1).is_err());
    }

    #[test]
    fn a_mapped_file_does_not_change() {
        let file = numbered(40);
        let mut mapping = Mapping::reserve(64 * PAGE, 0).unwrap();
        mapping.grow(48 * PAGE).unwrap();
        map_over(mapping.bytes_mut(), 16..32, &file, 0, Rights::ReadWrite).unwrap();
        mapping.bytes_mut()[16 * PAGE] = 70;
        let shown = firsts(&mapping);
        assert_eq!((shown[15], shown[16], shown[17], shown[31], shown[32]), (0, 70, 18, 32, 0));
        let mut again = Mapping::reserve(64 * PAGE, 0).unwrap();
        again.grow(48 * PAGE).unwrap();
        map_over(again.bytes_mut(), 16..32, &file, 0, Rights::ReadWrite).unwrap();
        assert_eq!(firsts(&again)[16], 17, "writes are private to the first mapping");
    }

    #[test]
    #[should_panic(expected = "the pages of a tracked memory are inaccessible")]
    fn a_tracked_memory_lends_out_no_bytes() {
        let mut mapping = Mapping::reserve_to_track(WASM_PAGE as usize, 0).unwrap();
        mapping.grow(PAGE).unwrap();
        mapping.track(None).unwrap();
        mapping.bytes_mut();
    }

    #[test]
    #[should_panic(expected = "a tracked memory reserves whole Wasm pages")]
    fn a_part_of_a_wasm_page_is_not_tracked() {
        let mut mapping = Mapping::reserve_to_track(PAGE, 0).unwrap();
        let _ = mapping.track(None);
    }

    #[test]
    #[should_panic(expected = "the memory is used elsewhere")]
    fn a_memory_with_a_word_is_not_tracked() {
        let mut mapping = Mapping::reserve(PAGE, 0).unwrap();
        mapping.grow(PAGE).unwrap();
        let word = mapping.word(8).unwrap();
        let _ = mapping.track(Some(word));
    }

    /// A word and a tracker keep the addresses that they use.
    #[test]
    fn a_word_outlives_its_mapping() {
        let mut mapping = Mapping::reserve(PAGE, 0).unwrap();
        mapping.grow(PAGE).unwrap();
        mapping.bytes_mut()[16] = 3;
        assert!(mapping.word(4).is_none() && mapping.word(PAGE).is_none());
        assert!(mapping.word(usize::MAX - 7).is_none());
        let word = mapping.word(16).unwrap();
        drop(mapping);
        assert_eq!(word.get().load(std::sync::atomic::Ordering::Relaxed), 3_i64.to_le());
    }

    /// Pages of a tracked memory that are written one by one do not stay mappings of their own.
    #[test]
    #[cfg(target_os = "linux")]
    fn closed_pages_become_one_mapping() {
        const UNIT: usize = WASM_PAGE as usize;
        let mappings = |mapping: &Mapping| {
            let (start, end) =
                (mapping.as_ptr().addr(), mapping.as_ptr().addr() + mapping.reserved);
            let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
            let starts = maps.lines().filter_map(|line| line.split('-').next());
            let starts = starts.map(|start| usize::from_str_radix(start, 16).unwrap());
            starts.filter(|at| (start + 1..end).contains(at)).count()
        };
        let file = current().anonymous().unwrap();
        file.set_len(200 * UNIT as u64).unwrap();
        for size in [0, 100] {
            let mut mapping = Mapping::reserve_to_track(300 * UNIT, 0).unwrap();
            mapping.grow(size * UNIT).unwrap();
            let pages = 0..size / 2 * UNIT / PAGE;
            map_over(mapping.bytes_mut(), pages, &file, 0, Rights::None).unwrap();
            let tracker = mapping.track(None).unwrap();
            mapping.grow(200 * UNIT).unwrap();
            let before = mappings(&mapping);
            for page in (0..200).step_by(2) {
                let at = page * UNIT;
                tracker.touch(at..at + 1, crate::memory::Access::Write);
                // SAFETY: the tracker has made the page accessible.
                unsafe { mapping.as_ptr().add(at).write_volatile(1) };
            }
            assert!(mappings(&mapping) >= 199);
            tracker.reset().unwrap();
            assert_eq!(mappings(&mapping), before, "{size}");
        }
    }

    #[test]
    #[should_panic(expected = "out of range")]
    fn mapping_outside_of_a_memory_panics() {
        let mut mapping = Mapping::reserve(2 * PAGE, PAGE).unwrap();
        mapping.grow(PAGE).unwrap();
        let _ = map_over(mapping.bytes_mut(), 0..2, &numbered(2), 0, Rights::ReadWrite);
    }

    #[test]
    fn a_mapping_can_move_to_another_thread() {
        let mut mapping = Mapping::reserve(PAGE, 0).unwrap();
        mapping.grow(PAGE).unwrap();
        let mapping = std::thread::spawn(move || {
            mapping.bytes_mut()[5] = 5;
            mapping
        });
        let mapping = mapping.join().unwrap();
        std::thread::scope(|scope| {
            let readers = [(); 2].map(|()| scope.spawn(|| mapping.bytes()[5]));
            assert_eq!(readers.map(|reader| reader.join().unwrap()), [5, 5]);
        });
    }

    fn create(
        minimum: usize,
        reserved: usize,
        guard: usize,
    ) -> Result<Box<dyn LinearMemory>, String> {
        let ty = MemoryType::new(0, None);
        Creator.new_memory(ty, minimum, None, Some(reserved), guard)
    }

    /// The engine gets the prepared memories in order, and none that is smaller than requested.
    #[test]
    fn the_engine_gets_the_prepared_memories() {
        let mapping = |size: usize, reserved: usize, guard: usize| {
            let mut mapping = Mapping::reserve(reserved, guard).unwrap();
            mapping.grow(size).unwrap();
            mapping
        };
        let refused = |made: Result<Box<dyn LinearMemory>, String>| made.err().expect("a refusal");
        prepare([mapping(PAGE, 4 * PAGE, PAGE), mapping(2 * PAGE, 4 * PAGE, PAGE)]);
        let mut first = create(PAGE, 4 * PAGE, PAGE).unwrap();
        assert_eq!((first.byte_size(), first.byte_capacity()), (PAGE, 4 * PAGE));
        let base = first.as_ptr();
        first.grow_to(4 * PAGE).unwrap();
        assert_eq!((first.byte_size(), first.as_ptr()), (4 * PAGE, base));
        assert!(first.grow_to(5 * PAGE).is_err());
        assert_eq!(create(PAGE, PAGE, 0).unwrap().byte_size(), 2 * PAGE);
        assert_eq!(refused(create(0, 0, 0)), "a memory was created that was not prepared");

        for (minimum, reserved, guard) in [(2, 4, 1), (1, 5, 1), (1, 4, 2)] {
            prepare([mapping(PAGE, 4 * PAGE, PAGE)]);
            let made = create(minimum * PAGE, reserved * PAGE, guard * PAGE);
            assert_eq!(refused(made), "the prepared memory is too small");
        }
        prepare([mapping(PAGE, PAGE, 0)]);
        prepare([]);
        assert!(create(0, 0, 0).is_err(), "unused memories are dropped");
    }
}
