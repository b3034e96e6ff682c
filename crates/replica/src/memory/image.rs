//! The committed content of a memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::mapping::{Mapping, PER_RANGE, Rights};
use super::os::{Committed, current, present};
use super::pages::{PAGE, Pages, bridged, common, push, union, without};
use super::space::{Claim, Word};
use super::touch::PageTracker;
use crate::units::WASM_PAGE;

/// Largest number of ranges of a layer. Each is a separate mapping, and the kernel limits those to
/// some ten thousand.
const MAX_RANGES: usize = 512;
/// Layers over the first one, for the same reason.
const MAX_LAYERS: usize = 8;
/// Pages read or written at once.
const CHUNK: usize = 256;
/// Mappings that a memory may claim beyond twice those of its image before it is mapped again: what
/// was mapped by many commits is in more parts than the image has.
const MAX_PARTS: usize = 1_024;

/// A file with some pages of a memory.
#[derive(Debug)]
struct Layer {
    file: File,
    /// Offset of the memory's first page in the file.
    offset: u64,
    writable: bool,
    /// Pages present, ascending and not adjacent.
    ranges: Vec<Pages>,
}

impl Layer {
    /// Creates an empty layer with its own file.
    fn new() -> io::Result<Self> {
        Ok(Self { file: current().anonymous()?, offset: 0, writable: true, ranges: Vec::new() })
    }
}

/// Committed pages of a memory, shared with the images forked from it. Pages in no layer are zero,
/// and take no space even if they are read.
#[derive(Clone, Debug, Default)]
pub struct Image {
    layers: Vec<Arc<Layer>>,
    size: usize,
}

/// Pages that a commit has stored, which a mapping does not show yet.
#[derive(Debug)]
pub struct Stored {
    /// Pages that are new in the top layer.
    new: Vec<Pages>,
    /// True if all files were replaced.
    replaced: bool,
}

/// State of a mapping after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum MappingState {
    /// The mapping shows the committed content and can be reused.
    Current,
    /// The mapping does not show the committed content.
    Stale,
}

impl Image {
    /// Creates an empty image.
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an image of `size` zeros, a multiple of the WebAssembly page size.
    pub fn zeros(size: usize) -> Self {
        Self { layers: Vec::new(), size }
    }

