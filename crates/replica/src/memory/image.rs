//! The committed content of a memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::mapping::{Mapping, Rights};
use super::os::{current, present};
use super::pages::{PAGE, Pages, bridged, common, push, union, without};
use crate::units::WASM_PAGE;

/// Largest number of ranges of a layer. Each is a separate mapping, and the kernel limits those to
/// some ten thousand.
const MAX_RANGES: usize = 512;
/// Layers over the first one, for the same reason.
const MAX_LAYERS: usize = 8;
/// Pages read or written at once.
const CHUNK: usize = 256;

/// A file of pages. The first layer of an image has all pages, a layer above it only those in
/// `ranges`.
#[derive(Debug)]
struct Layer {
    file: File,
    /// Offset of the first page in the file.
    offset: u64,
    /// Bytes from there on that belong to the memory; others may follow.
    length: usize,
    writable: bool,
    /// Pages present, ascending and not adjacent.
    ranges: Vec<Pages>,
}

impl Layer {
    /// Creates an empty layer with its own file.
    fn new() -> io::Result<Self> {
        let file = current().anonymous()?;
        Ok(Self { file, offset: 0, length: usize::MAX, writable: true, ranges: Vec::new() })
    }
}

/// Committed pages of a memory, shared with the images forked from it.
#[derive(Clone, Debug)]
pub struct Image {
    layers: Vec<Arc<Layer>>,
    size: usize,
}

/// State of a mapping after a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum MappingState {
    /// The mapping shows the committed content and can be reused.
    Current,
    /// The image uses other files now.
    Stale,
}

impl Image {
    /// Creates an empty image.
    ///
    /// # Errors
    ///
    /// If no file can be created.
    pub fn new() -> io::Result<Self> {
        Ok(Self { layers: vec![Arc::new(Layer::new()?)], size: 0 })
    }

    /// Opens an image whose `size` bytes start at `offset` in a file, a multiple of the page size.
    /// The file is mapped, not read, and must not change.
    ///
    /// # Errors
    ///
    /// If the file is too short.
    pub fn open(file: File, offset: u64, size: usize) -> io::Result<Self> {
        if file.metadata()?.len() < offset.saturating_add(size as u64) {
            return Err(io::Error::new(io::ErrorKind::UnexpectedEof, "the file is too short"));
        }
        let layer = Layer { file, offset, length: size, writable: false, ranges: Vec::new() };
        Ok(Self { layers: vec![Arc::new(layer)], size })
    }

    /// Creates an image of the bytes, padded to a WebAssembly page. Pages of zeros take no space.
    ///
    /// # Errors
    ///
    /// If the pages cannot be stored.
    pub fn from_bytes(bytes: &[u8]) -> io::Result<Self> {
        let mut image = Self::new()?;
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
        let _ = image.commit(mapping.bytes_mut(), &ranges, &ranges, Rights::ReadWrite)?;
        Ok(image)
    }

    /// Creates an image of `size` zeros, a multiple of the WebAssembly page size, which take no
    /// space.
    ///
    /// # Errors
    ///
    /// If no file can be created.
    pub fn zeros(size: usize) -> io::Result<Self> {
        let layer = Layer::new()?;
        layer.file.set_len(size as u64)?;
        Ok(Self { layers: vec![Arc::new(layer)], size })
    }

