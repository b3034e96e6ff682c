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

use std::env;
use std::ffi::{OsString, c_void};
use std::fmt::Debug;
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;

use super::mapping::{Rights, bytes_of, map_over, set_rights};
use super::pages::{PAGE, Pages};
use super::space::Claim;
use super::touch::Access;
use crate::units::WASM_PAGE;

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

/// Name of the environment variable that selects a backend.
const VARIABLE: &str = "STABLEBENCH_MEMORY";

/// The environment variable names no backend of this system.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {VARIABLE} is {0:?}; here it can be {names}", names = names())]
pub struct UnknownOs(OsString);

/// The backends of this system, the default first.
fn known() -> Vec<(&'static str, &'static dyn Os)> {
    let portable: (_, &dyn Os) = ("portable", &Portable);
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
    *CURRENT.get_or_init(|| selected().unwrap_or(&Portable))
}

/// Returns those of the first `pages` pages of `file` from `offset` that are not holes, as far as
/// the system reports them, ascending.
///
/// # Errors
///
/// Errors of reading the file.
pub fn present(file: &File, offset: u64, pages: usize) -> io::Result<Vec<Pages>> {
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

/// Pages of a Wasm page.
const UNIT: usize = WASM_PAGE as usize / PAGE;
/// Up to this number, ranges are mapped again; beyond it they are read, because systems limit the
/// number of mappings.
const MAX_MAPPED: usize = 64;

/// The backend for any POSIX system, whatever the size of its pages.
///
/// Memories are mapped and protected in whole Wasm pages of 64 KiB, which are a multiple of the
/// pages of all supported machines. Smaller ranges are read from the file instead. The system is not
/// asked which pages were written: those of the Wasm pages that became writable
/// ([`touch`](super::touch)) are compared with the committed ones.
#[derive(Debug)]
struct Portable;

impl Os for Portable {
    fn anonymous(&self) -> io::Result<File> {
        tempfile::tempfile()
    }

    fn written(&self, memory: &[u8]) -> Vec<Pages> {
        std::iter::once(0..memory.len().div_ceil(PAGE)).collect()
    }

    fn show(
        &self,
        memory: &mut [u8],
        pages: Pages,
        file: &File,
        offset: u64,
        rights: Rights,
    ) -> io::Result<()> {
        let mut whole = pages.start.next_multiple_of(UNIT)..pages.end / UNIT * UNIT;
        if whole.is_empty() || !offset.is_multiple_of(WASM_PAGE) {
            whole = pages.end..pages.end;
        }
        let parts = [pages.start..whole.start, whole.end..pages.end];
        // Parts of Wasm pages are read into them, which another layer may have made inaccessible.
        let opens = rights == Rights::None && parts.iter().any(|part| !part.is_empty());
        let end = pages.end.next_multiple_of(UNIT).min(memory.len() / PAGE);
        let around = pages.start / UNIT * UNIT..end;
        if opens {
            set_rights(memory, around.clone(), Rights::ReadWrite)?;
        }
        for part in parts {
            let from = offset + (part.start * PAGE) as u64;
            file.read_exact_at(bytes_of(memory, part), from)?;
        }
        map_over(memory, whole, file, offset, rights)?;
        if opens {
            set_rights(memory, around, Rights::None)?;
        }
        Ok(())
    }

    fn undo(
        &self,
        memory: &mut [u8],
        written: &[Pages],
        committed: &dyn Committed,
    ) -> io::Result<()> {
        if written.len() <= MAX_MAPPED {
            return written.iter().try_for_each(|range| committed.restore(memory, range.clone()));
        }
        let mut buffer = Vec::new();
        for range in written {
            committed.read(range.clone(), &mut buffer)?;
            bytes_of(memory, range.clone()).copy_from_slice(&buffer);
        }
        Ok(())
    }
}

/// Linux with pages of 4 KiB: files in memory, and the kernel's map of written pages.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "passes the kernel addresses of memories and results")]
mod linux {
    #[cfg(target_arch = "x86_64")]
    use std::ffi::c_void;
    use std::fs::File;
    use std::io;
    use std::os::unix::fs::FileExt;
    use std::sync::OnceLock;

    use rustix::fs::{MemfdFlags, memfd_create};
    use rustix::mm::{Advice, madvise};

    use super::super::mapping::{Mapping, PER_RANGE, Rights, bytes_of, map_over};
    use super::super::pages::{PAGE, Pages, joined, push};
    use super::super::space::Claim;
    #[cfg(target_arch = "x86_64")]
    use super::super::touch::Access;
    use super::{Committed, Os};

    /// Up to this number, ranges are discarded separately; beyond it, nearby ranges are merged.
    const MAX_SEPARATE_DISCARDS: usize = 64;
    /// Largest gap between merged ranges in pages: two Wasm pages.
    const MAX_GAP: usize = 32;

    /// The backend for Linux.
    #[derive(Debug)]
    pub struct Linux;

    impl Linux {
        /// True if the pages of this machine's kernel are those that are counted.
        pub fn is_usable() -> bool {
            rustix::param::page_size() == PAGE
        }
    }

    impl Os for Linux {
        fn anonymous(&self) -> io::Result<File> {
            Ok(memfd_create("stablebench", MemfdFlags::CLOEXEC)?.into())
        }

        fn finds_written(&self) -> bool {
            page_map().is_some()
        }

        fn written(&self, memory: &[u8]) -> Vec<Pages> {
            page_map()
                .and_then(|(file, query)| query(file, memory).ok())
                .unwrap_or_else(|| std::iter::once(0..memory.len().div_ceil(PAGE)).collect())
        }

        fn show(
            &self,
            memory: &mut [u8],
            pages: Pages,
            file: &File,
            offset: u64,
            rights: Rights,
        ) -> io::Result<()> {
            map_over(memory, pages, file, offset, rights)
        }

        fn share(
            &self,
            memory: &mut [u8],
            pages: Pages,
            file: &File,
            rights: Rights,
            claim: &Claim,
        ) -> io::Result<()> {
            claim.extend(PER_RANGE)?;
            map_over(memory, pages, file, 0, rights)
        }

        /// Some of the pages around those written may be dropped too; they reappear from the file.
        fn forget(&self, memory: &mut [u8], written: &[Pages]) -> io::Result<()> {
            // A call takes longer than mapping a few pages again.
            let gap = if written.len() > MAX_SEPARATE_DISCARDS { MAX_GAP } else { 0 };
            joined(written, gap).into_iter().try_for_each(|range| discard(memory, range))
        }

        fn undo(&self, memory: &mut [u8], written: &[Pages], _: &dyn Committed) -> io::Result<()> {
            self.forget(memory, written)
        }

        /// A write to a page that was read before makes the kernel interrupt every processor that runs
        /// this process.
        fn copy_ahead(&self, memory: &mut [u8]) {
            let pages = 0..memory.len() / PAGE;
            let bytes = bytes_of(memory, pages);
            if bytes.is_empty() {
                return;
            }
            for advice in [Advice::LinuxDontNeed, Advice::LinuxPopulateWrite] {
                // SAFETY: the exclusive reference shows that nobody else uses the range. None of its
                // pages was written, so dropped pages are as in the file.
                if unsafe { madvise(bytes.as_mut_ptr().cast(), bytes.len(), advice) }.is_err() {
                    return;
                }
            }
        }

        #[cfg(target_arch = "x86_64")]
        unsafe fn access(&self, context: *const c_void) -> Option<Access> {
            // Bit 1 of the processor's page fault error code.
            const WRITE: i64 = 1 << 1;
            // SAFETY: guaranteed by the caller.
            let context = unsafe { &*context.cast::<libc::ucontext_t>() };
            let code = context.uc_mcontext.gregs[libc::REG_ERR as usize];
            Some(if code & WRITE == 0 { Access::Read } else { Access::Write })
        }
    }

    /// Discards writes to `pages`: they are again as in the mapped file, or zero.
    fn discard(memory: &mut [u8], pages: Pages) -> io::Result<()> {
        let bytes = bytes_of(memory, pages);
        if bytes.is_empty() {
            return Ok(());
        }
        // SAFETY: the exclusive reference shows that nobody else uses the range, and bytes
        // have no invalid values.
        unsafe { madvise(bytes.as_mut_ptr().cast(), bytes.len(), Advice::LinuxDontNeed)? };
        Ok(())
    }

    type Query = fn(&File, &[u8]) -> io::Result<Vec<Pages>>;

    /// The page map of this process, if it has one.
    fn page_map() -> Option<&'static (File, Query)> {
        static PAGE_MAP: OnceLock<Option<(File, Query)>> = OnceLock::new();
        PAGE_MAP.get_or_init(open_page_map).as_ref()
    }

    /// Opens the page map if it distinguishes written pages from untouched ones, which differs among
    /// kernels.
    fn open_page_map() -> Option<(File, Query)> {
        #[expect(clippy::disallowed_methods, reason = "the kernel offers it, and nobody names it")]
        let file = File::open("/proc/self/pagemap").ok()?;
        let queries: [Query; 2] = [scan::query, read];
        let query = queries.into_iter().find(|query| probe(&file, *query) == Some(true))?;
        Some((file, query))
    }

    /// Tries a query on four pages of a file, of which the third is written.
    fn probe(page_map: &File, query: Query) -> Option<bool> {
        let file = Linux.anonymous().ok()?;
        file.set_len(4 * PAGE as u64).ok()?;
        file.write_all_at(&[1; 4 * PAGE], 0).ok()?;
        let mut mapping = Mapping::reserve(4 * PAGE, 0).ok()?;
        mapping.grow(4 * PAGE).ok()?;
        let memory = mapping.bytes_mut();
        Linux.show(memory, 0..4, &file, 0, Rights::ReadWrite).ok()?;
        // Read first, so that the file's pages are present.
        let sum: u32 = memory.iter().step_by(PAGE).map(|byte| u32::from(*byte)).sum();
        memory[2 * PAGE] = sum as u8;
        Some(query(page_map, memory).ok()?.iter().eq(std::iter::once(&(2..3))))
    }

    /// Reads `/proc/self/pagemap`, which has eight bytes per page: a page is private to the mapping if
    /// bit 63 (present) or 62 (swapped) is set and bit 61 (page of a file) is clear.
    fn read(file: &File, memory: &[u8]) -> io::Result<Vec<Pages>> {
        const PRESENT_OR_SWAPPED: u64 = 0b11 << 62;
        const OF_FILE: u64 = 1 << 61;
        const ENTRY: usize = 8;
        const CHUNK: usize = 4_096;
        let first = memory.as_ptr().addr() / PAGE;
        let pages = memory.len().div_ceil(PAGE);
        let mut written = Vec::new();
        let mut buffer = vec![0; CHUNK.min(pages) * ENTRY];
        for start in (0..pages).step_by(CHUNK) {
            let entries = &mut buffer[..CHUNK.min(pages - start) * ENTRY];
            file.read_exact_at(entries, ((first + start) * ENTRY) as u64)?;
            for (page, entry) in (start..).zip(entries.as_chunks::<ENTRY>().0) {
                let entry = u64::from_ne_bytes(*entry);
                if entry & PRESENT_OR_SWAPPED != 0 && entry & OF_FILE == 0 {
                    push(&mut written, page);
                }
            }
        }
        Ok(written)
    }

    /// Queries ranges of private pages from the kernel, which Linux supports since 6.7. Untouched pages
    /// are skipped, so the time depends on the pages in use, not on the size.
    mod scan {
        use std::ffi::c_void;
        use std::fs::File;
        use std::io;

        use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

        use super::{PAGE, Pages};

        const OF_FILE: u64 = 1 << 2;
        const PRESENT: u64 = 1 << 3;
        const SWAPPED: u64 = 1 << 4;
        const ZERO: u64 = 1 << 5;
        /// Largest number of ranges in one result.
        const MAX_RANGES: usize = 512;

        /// `struct page_region` of `linux/fs.h`.
        #[repr(C)]
        #[derive(Clone, Copy)]
        struct Region {
            start: u64,
            end: u64,
            categories: u64,
        }

        /// `struct pm_scan_arg` of `linux/fs.h`.
        #[repr(C)]
        struct Argument {
            size: u64,
            flags: u64,
            start: u64,
            end: u64,
            walk_end: u64,
            vec: u64,
            vec_len: u64,
            max_pages: u64,
            category_inverted: u64,
            category_mask: u64,
            category_anyof_mask: u64,
            return_mask: u64,
        }

        // SAFETY: `PAGEMAP_SCAN` is `_IOWR('f', 16, struct pm_scan_arg)`; it returns the number of
        // regions that it has written.
        unsafe impl Ioctl for &mut Argument {
            type Output = usize;

            const IS_MUTATING: bool = true;

            fn opcode(&self) -> Opcode {
                opcode::read_write::<Argument>(b'f', 16)
            }

            fn as_ptr(&mut self) -> *mut c_void {
                (&raw mut **self).cast()
            }

            unsafe fn output_from_ptr(
                output: IoctlOutput,
                _: *mut c_void,
            ) -> rustix::io::Result<Self::Output> {
                Ok(usize::try_from(output).unwrap_or(0))
            }
        }

        pub fn query(file: &File, memory: &[u8]) -> io::Result<Vec<Pages>> {
            let first = memory.as_ptr().addr();
            let end = (first + memory.len()).next_multiple_of(PAGE) as u64;
            let mut regions = [Region { start: 0, end: 0, categories: 0 }; MAX_RANGES];
            let mut written: Vec<Pages> = Vec::new();
            let mut start = first as u64;
            while start < end {
                let mut argument = Argument {
                    size: size_of::<Argument>() as u64,
                    flags: 0,
                    start,
                    end,
                    walk_end: 0,
                    vec: regions.as_mut_ptr().addr() as u64,
                    vec_len: MAX_RANGES as u64,
                    max_pages: 0,
                    category_inverted: OF_FILE | ZERO,
                    category_mask: OF_FILE | ZERO,
                    category_anyof_mask: PRESENT | SWAPPED,
                    return_mask: 0,
                };
                // SAFETY: the kernel writes at most `vec_len` regions to `vec`, which has that length.
                let found = unsafe { ioctl(file, &mut argument)? };
                for region in &regions[..found] {
                    let page = |address: u64| (address as usize - first) / PAGE;
                    let (from, to) = (page(region.start), page(region.end));
                    match written.last_mut() {
                        Some(last) if last.end == from => last.end = to,
                        _ => written.push(from..to),
                    }
                }
                if argument.walk_end <= start {
                    return Err(io::Error::other("the scan makes no progress"));
                }
                start = argument.walk_end;
            }
            Ok(written)
        }
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::memory::{Image, MappingState};

        #[test]
        fn all_queries_agree() {
            let file = File::open("/proc/self/pagemap").unwrap();
            let mut mapping = Mapping::reserve(1 << 24, 0).unwrap();
            mapping.grow(1 << 24).unwrap();
            let mut expected = Vec::new();
            for page in (0..4_096).filter(|page| page % 3 < 2 && page % 7 < 5) {
                mapping.bytes_mut()[page * PAGE] = 1;
                push(&mut expected, page);
            }
            let by_reading = read(&file, mapping.bytes()).unwrap();
            assert_eq!(by_reading, expected);
            if let Ok(by_scanning) = scan::query(&file, mapping.bytes()) {
                assert_eq!(by_scanning, expected);
            }
        }

        #[test]
        fn committed_pages_are_not_private() {
            if format!("{:?}", super::super::current()) != "Linux" {
                return;
            }
            let size = 64 * PAGE;
            let mut image = Image::new();
            let mut mapping = image.map(size, 0).unwrap();
            mapping.grow(size).unwrap();
            for generation in 1..=3 {
                mapping.bytes_mut()[5 * PAGE..7 * PAGE].fill(generation);
                let written = Linux.written(mapping.bytes());
                assert_eq!((written.len(), written.first()), (1, Some(&(5..7))));
                let stored = image.store(mapping.bytes(), &written).unwrap();
                let claim = std::sync::Arc::clone(mapping.claim());
                let (memory, rights) = (mapping.bytes_mut(), Rights::ReadWrite);
                let state = image.show_stored(&stored, memory, &written, rights, &claim);
                assert_eq!(state, MappingState::Current);
                assert_eq!(Linux.written(mapping.bytes()), []);
                assert_eq!(mapping.bytes()[6 * PAGE], generation);
            }
        }

        #[test]
        fn discarded_pages_are_as_in_the_file() {
            let file = Linux.anonymous().unwrap();
            file.write_all_at(&[7; 3 * PAGE], 0).unwrap();
            let mut mapping = Mapping::reserve(4 * PAGE, 0).unwrap();
            mapping.grow(4 * PAGE).unwrap();
            Linux.show(mapping.bytes_mut(), 0..3, &file, 0, Rights::ReadWrite).unwrap();
            mapping.bytes_mut().fill(9);
            discard(mapping.bytes_mut(), 1..4).unwrap();
            let firsts: Vec<u8> = mapping.bytes().iter().copied().step_by(PAGE).collect();
            assert_eq!(firsts, [9, 7, 7, 0]);
        }

        #[test]
        #[should_panic(expected = "memories start at a page boundary")]
        fn only_whole_pages_are_discarded() {
            let mut mapping = Mapping::reserve(2 * PAGE, 0).unwrap();
            mapping.grow(2 * PAGE).unwrap();
            let _ = discard(&mut mapping.bytes_mut()[1..], 0..1);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::Mapping;

    /// A file whose pages are filled with their number, starting at 1.
    fn numbered(os: &dyn Os, pages: u8) -> File {
        let file = os.anonymous().unwrap();
        for page in 0..pages {
            file.write_all_at(&[page + 1; PAGE], u64::from(page) * PAGE as u64).unwrap();
        }
        file
    }

    fn mapping(pages: usize) -> Mapping {
        let mut mapping = Mapping::reserve(pages * PAGE, 0).unwrap();
        mapping.grow(pages * PAGE).unwrap();
        mapping
    }

    #[test]
    fn pages_of_a_file_are_shown_wherever_they_start() {
        for (name, os) in known() {
            let file = numbered(os, 100);
            for offset in [0, 1, 16] {
                for pages in [0..0, 3..4, 3..16, 16..32, 0..64, 15..49, 17..31, 40..64] {
                    let mut mapping = mapping(64);
                    mapping.bytes_mut().fill(255);
                    let at = offset * PAGE as u64;
                    os.show(mapping.bytes_mut(), pages.clone(), &file, at, Rights::ReadWrite)
                        .unwrap();
                    for (page, bytes) in mapping.bytes().chunks(PAGE).enumerate() {
                        let number = match pages.contains(&page) {
                            true => page as u8 + 1 + offset as u8,
                            false => 255,
                        };
                        assert!(
                            bytes.iter().all(|it| *it == number),
                            "{name} {offset} {pages:?} {page}"
                        );
                    }
                    mapping.bytes_mut().fill(9);
                    let mut first = [0; PAGE];
                    file.read_exact_at(&mut first, 16 * PAGE as u64).unwrap();
                    assert_eq!(first, [17; PAGE], "{name}: writes do not change the file");
                }
            }
        }
    }

    #[test]
    fn no_written_page_is_missing() {
        for (name, os) in known() {
            let mut mapping = mapping(128);
            let file = numbered(os, 64);
            os.show(mapping.bytes_mut(), 0..64, &file, 0, Rights::ReadWrite).unwrap();
            let expected = [0, 13, 63, 64, 127];
            for page in expected {
                mapping.bytes_mut()[page * PAGE + 5] = 200;
            }
            let written = os.written(mapping.bytes());
            for page in expected {
                assert!(written.iter().any(|range| range.contains(&page)), "{name}: {page}");
            }
        }
    }

    #[test]
    fn holes_are_not_present() {
        for (name, os) in known() {
            let file = os.anonymous().unwrap();
            file.set_len(1 << 24).unwrap();
            assert_eq!(present(&file, 0, 4_096).unwrap(), [], "{name}");
            // Blocks of file systems are not larger than a Wasm page.
            file.write_all_at(&[1; PAGE], 5 * WASM_PAGE).unwrap();
            let found = present(&file, WASM_PAGE, 3_000).unwrap();
            assert!(found.len() == 1 && found[0].contains(&64), "{name}: {found:?}");
            assert!(found[0].start >= 64 && found[0].end <= 80, "{name}: {found:?}");
            assert_eq!(present(&file, WASM_PAGE, 0).unwrap(), [], "{name}");
        }
    }

    #[test]
    fn the_last_choice_is_portable() {
        assert_eq!(known().last().map(|(name, _)| *name), Some("portable"));
        let error = UnknownOs("mac".into()).to_string();
        assert!(
            error.starts_with("the environment variable STABLEBENCH_MEMORY is \"mac\""),
            "{error}"
        );
        assert!(error.ends_with("portable"), "{error}");
    }
}
