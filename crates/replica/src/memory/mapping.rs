//! Address space of one memory, files mapped into it, and its use by the engine.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::fs::File;
use std::io;
use std::ops::Range;
use std::ptr::NonNull;
use std::sync::Arc;
use std::sync::atomic::AtomicI64;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap, mmap_anonymous, mprotect, munmap};
use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use super::pages::PAGE;
use super::touch::PageTracker;

/// Access rights of mapped pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rights {
    /// No access until a fault is handled: the pages are tracked.
    None,
    /// Reading and writing.
    ReadWrite,
}

/// A reserved range of addresses with `size` usable bytes. Files are mapped privately, so writes do
/// not change them.
#[derive(Debug)]
pub struct Mapping {
    base: NonNull<u8>,
    size: usize,
    reserved: usize,
    whole: usize,
    /// Tracker of touched pages, if enabled.
    tracker: Option<Arc<PageTracker>>,
}

// SAFETY: the range belongs to this value only, on any thread.
unsafe impl Send for Mapping {}
// SAFETY: a shared reference only allows reading.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Reserves addresses, none of which are usable yet.
    ///
    /// # Errors
    ///
    /// If the system has no such range.
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

    /// Starts tracking which pages are touched and makes them inaccessible. Charges are added to
    /// `cell`, if there are any, which must stay valid as long as this mapping.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    pub fn track(&mut self, cell: Option<NonNull<AtomicI64>>) -> io::Result<Arc<PageTracker>> {
        // SAFETY: the range belongs to this value, and only the engine that owns it accesses it. The
        // caller guarantees that the cell is valid as long.
        let tracker = unsafe { PageTracker::new(self.base, self.size, self.reserved, cell)? };
        self.tracker = Some(Arc::clone(&tracker));
        Ok(tracker)
    }

    /// A pointer to the word at an offset of an untracked mapping, which a signal handler may
    /// change. It is valid as long as the mapping.
    pub fn word(&self, offset: usize) -> Option<NonNull<AtomicI64>> {
        let inside = offset.is_multiple_of(8) && offset + 8 <= self.size;
        // SAFETY: the word is inside of the range.
        inside.then(|| unsafe { self.base.add(offset).cast() })
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
        self.whole - self.reserved
    }

    /// Address of the first byte.
    pub fn as_ptr(&self) -> *mut u8 {
        self.base.as_ptr()
    }

    /// The usable bytes.
    #[cfg(test)]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: the first `size` bytes are mapped for reading.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.size) }
    }

    /// The usable bytes, for writing.
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: the first `size` bytes are mapped for writing and belong to this value.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.size) }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: this value reserved the range; no reference outlives it.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.whole) };
        debug_assert!(unmapped.is_ok(), "{unmapped:?}");
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
    unsafe { mmap(at.cast(), length, protection, flags, file, offset)? };
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
    let bytes = bytes_of(memory, pages);
    // SAFETY: the exclusive reference shows that nobody else uses the range, and bytes
    // have no invalid values.
    unsafe { map_file(bytes.as_mut_ptr(), bytes.len(), file, offset, rights) }
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

// SAFETY: the base never moves, and bytes below `byte_size` are accessible.
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