    /// Returns the bytes of a range that is inside of the image.
    ///
    /// # Errors
    ///
    /// Errors of reading a file.
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
        let pages = std::slice::from_ref(&pages);
        let _ = self.commit(mapping.bytes_mut(), pages, pages, Rights::ReadWrite)?;
        Ok(())
    }

    /// Size in bytes, a multiple of the WebAssembly page size.
    pub fn size(&self) -> usize {
        self.size
    }

    fn layers(&self) -> (&Layer, &[Arc<Layer>]) {
        let (first, above) = self.layers.split_first().unwrap_or_else(|| unreachable!());
        (first, above)
    }

    /// Maps the image into new address space of `reserved` bytes and a guard. Writes to the mapping
    /// do not change the image.
    ///
    /// # Errors
    ///
    /// If the system has no such address space.
    pub fn map(&self, reserved: usize, guard: usize) -> io::Result<Mapping> {
        let mut mapping = Mapping::reserve(reserved.max(self.size), guard)?;
        mapping.grow(self.size)?;
        self.show(mapping.bytes_mut(), 0..self.size / PAGE)?;
        Ok(mapping)
    }

    /// Makes `pages` of a mapping's usable bytes those of the image, except for pages of which no
    /// layer has anything: they keep their content.
    fn show(&self, memory: &mut [u8], pages: Pages) -> io::Result<()> {
        let (first, above) = self.layers();
        let below = pages.start..pages.end.min(self.first_pages()?);
        if !below.is_empty() {
            current().show(memory, below, &first.file, first.offset)?;
        }
        for layer in above {
            for range in common(&layer.ranges, std::slice::from_ref(&pages)) {
                current().show(memory, range, &layer.file, 0)?;
            }
        }
        Ok(())
    }

    /// Number of pages in the first layer.
    fn first_pages(&self) -> io::Result<usize> {
        let (first, _) = self.layers();
        let in_file = first.file.metadata()?.len().saturating_sub(first.offset);
        let in_file = usize::try_from(in_file).unwrap_or(usize::MAX);
        Ok(self.size.min(first.length).min(in_file) / PAGE)
    }

    /// Undoes writes to `pages` of `memory`, the usable bytes of a mapping of this image with its
    /// size.
    ///
    /// # Errors
    ///
    /// If the system returns an error.
    pub fn restore(&self, memory: &mut [u8], pages: Pages) -> io::Result<()> {
        let zeros = pages.start.max(self.first_pages()?.min(pages.end))..pages.end;
        memory[zeros.start * PAGE..zeros.end * PAGE].fill(0);
        self.show(memory, pages)
    }

    /// Reads committed pages; pages beyond the end are zero.
    ///
    /// # Errors
    ///
    /// Errors of reading a file.
    pub fn read(&self, pages: Pages, buffer: &mut Vec<u8>) -> io::Result<()> {
        buffer.clear();
        buffer.resize(pages.len() * PAGE, 0);
        let (first, above) = self.layers();
        let end = self.size.min(first.length).min(pages.end * PAGE);
        if let Some(length) = end.checked_sub(pages.start * PAGE) {
            let offset = first.offset + (pages.start * PAGE) as u64;
            read_or_zero(&first.file, &mut buffer[..length], offset)?;
        }
        for layer in above {
            let from = layer.ranges.partition_point(|range| range.end <= pages.start);
            for range in layer.ranges[from..].iter().take_while(|range| range.start < pages.end) {
                let (start, end) = (range.start.max(pages.start), range.end.min(pages.end));
                let bytes = (start - pages.start) * PAGE..(end - pages.start) * PAGE;
                layer.file.read_exact_at(&mut buffer[bytes], (start * PAGE) as u64)?;
            }
        }
        Ok(())
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
        let pages = |above: &[Arc<Layer>]| {
            above.iter().fold(Vec::new(), |pages, layer| union(&pages, &layer.ranges))
        };
        same.then(|| pages(above))
    }

    /// Returns the pages whose content differs from that of `other`. Pages beyond the end are zero.
    ///
    /// # Errors
    ///
    /// Errors of reading a file.
    pub fn differing_from(&self, other: &Self) -> io::Result<Vec<Pages>> {
        let pairs = self.layers.iter().zip(&other.layers);
        let common = pairs.take_while(|(one, other)| Arc::ptr_eq(one, other)).count();
        let whole = 0..self.size.max(other.size).div_ceil(PAGE);
        // Below the layers of their own, both show the same pages.
        let own = |image: &Self| match image.layers.get(common..) {
            Some(above) if common > 0 => {
                above.iter().fold(Vec::new(), |pages, layer| union(&pages, &layer.ranges))
            }
            _ => vec![whole.clone()],
        };
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
    /// mapping of this image, which may have grown. Only pages in `written` were written to, and
    /// `changed` is a subset of them. Other pages are not read. `rights` applies to newly mapped
    /// pages. Returns whether the mapping can be reused.
    ///
    /// # Errors
    ///
    /// If the pages cannot be stored, because no memory is left. The image must not be used then.
    pub fn commit(
        &mut self,
        memory: &mut [u8],
        written: &[Pages],
        changed: &[Pages],
        rights: Rights,
    ) -> io::Result<MappingState> {
        let before = self.size / PAGE;
        self.size = memory.len();
        let now = self.size / PAGE;
        if changed.is_empty() && before == now {
            current().forget(memory, written)?;
            return Ok(MappingState::Current);
        }
        let mut state = MappingState::Current;
        if !self.top_is_own() {
            if self.layers.len() > MAX_LAYERS {
                self.flatten()?;
                state = MappingState::Stale;
            } else {
                self.layers.push(Arc::new(Layer::new()?));
            }
        }
        let Some(last) = self.layers.last() else {
            return Err(io::Error::other("there is no layer"));
        };
        let ranges = bridged(&union(&last.ranges, changed), MAX_RANGES);
        let lacking = without(&ranges, &last.ranges);
        // Pages that bridge a gap have not changed, but are missing in the top layer's file.
        let bridges = without(&lacking, changed);
        let is_first = self.layers.len() == 1;
        if !is_first {
            self.copy_pages(&bridges, &last.file, 0)?;
        }
        let Some(top) = self.layers.last_mut().and_then(Arc::get_mut) else {
            return Err(io::Error::other("the top layer is shared"));
        };
        if is_first {
            // The file has the whole memory, so it is written in place.
            write_all(&top.file, memory, changed)?;
            if top.file.metadata()?.len() < self.size as u64 {
                top.file.set_len(self.size as u64)?;
            }
            if state == MappingState::Current {
                current().share(memory, before..now, &top.file, rights)?;
                current().forget(memory, written)?;
            }
        } else {
            write_all(&top.file, memory, changed)?;
            top.ranges = ranges;
            let taken = union(changed, &lacking);
            for range in &taken {
                current().share(memory, range.clone(), &top.file, rights)?;
            }
            current().forget(memory, &without(written, &taken))?;
        }
        Ok(state)
    }

    fn top_is_own(&mut self) -> bool {
        self.layers.last_mut().and_then(Arc::get_mut).is_some_and(|layer| layer.writable)
    }

    /// Copies all layers into one that no other image shares.
    fn flatten(&mut self) -> io::Result<()> {
        let layer = Layer::new()?;
        layer.file.set_len(self.size as u64)?;
        self.copy_into(&layer.file, 0)?;
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
        self.copy_into(file, offset)
    }

    fn copy_into(&self, file: &File, offset: u64) -> io::Result<()> {
        self.copy_pages(&self.present()?, file, offset)
    }

    /// Writes pages to `file` at `offset`, except those that are zero.
    fn copy_pages(&self, pages: &[Pages], file: &File, offset: u64) -> io::Result<()> {
        let mut buffer = Vec::new();
        for range in pages {
            for start in range.clone().step_by(CHUNK) {
                let part = start..range.end.min(start + CHUNK);
                self.read(part.clone(), &mut buffer)?;
                if buffer.iter().any(|byte| *byte != 0) {
                    let length = buffer.len().min(self.size - part.start * PAGE);
                    file.write_all_at(&buffer[..length], offset + (part.start * PAGE) as u64)?;
                }
            }
        }
        Ok(())
    }

    /// Returns the pages that may not be zero. Reading the others would be slow, and the system
    /// would fill the holes of the files.
    fn present(&self) -> io::Result<Vec<Pages>> {
        let (first, above) = self.layers();
        let held = self.size.min(first.length).div_ceil(PAGE);
        let mut pages = present(&first.file, first.offset, held)?;
        for layer in above {
            pages = union(&pages, &layer.ranges);
        }
        Ok(pages)
    }
}

/// Reads from a file that may end earlier; the rest is zero.
fn read_or_zero(file: &File, mut buffer: &mut [u8], mut offset: u64) -> io::Result<()> {
    while !buffer.is_empty() {
        match file.read_at(buffer, offset)? {
            0 => {
                buffer.fill(0);
                return Ok(());
            }
            read => {
                buffer = &mut buffer[read..];
                offset += read as u64;
            }
        }
    }
    Ok(())
}

fn write_all(file: &File, memory: &[u8], pages: &[Pages]) -> io::Result<()> {
    for range in pages {
        let bytes = range.start * PAGE..range.end * PAGE;
        file.write_all_at(&memory[bytes.clone()], bytes.start as u64)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
