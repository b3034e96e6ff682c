//! Finds the pages of a mapping that were written.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;

use super::{Mapping, PAGE};

/// Indices of the pages that may have been written since the mapping was made,
/// ascending. A page that was not written may be among them, a written one is
/// never missing.
pub fn written_pages(memory: &[u8]) -> Vec<usize> {
    from_page_map(memory).unwrap_or_else(|| (0..memory.len().div_ceil(PAGE)).collect())
}

/// Asks the kernel which pages are the mapping's own: in `/proc/self/pagemap`,
/// eight bytes a page, bit 63 (present) or 62 (swapped) is set and bit 61 (still
/// the file's page) is clear.
fn from_page_map(memory: &[u8]) -> Option<Vec<usize>> {
    const PRESENT_OR_SWAPPED: u64 = 0b11 << 62;
    const OF_FILE: u64 = 1 << 61;
    const ENTRY: usize = 8;
    const CHUNK: usize = 4_096;
    static PAGE_MAP: OnceLock<Option<File>> = OnceLock::new();
    let file = PAGE_MAP.get_or_init(open_page_map).as_ref()?;

    let first = memory.as_ptr().addr() / PAGE;
    let pages = memory.len().div_ceil(PAGE);
    let mut written = Vec::new();
    let mut buffer = vec![0; CHUNK.min(pages) * ENTRY];
    for start in (0..pages).step_by(CHUNK) {
        let entries = &mut buffer[..CHUNK.min(pages - start) * ENTRY];
        file.read_exact_at(entries, ((first + start) * ENTRY) as u64).ok()?;
        for (page, entry) in (start..).zip(entries.chunks_exact(ENTRY)) {
            let entry = u64::from_ne_bytes(entry.try_into().ok()?);
            if entry & PRESENT_OR_SWAPPED != 0 && entry & OF_FILE == 0 {
                written.push(page);
            }
        }
    }
    Some(written)
}

/// Opens the page map if the kernel's pages are ours in size and the map tells
/// a written page from an untouched one; both differ among systems.
fn open_page_map() -> Option<File> {
    if rustix::param::page_size() != PAGE {
        return None;
    }
    let file = File::open("/proc/self/pagemap").ok()?;
    probe(&file)?.then_some(file)
}

fn probe(page_map: &File) -> Option<bool> {
    use super::mapping::Access;
    let file = super::file::anonymous().ok()?;
    file.set_len(4 * PAGE as u64).ok()?;
    file.write_all_at(&[1; 4 * PAGE], 0).ok()?;
    let mut mapping = Mapping::reserve(Access::Private, 4 * PAGE, 0).ok()?;
    mapping.extend_with(&file, 0, 4 * PAGE).ok()?;
    // Reads first, so that the file's pages are present and must be told apart.
    let sum: u32 = mapping.bytes().iter().step_by(PAGE).map(|byte| u32::from(*byte)).sum();
    mapping.bytes_mut()[2 * PAGE] = sum as u8;
    let own = |page: usize| {
        let mut entry = [0; 8];
        let at = (mapping.as_ptr().addr() / PAGE + page) * 8;
        page_map.read_exact_at(&mut entry, at as u64).ok()?;
        let entry = u64::from_ne_bytes(entry);
        Some(entry >> 62 != 0 && entry >> 61 & 1 == 0)
    };
    Some(!own(0)? && !own(1)? && own(2)? && !own(3)?)
}

#[cfg(test)]
mod tests {
    use super::super::Image;
    use super::*;

    #[test]
    fn no_written_page_is_missing() {
        let mut image = Image::new().unwrap();
        let size = 64 * PAGE;
        image.commit(&vec![7; size], &(0..64).collect::<Vec<_>>()).unwrap();
        let mut mapping = image.map(2 * size, 0).unwrap();
        mapping.grow(2 * size).unwrap();
        for page in [0, 13, 63, 64, 127] {
            mapping.bytes_mut()[page * PAGE + 5] = 1;
        }
        let written = written_pages(mapping.bytes());
        for page in [0, 13, 63, 64, 127] {
            assert!(written.contains(&page), "page {page} of {written:?}");
        }
    }
}
