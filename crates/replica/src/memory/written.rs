//! Finds the pages of a mapping that were written.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use super::pages::{Pages, push};
use super::{Mapping, PAGE};

/// The pages of a mapping that may have been written since it was made, ascending. A
/// page that was not written may be among them, a written one is never missing.
pub fn written_pages(memory: &[u8]) -> Vec<Pages> {
    static PAGE_MAP: OnceLock<Option<(File, Ask)>> = OnceLock::new();
    let ask = |file: &File, ask: &Ask| ask(file, memory).ok();
    PAGE_MAP
        .get_or_init(open_page_map)
        .as_ref()
        .and_then(|(file, how)| ask(file, how))
        .unwrap_or_else(|| std::iter::once(0..memory.len().div_ceil(PAGE)).collect())
}

type Ask = fn(&File, &[u8]) -> io::Result<Vec<Pages>>;

/// Opens the page map if the kernel's pages are ours in size and the map tells
/// a written page from an untouched one; both differ among systems.
fn open_page_map() -> Option<(File, Ask)> {
    if rustix::param::page_size() != PAGE {
        return None;
    }
    let file = File::open("/proc/self/pagemap").ok()?;
    let ways: [Ask; 2] = [scan::ask, read];
    let way = ways.into_iter().find(|ask| probe(&file, *ask) == Some(true))?;
    Some((file, way))
}

/// Tries a way on four pages of a file, of which the third is written.
fn probe(page_map: &File, ask: Ask) -> Option<bool> {
    let file = super::file::anonymous().ok()?;
    file.set_len(4 * PAGE as u64).ok()?;
    file.write_all_at(&[1; 4 * PAGE], 0).ok()?;
    let mut mapping = Mapping::reserve(4 * PAGE, 0).ok()?;
    mapping.extend_with(&file, 0, 4 * PAGE).ok()?;
    // Reads first, so that the file's pages are present and must be told apart.
    let sum: u32 = mapping.bytes().iter().step_by(PAGE).map(|byte| u32::from(*byte)).sum();
    mapping.bytes_mut()[2 * PAGE] = sum as u8;
    Some(ask(page_map, mapping.bytes()).ok()?.iter().eq(std::iter::once(&(2..3))))
}

/// Reads what `/proc/self/pagemap` has on each page, eight bytes: bit 63 (present) or 62
/// (swapped) is set and bit 61 (still the file's page) is clear where the page is the
/// mapping's own.
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

/// Asks the kernel for ranges of such pages; Linux can since 6.7. It skips what was never
/// touched, so the time depends on the pages in use, not on the size.
#[cfg(target_os = "linux")]
#[expect(unsafe_code, reason = "the kernel is given the address of where to answer")]
mod scan {
    use std::ffi::c_void;
    use std::fs::File;
    use std::io;

    use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, ioctl, opcode};

    use super::super::PAGE;
    use super::super::pages::Pages;

    const OF_FILE: u64 = 1 << 2;
    const PRESENT: u64 = 1 << 3;
    const SWAPPED: u64 = 1 << 4;
    const ZERO: u64 = 1 << 5;
    /// Ranges that one call answers.
    const MOST: usize = 512;

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

    // SAFETY: `PAGEMAP_SCAN` is `_IOWR('f', 16, struct pm_scan_arg)`; it answers how many
    // regions it has written.
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

    pub fn ask(file: &File, memory: &[u8]) -> io::Result<Vec<Pages>> {
        let first = memory.as_ptr().addr();
        let end = (first + memory.len()).next_multiple_of(PAGE) as u64;
        let mut regions = [Region { start: 0, end: 0, categories: 0 }; MOST];
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
                vec_len: MOST as u64,
                max_pages: 0,
                category_inverted: OF_FILE | ZERO,
                category_mask: OF_FILE | ZERO,
                category_anyof_mask: PRESENT | SWAPPED,
                return_mask: 0,
            };
            // SAFETY: the kernel writes at most `vec_len` regions to `vec`, which has as many.
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
                return Err(io::Error::other("the scan does not move on"));
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

    pub fn ask(_: &File, _: &[u8]) -> io::Result<Vec<Pages>> {
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
        let shown = image.commit(mapping.bytes_mut(), &all, &all, Rights::ReadWrite).unwrap();
        assert_eq!(shown, super::super::Shown::Yes);

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
    fn all_ways_agree() {
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
        if let Ok(by_asking) = scan::ask(&file, mapping.bytes()) {
            assert_eq!(by_asking, expected);
        }
    }
}