    /// Opens an image whose `size` bytes start at `offset` in a file, a multiple of the page size.
    /// The file is mapped, not read, and must not change.
    ///
    /// # Errors
    ///
    /// If the file is too short, or cannot be read.
    pub fn open(file: File, offset: u64, size: usize) -> io::Result<Self> {
        if file.metadata()?.len() < offset.saturating_add(size as u64) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is too short"));
        }
        let ranges = bridged(&present(&file, offset, size / PAGE)?, MAX_RANGES);
        let layer = Layer { file, offset, writable: false, ranges };
        Ok(Self { layers: vec![Arc::new(layer)], size })
    }

    /// Creates an image of the bytes, padded to a WebAssembly page.
    ///
    /// # Errors
    ///
    /// If the pages cannot be stored.
    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut image = Self::new();
        let size = bytes.len().next_multiple_of(WASM_PAGE as usize);
        let mut mapping = image.map(size, 0)?;
        mapping.grow(size)?;
        let mut ranges: Vec<Pages> = Vec::new();
        for (page, content) in bytes.chunks(PAGE).enumerate() {
            if content.iter().any(|byte| *byte != 0) {
                mapping.bytes_mut()[page * PAGE..][..content.len()].copy_from_slice(content);
                push(&mut ranges, page);
            }
        }
        image.store(mapping.bytes(), &ranges)?;
        Ok(image)
    }

    /// Returns the bytes of a range that is inside of the image.
    ///
    /// # Errors
    ///
    /// As [`Image::read`].
    pub fn bytes(&self, range: Range<usize>) -> io::Result<Vec<u8>> {
        let pages = range.start / PAGE..range.end.div_ceil(PAGE);
        let mut buffer = Vec::new();
        self.read(pages.clone(), &mut buffer)?;
        buffer.drain(..range.start - pages.start * PAGE);
        buffer.truncate(range.len());
        Ok(buffer)
    }

    /// Replaces bytes inside of the image.
    ///
    /// # Errors
    ///
    /// If the pages cannot be stored, because no memory is left. Some of the bytes may have been
    /// replaced then.
    pub fn write(&mut self, offset: usize, bytes: &[u8]) -> io::Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        let mut mapping = self.map(self.size, 0)?;
        let end = offset + bytes.len();
        mapping.bytes_mut()[offset..end].copy_from_slice(bytes);
        let pages = offset / PAGE..end.div_ceil(PAGE);
        self.store(mapping.bytes(), std::slice::from_ref(&pages))?;
        Ok(())
    }

    /// Size in bytes, a multiple of the WebAssembly page size.
    pub fn size(&self) -> usize {
        self.size
    }

    /// Maps the image into new address space of `reserved` bytes and a guard. Writes to the mapping
    /// do not change the image.
    ///
    /// # Errors
    ///
    /// If the system has no such address space.
    pub fn map(&self, reserved: usize, guard: usize) -> io::Result<Mapping> {
        let mut mapping = Mapping::reserve(reserved.max(self.size), guard)?;
        self.show_all(&mut mapping, Rights::ReadWrite)?;
        Ok(mapping)
    }

    /// Maps the image as [`Image::map`] does, and tracks which pages are touched. Charges are added to
    /// `charges`, if there are any.
    ///
    /// # Errors
    ///
    /// As [`Image::map`].
    pub fn map_tracked(
        &self,
        reserved: usize,
        guard: usize,
        charges: Option<Word>,
    ) -> io::Result<(Mapping, Arc<PageTracker>)> {
        let mut mapping = Mapping::reserve_to_track(reserved.max(self.size), guard)?;
        self.show_all(&mut mapping, Rights::None)?;
        let tracker = mapping.track(charges)?;
        Ok((mapping, tracker))
    }

    /// Makes the content of an empty mapping that of the image.
    fn show_all(&self, mapping: &mut Mapping, rights: Rights) -> io::Result<()> {
        mapping.claim().extend(self.mappings())?;
        mapping.grow(self.size)?;
        self.show(mapping.bytes_mut(), 0..self.size / PAGE, rights)
    }

    /// Mappings that showing the image can add.
    fn mappings(&self) -> usize {
        self.layers.iter().map(|layer| PER_RANGE * layer.ranges.len()).sum()
    }

    /// Makes `pages` of a mapping's usable bytes those of the image, except for pages in no layer:
    /// they keep their content.
    fn show(&self, memory: &mut [u8], pages: Pages, rights: Rights) -> io::Result<()> {
        for layer in &self.layers {
            for range in common(&layer.ranges, std::slice::from_ref(&pages)) {
                current().show(memory, range, &layer.file, layer.offset, rights)?;
            }
        }
        Ok(())
    }

    /// Undoes writes to `pages` of `memory`, the usable bytes of a mapping of this image with its
    /// size.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    pub fn restore(&self, memory: &mut [u8], pages: Pages) -> io::Result<()> {
        for zeros in without(std::slice::from_ref(&pages), &pages_in(&self.layers)) {
            memory[zeros.start * PAGE..zeros.end * PAGE].fill(0);
        }
        self.show(memory, pages, Rights::ReadWrite)
    }

    /// Reads committed pages; pages beyond the end are zero.
    ///
    /// # Errors
    ///
    /// Errors of reading a file. `OutOfMemory` if the pages do not fit into memory.
    pub fn read(&self, pages: Pages, buffer: &mut Vec<u8>) -> io::Result<()> {
        read_pages(&self.layers, pages, buffer)
    }

    /// Returns those of `pages` that differ in `memory`, which started as this image and may be
    /// longer.
    ///
    /// # Errors
    ///
    /// Errors of reading a file.
    pub fn changed(&self, memory: &[u8], pages: &[Pages]) -> io::Result<Vec<Pages>> {
        let mut changed = Vec::new();
        let mut before = Vec::new();
        for range in pages {
            for start in range.clone().step_by(CHUNK) {
                let part = start..range.end.min(start + CHUNK);
                self.read(part.clone(), &mut before)?;
                let after = memory[part.start * PAGE..part.end * PAGE].chunks_exact(PAGE);
                for (page, (before, after)) in part.zip(before.chunks_exact(PAGE).zip(after)) {
                    if before != after {
                        push(&mut changed, page);
                    }
                }
            }
        }
        Ok(changed)
    }

    /// Returns the pages that may differ from `base`, of which this is a fork. Returns `None` if
    /// this image no longer has the layers of `base`.
    pub fn changed_since(&self, base: &Self) -> Option<Vec<Pages>> {
        let (common, above) = self.layers.split_at_checked(base.layers.len())?;
        let same = common.iter().zip(&base.layers).all(|(one, other)| Arc::ptr_eq(one, other));
        same.then(|| pages_in(above))
    }

    /// Returns the pages whose content differs from that of `other`. Pages beyond the end are zero.
    ///
    /// # Errors
    ///
    /// Errors of reading a file.
    pub fn differing_from(&self, other: &Self) -> io::Result<Vec<Pages>> {
        let pairs = self.layers.iter().zip(&other.layers);
        let common = pairs.take_while(|(one, other)| Arc::ptr_eq(one, other)).count();
        // Below the layers of their own, both show the same pages.
        let own = |image: &Self| pages_in(&image.layers[common..]);
        let mut pages = Vec::new();
        self.differing(other, &union(&own(self), &own(other)), |page, _| push(&mut pages, page))?;
        Ok(pages)
    }

    /// Calls `visit` for those of `pages` that differ from `base`, in order.
    ///
    /// # Errors
    ///
    /// Errors of reading a file.
    pub fn differing(
        &self,
        base: &Self,
        pages: &[Pages],
        mut visit: impl FnMut(usize, &[u8]),
    ) -> io::Result<()> {
        let (mut now, mut before) = (Vec::new(), Vec::new());
        for range in pages {
            for start in range.clone().step_by(CHUNK) {
                let part = start..range.end.min(start + CHUNK);
                self.read(part.clone(), &mut now)?;
                base.read(part.clone(), &mut before)?;
                let both = now.chunks_exact(PAGE).zip(before.chunks_exact(PAGE));
                for (page, (now, before)) in part.zip(both) {
                    if now != before {
                        visit(page, now);
                    }
                }
            }
        }
        Ok(())
    }

    /// Commits the pages `changed` of `memory` and its size. `memory` are the usable bytes of a
    /// mapping of this image, which may have grown. Other pages are not read. Nothing is mapped, so
    /// this does not depend on the mappings that are left.
    ///
    /// # Errors
    ///
    /// If the pages cannot be stored, because no memory is left. The image must not be used then.
    pub fn store(&mut self, memory: &[u8], changed: &[Pages]) -> io::Result<Stored> {
        self.size = memory.len();
        if changed.is_empty() {
            return Ok(Stored { new: Vec::new(), replaced: false });
        }
        let mut replaced = false;
        if !self.top_is_own() {
            if self.layers.len() > MAX_LAYERS {
                self.flatten()?;
                replaced = true;
            } else {
                self.layers.push(Arc::new(Layer::new()?));
            }
        }
        let Some((top, below)) = self.layers.split_last_mut() else {
            return Err(io::Error::other("there is no layer"));
        };
        let top = Arc::get_mut(top).ok_or_else(|| io::Error::other("the top layer is shared"))?;
        let ranges = bridged(&union(&top.ranges, changed), MAX_RANGES);
        let new = without(&ranges, &top.ranges);
        // Pages that bridge a gap have not changed. Zeros are holes of the file, and are many.
        let bridges = without(&new, changed);
        let bridges = match bridges.is_empty() {
            true => bridges,
            false => common(&bridges, &present_in(below, self.size)?),
        };
        copy_pages(below, &bridges, &top.file, 0)?;
        write_all(&top.file, memory, changed)?;
        top.ranges = ranges;
        Ok(Stored { new, replaced })
    }

    /// Makes the mapping whose usable bytes are `memory` show what [`Image::store`] has stored from
    /// it, and drops its private copies of the pages `written`. `rights` applies to newly mapped
    /// pages. A mapping that cannot be changed is stale; the image is good in any case.
    pub fn show_stored(
        &self,
        stored: &Stored,
        memory: &mut [u8],
        written: &[Pages],
        rights: Rights,
        claim: &Claim,
    ) -> MappingState {
        let shown = !stored.replaced
            && self.try_to_show(stored, memory, written, rights, claim).is_ok()
            && claim.held() <= 2 * self.mappings() + MAX_PARTS;
        if shown { MappingState::Current } else { MappingState::Stale }
    }

    fn try_to_show(
        &self,
        stored: &Stored,
        memory: &mut [u8],
        written: &[Pages],
        rights: Rights,
        claim: &Claim,
    ) -> io::Result<()> {
        if let Some(top) = self.layers.last() {
            for range in &stored.new {
                current().share(memory, range.clone(), &top.file, rights, claim)?;
            }
        }
        current().forget(memory, &without(written, &stored.new))
    }

    fn top_is_own(&mut self) -> bool {
        self.layers.last_mut().and_then(Arc::get_mut).is_some_and(|layer| layer.writable)
    }

    /// Copies all layers into one that no other image shares.
    fn flatten(&mut self) -> io::Result<()> {
        let mut layer = Layer::new()?;
        let pages = self.present()?;
        layer.file.set_len(self.size as u64)?;
        copy_pages(&self.layers, &pages, &layer.file, 0)?;
        layer.ranges = bridged(&pages, MAX_RANGES);
        self.layers = vec![Arc::new(layer)];
        Ok(())
    }

    /// Writes the image to `file` at `offset`, leaving holes where it is zero.
    ///
    /// # Errors
    ///
    /// Errors of writing the file.
    pub fn save(&self, file: &File, offset: u64) -> io::Result<()> {
        let end = offset + self.size as u64;
        if file.metadata()?.len() < end {
            file.set_len(end)?;
        }
        copy_pages(&self.layers, &self.present()?, file, offset)
    }

    /// Returns the pages that may not be zero.
    fn present(&self) -> io::Result<Vec<Pages>> {
        present_in(&self.layers, self.size)
    }
}

