//! Finds the pages of a mapping that were written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use super::image::anonymous;
use super::mapping::Mapping;
use super::pages::{PAGE, Pages, push};

/// Returns the pages of a mapping that may have been written since it was created, ascending. The
/// result may include pages that were not written, but never misses a written one.
pub fn written_pages(memory: &[u8]) -> Vec<Pages> {
    static PAGE_MAP: OnceLock<Option<(File, Query)>> = OnceLock::new();
    let run = |file: &File, query: &Query| query(file, memory).ok();
    PAGE_MAP
        .get_or_init(open_page_map)
        .as_ref()
        .and_then(|(file, query)| run(file, query))
        .unwrap_or_else(|| std::iter::once(0..memory.len().div_ceil(PAGE)).collect())
}

type Query = fn(&File, &[u8]) -> io::Result<Vec<Pages>>;

/// Opens the page map if the kernel's page size is ours and the map distinguishes written pages from
/// untouched ones. Both differ among systems.
fn open_page_map() -> Option<(File, Query)> {
    if rustix::param::page_size() != PAGE {
        return None;
    }
    let file = File::open("/proc/self/pagemap").ok()?;
    let queries: [Query; 2] = [scan::query, read];
    let query = queries.into_iter().find(|query| probe(&file, *query) == Some(true))?;
    Some((file, query))
}

/// Tries a query on four pages of a file, of which the third is written.
fn probe(page_map: &File, query: Query) -> Option<bool> {
    let file = anonymous().ok()?;
    file.set_len(4 * PAGE as u64).ok()?;
    file.write_all_at(&[1; 4 * PAGE], 0).ok()?;
    let mut mapping = Mapping::reserve(4 * PAGE, 0).ok()?;
    mapping.extend_with(&file, 0, 4 * PAGE).ok()?;
    // Read first, so that the file's pages are present.
    let sum: u32 = mapping.bytes().iter().step_by(PAGE).map(|byte| u32::from(*byte)).sum();
    mapping.bytes_mut()[2 * PAGE] = sum as u8;
    Some(query(page_map, mapping.bytes()).ok()?.iter().eq(std::iter::once(&(2..3))))
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
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "passes the kernel the address of the result")]
mod scan {
    use std::ffi::c_void;
    use std::fs::File;
    use std::io;

    use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

    use super::super::pages::{PAGE, Pages};

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

#[cfg(not(target_os = "linux"))]
mod scan {
    use std::fs::File;
    use std::io;

    use super::super::pages::Pages;

    pub fn query(_: &File, _: &[u8]) -> io::Result<Vec<Pages>> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Image, Rights};
    use super::*;

    #[test]
    fn no_written_page_is_missing() {
        let size = 64 * PAGE;
        let mut image = Image::new().unwrap();
        let mut mapping = image.map(size, 0).unwrap();
        mapping.grow(size).unwrap();
        mapping.bytes_mut().fill(7);
        let all: Vec<Pages> = std::iter::once(0..64).collect();
        let state = image.commit(mapping.bytes_mut(), &all, &all, Rights::ReadWrite).unwrap();
        assert_eq!(state, super::super::MappingState::Current);

        let mut mapping = image.map(2 * size, 0).unwrap();
        mapping.grow(2 * size).unwrap();
        let expected = [0, 13, 63, 64, 127];
        for page in expected {
            mapping.bytes_mut()[page * PAGE + 5] = 1;
        }
        let written = written_pages(mapping.bytes());
        for page in expected {
            assert!(written.iter().any(|range| range.contains(&page)), "{page} of {written:?}");
        }
    }

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
}