/// The pages in any of the layers of `size` bytes that may not be zero. Reading the holes of the files
/// would be slow.
fn present_in(layers: &[Arc<Layer>], size: usize) -> io::Result<Vec<Pages>> {
    let mut pages = Vec::new();
    for layer in layers {
        let in_file = present(&layer.file, layer.offset, size / PAGE)?;
        pages = union(&pages, &common(&layer.ranges, &in_file));
    }
    Ok(pages)
}

/// The pages in any of the layers.
fn pages_in(layers: &[Arc<Layer>]) -> Vec<Pages> {
    layers.iter().fold(Vec::new(), |pages, layer| union(&pages, &layer.ranges))
}

/// Reads pages from layers; those in no layer are zero.
fn read_pages(layers: &[Arc<Layer>], pages: Pages, buffer: &mut Vec<u8>) -> io::Result<()> {
    buffer.clear();
    // Callers may choose the size.
    let size = pages.len().saturating_mul(PAGE);
    buffer.try_reserve_exact(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
    buffer.resize(size, 0);
    for layer in layers {
        let from = layer.ranges.partition_point(|range| range.end <= pages.start);
        for range in layer.ranges[from..].iter().take_while(|range| range.start < pages.end) {
            let (start, end) = (range.start.max(pages.start), range.end.min(pages.end));
            let bytes = (start - pages.start) * PAGE..(end - pages.start) * PAGE;
            let offset = layer.offset + (start * PAGE) as u64;
            layer.file.read_exact_at(&mut buffer[bytes], offset)?;
        }
    }
    Ok(())
}

/// Writes pages of layers to `file` at `offset`, except those that are zero.
fn copy_pages(layers: &[Arc<Layer>], pages: &[Pages], file: &File, offset: u64) -> io::Result<()> {
    let mut buffer = Vec::new();
    for range in pages {
        for start in range.clone().step_by(CHUNK) {
            let part = start..range.end.min(start + CHUNK);
            read_pages(layers, part, &mut buffer)?;
            if buffer.iter().any(|byte| *byte != 0) {
                file.write_all_at(&buffer, offset + (start * PAGE) as u64)?;
            }
        }
    }
    Ok(())
}

impl Committed for Image {
    fn read(&self, pages: Pages, buffer: &mut Vec<u8>) -> io::Result<()> {
        self.read(pages, buffer)
    }

    fn restore(&self, memory: &mut [u8], pages: Pages) -> io::Result<()> {
        self.restore(memory, pages)
    }
}

fn write_all(file: &File, memory: &[u8], pages: &[Pages]) -> io::Result<()> {
    for range in pages {
        let bytes = range.start * PAGE..range.end * PAGE;
        file.write_all_at(&memory[bytes.clone()], bytes.start as u64)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(byte: u8) -> Vec<u8> {
        vec![byte; PAGE]
    }

    fn commit(image: &mut Image, pages: &[(usize, u8)], size: usize) {
        let (state, mapping) = fill(image, pages, size);
        if state == MappingState::Current {
            assert_eq!(mapping.bytes(), whole(image), "the mapping shows the image");
        }
    }

    fn fill(image: &mut Image, pages: &[(usize, u8)], size: usize) -> (MappingState, Mapping) {
        let mut mapping = image.map(size, 0).unwrap();
        mapping.grow(size).unwrap();
        for (index, byte) in pages {
            mapping.bytes_mut()[index * PAGE..][..PAGE].fill(*byte);
        }
        let mut ranges = Vec::new();
        pages.iter().for_each(|(index, _)| push(&mut ranges, *index));
        let stored = image.store(mapping.bytes(), &ranges).unwrap();
        let claim = Arc::clone(mapping.claim());
        let (memory, rights) = (mapping.bytes_mut(), Rights::ReadWrite);
        let state = image.show_stored(&stored, memory, &ranges, rights, &claim);
        (state, mapping)
    }

    fn whole(image: &Image) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.read(0..image.size / PAGE, &mut bytes).unwrap();
        assert_eq!(image.map(0, 0).unwrap().bytes(), bytes, "reading and mapping agree");
        bytes
    }

    #[test]
    fn forks_do_not_see_each_other() {
        let size = 16 * PAGE;
        let mut one = Image::new();
        commit(&mut one, &[(0, 1), (5, 2)], size);
        let mut two = one.clone();
        commit(&mut two, &[(5, 3)], size);
        commit(&mut one, &[(6, 4)], size * 2);
        commit(&mut two, &[(0, 5)], size);
        let (one, two) = (whole(&one), whole(&two));
        assert_eq!((one.len(), two.len()), (size * 2, size));
        let at = |bytes: &[u8], index: usize| bytes[index * PAGE..][..PAGE].to_vec();
        assert_eq!([at(&one, 0), at(&one, 5), at(&one, 6)], [page(1), page(2), page(4)]);
        assert_eq!([at(&two, 0), at(&two, 5), at(&two, 6)], [page(5), page(3), page(0)]);
    }

    #[test]
    fn bytes_are_written_into_zeros() {
        let size = 65_536 * 2;
        let mut image = Image::zeros(size);
        assert_eq!(whole(&image), vec![0; size]);
        image.write(PAGE - 2, b"across").unwrap();
        image.write(size - 3, b"end").unwrap();
        image.write(size, b"").unwrap();
        let fork = image.clone();
        image.write(PAGE, b"fork").unwrap();
        assert_eq!(fork.bytes(PAGE - 3..PAGE + 5).unwrap(), b"\0across\0");
        assert_eq!(image.bytes(PAGE - 3..PAGE + 5).unwrap(), b"\0acfork\0");
        assert_eq!(image.bytes(size - 3..size).unwrap(), b"end");
        assert_eq!(image.bytes(size..size).unwrap(), b"");
        let mut expected = vec![0; size];
        expected[PAGE - 2..][..6].copy_from_slice(b"acfork");
        expected[size - 3..].copy_from_slice(b"end");
        assert_eq!(whole(&image), expected);
    }

    #[test]
    fn scattered_pages_are_bridged() {
        let size = 65_536 * 256;
        let mut image = Image::new();
        let first: Vec<(usize, u8)> = (0..4_096).map(|page| (page, 9)).collect();
        commit(&mut image, &first, size);
        let fork = image.clone();
        let scattered: Vec<(usize, u8)> = (0..3 * MAX_RANGES).map(|i| (i * i % 4_093, 7)).collect();
        let mut scattered: Vec<(usize, u8)> = scattered;
        scattered.sort_unstable();
        scattered.dedup();
        commit(&mut image, &scattered, size);
        assert_eq!(image.layers.len(), 2);
        assert!(image.layers[1].ranges.len() <= MAX_RANGES);
        // Bridging pages are in the layer that covers them now.
        commit(&mut image, &[(4_095, 8)], size);
        let (new, old) = (whole(&image), whole(&fork));
        for page in 0..4_096 {
            let expected = match scattered.iter().any(|(index, _)| *index == page) {
                _ if page == 4_095 => 8,
                true => 7,
                false => 9,
            };
            assert_eq!((new[page * PAGE], old[page * PAGE]), (expected, 9), "page {page}");
        }
    }

    #[test]
    fn a_long_chain_of_forks_is_flattened() {
        let size = 16 * PAGE;
        let mut image = Image::new();
        let mut forks = Vec::new();
        for generation in 0..3 * MAX_LAYERS {
            commit(&mut image, &[(generation % 16, generation as u8 + 1)], size);
            forks.push((image.clone(), whole(&image)));
            assert!(image.layers.len() <= MAX_LAYERS + 1);
        }
        for (fork, expected) in forks {
            assert_eq!(whole(&fork), expected);
        }
    }

    #[test]
    fn changed_pages_are_those_that_differ() {
        let size = 600 * PAGE;
        let mut image = Image::new();
        commit(&mut image, &[(1, 1), (299, 2)], size);
        let fork = image.clone();
        commit(&mut image, &[(300, 3)], size);
        let mut mapping = image.map(2 * size, 0).unwrap();
        mapping.grow(2 * size).unwrap();
        for (page, byte) in [(1, 1), (299, 9), (300, 3), (301, 0), (700, 0), (701, 5)] {
            mapping.bytes_mut()[page * PAGE] = byte;
        }
        let written = current().written(mapping.bytes());
        assert_eq!(image.changed(mapping.bytes(), &written).unwrap(), [299..300, 701..702]);
        let all: Vec<Pages> = std::iter::once(0..1_200).collect();
        assert_eq!(fork.changed(mapping.bytes(), &all).unwrap(), [299..301, 701..702]);
    }

    /// A gigabyte with one page at its end, which a complete copy would fill.
    #[test]
    #[cfg(target_os = "linux")]
    fn flattening_leaves_holes() {
        use std::os::unix::fs::MetadataExt;
        let pages = (1 << 30) / PAGE;
        let mut image = Image::new();
        let _ = fill(&mut image, &[(pages - 1, 5)], pages * PAGE);
        let fork = image.clone();
        let _ = fill(&mut image, &[(7, 6)], pages * PAGE);
        image.flatten().unwrap();
        for image in [&image, &fork] {
            let held = image.layers[0].file.metadata().unwrap().blocks() * 512;
            assert!(held <= 2 * 256 * PAGE as u64, "{held} bytes");
        }
        let (new, old) = (image.map(0, 0).unwrap(), fork.map(0, 0).unwrap());
        assert_eq!((new.bytes()[7 * PAGE], new.bytes()[(pages - 1) * PAGE]), (6, 5));
        assert_eq!(old.bytes()[7 * PAGE], 0);
    }

    /// A gigabyte is read, of which two pages were written.
    #[test]
    #[cfg(target_os = "linux")]
    fn reading_pages_that_were_never_written_takes_no_space() {
        use std::os::unix::fs::MetadataExt;
        let pages = (1 << 30) / PAGE;
        let mut image = Image::zeros(pages * PAGE);
        let (_, mapping) = fill(&mut image, &[(7, 5), (pages - 1, 6)], pages * PAGE);
        for mapping in [&mapping, &image.map(0, 0).unwrap()] {
            let firsts = mapping.bytes().iter().step_by(PAGE);
            assert_eq!(firsts.map(|byte| u64::from(*byte)).sum::<u64>(), 5 + 6);
        }
        assert_eq!(image.layers[0].file.metadata().unwrap().blocks() * 512, 2 * PAGE as u64);
    }

    #[test]
    fn an_image_can_be_saved_and_opened() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let create =
            || File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut image = Image::new();
        commit(&mut image, &[(3, 8)], 16 * PAGE);
        image.save(&create().unwrap(), PAGE as u64).unwrap();
        let mut opened = Image::open(create().unwrap(), PAGE as u64, 16 * PAGE).unwrap();
        assert_eq!(whole(&opened), whole(&image));
        commit(&mut opened, &[(3, 1)], 16 * PAGE);
        assert_eq!(whole(&opened)[3 * PAGE], 1);
        assert_eq!(std::fs::read(&path).unwrap()[4 * PAGE], 8, "the file is not written");
        assert!(Image::open(create().unwrap(), PAGE as u64, 17 * PAGE).is_err());
    }

    /// Bytes after a memory in its file do not belong to it, even if it grows.
    #[test]
    fn an_opened_image_grows_with_zeros() {
        let file = current().anonymous().unwrap();
        file.write_all_at(&[7; 6 * PAGE], 0).unwrap();
        let mut image = Image::open(file, PAGE as u64, 2 * PAGE).unwrap();
        commit(&mut image, &[(0, 9)], 5 * PAGE);
        let fork = image.clone();
        commit(&mut image, &[(4, 1)], 8 * PAGE);
        image.flatten().unwrap();
        for (image, pages) in [(&fork, &[9, 7, 0, 0, 0][..]), (&image, &[9, 7, 0, 0, 1, 0, 0, 0])] {
            let found: Vec<u8> = whole(image).into_iter().step_by(PAGE).collect();
            assert_eq!(found, pages);
        }
    }

    #[test]
    fn undoing_restores_every_layer() {
        let size = 64 * PAGE;
        let mut image = Image::new();
        commit(&mut image, &[(1, 1), (20, 2), (35, 3)], 48 * PAGE);
        let _fork = image.clone();
        commit(&mut image, &[(20, 4), (50, 5)], size);
        let expected = whole(&image);
        let mut mapping = image.map(size, 0).unwrap();
        let scattered: Vec<Pages> = (0..64).step_by(2).map(|page| page..page + 1).collect();
        let wasm_pages: Vec<Pages> = vec![0..16, 32..64];
        let all: Vec<Pages> = std::iter::once(0..64).collect();
        for written in [scattered, wasm_pages, all] {
            for range in &written {
                mapping.bytes_mut()[range.start * PAGE..range.end * PAGE].fill(9);
            }
            current().undo(mapping.bytes_mut(), &written, &image).unwrap();
            assert_eq!(mapping.bytes(), expected, "{written:?}");
        }
    }
}
