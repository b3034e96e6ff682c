//! The committed content of a memory.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::mapping::{Mapping, Rights, discard_all, lay_over};
use super::pages::{Pages, bridged, union, without};
use super::{PAGE, file};

/// Most ranges of a layer: each is a mapping of its own, of which the kernel allows some
/// ten thousand.
const MAX_RANGES: usize = 512;
/// Layers over the first one, for the same reason.
const MAX_LAYERS: usize = 8;
/// Pages that are read or written at once.
const CHUNK: usize = 256;

/// One file of pages. The first layer of an image holds all of its pages, one
/// above it only those in `ranges`.
#[derive(Debug)]
struct Layer {
    file: File,
    /// Where in the file the first page stands.
    offset: u64,
    /// Bytes of the file from there on that are the memory's: others may follow.
    length: usize,
    writable: bool,
    /// Pages present, ascending, apart from each other.
    ranges: Vec<Pages>,
}

impl Layer {
    /// A layer in a file of its own, empty.
    fn new() -> io::Result<Self> {
        let file = file::anonymous()?;
        Ok(Self { file, offset: 0, length: usize::MAX, writable: true, ranges: Vec::new() })
    }
}

/// Committed pages of a memory, shared with the images forked from it.
#[derive(Clone, Debug)]
pub struct Image {
    layers: Vec<Arc<Layer>>,
    size: usize,
}

/// Whether a mapping shows what was committed from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub enum Shown {
    /// It does, and can be written on.
    Yes,
    /// The image has other files now.
    No,
}

impl Image {
    /// An empty image.
    ///
    /// # Errors
    ///
    /// If no file can be made.
    pub fn new() -> io::Result<Self> {
        Ok(Self { layers: vec![Arc::new(Layer::new()?)], size: 0 })
    }

    /// The image whose `size` bytes stand in a file from `offset`, a multiple
    /// of the page. The file is mapped, not read, and must not change.
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

    /// Size in bytes, whole WebAssembly pages.
    pub fn size(&self) -> usize {
        self.size
    }

    fn layers(&self) -> (&Layer, &[Arc<Layer>]) {
        let (first, above) = self.layers.split_first().unwrap_or_else(|| unreachable!());
        (first, above)
    }

    /// Maps the image into fresh address space of `reserved` bytes and a guard.
    /// What is written there stays there.
    ///
    /// # Errors
    ///
    /// If the system refuses the address space.
    pub fn map(&self, reserved: usize, guard: usize) -> io::Result<Mapping> {
        let mut mapping = Mapping::reserve(reserved.max(self.size), guard)?;
        let (first, above) = self.layers();
        mapping.extend_with(&first.file, first.offset, self.size.min(first.length))?;
        mapping.grow(self.size)?;
        for layer in above {
            for range in &layer.ranges {
                lay_over(mapping.bytes_mut(), range.clone(), &layer.file, 0, Rights::ReadWrite)?;
            }
        }
        Ok(mapping)
    }

    /// Reads committed pages; beyond the image they are zero.
    ///
    /// # Errors
    ///
    /// Whatever reading a file can meet.
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

    /// Those of `pages` that differ in `memory`, which starts as this image and may be
    /// longer.
    ///
    /// # Errors
    ///
    /// Whatever reading a file can meet.
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
                        super::pages::push(&mut changed, page);
                    }
                }
            }
        }
        Ok(changed)
    }

    /// Pages that may be otherwise than in `base`, of which this is a fork; nothing where
    /// that cannot be told, because it no longer has the layers of `base`.
    pub fn changed_since(&self, base: &Self) -> Option<Vec<Pages>> {
        let (common, above) = self.layers.split_at_checked(base.layers.len())?;
        let same = common.iter().zip(&base.layers).all(|(one, other)| Arc::ptr_eq(one, other));
        let pages = |above: &[Arc<Layer>]| {
            above.iter().fold(Vec::new(), |pages, layer| union(&pages, &layer.ranges))
        };
        same.then(|| pages(above))
    }

    /// Visits those of `pages` that are otherwise than in `base`, in order.
    ///
    /// # Errors
    ///
    /// Whatever reading a file can meet.
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

    /// Takes over the pages `changed` of `memory`, and its size. `memory` are the usable
    /// bytes of a mapping of this image, which may have grown; of its pages, only those
    /// in `written` were written, and those in `changed` are among them. Others are not read.
    /// `rights` are those of newly mapped pages. Says whether that mapping
    /// can be used on.
    ///
    /// # Errors
    ///
    /// If the pages cannot be stored: no memory is left. The image is then not
    /// to be used any more.
    pub fn commit(
        &mut self,
        memory: &mut [u8],
        written: &[Pages],
        changed: &[Pages],
        rights: Rights,
    ) -> io::Result<Shown> {
        let before = self.size / PAGE;
        self.size = memory.len();
        let now = self.size / PAGE;
        if changed.is_empty() && before == now {
            discard_all(memory, written)?;
            return Ok(Shown::Yes);
        }
        let mut shown = Shown::Yes;
        if !self.top_is_own() {
            if self.layers.len() > MAX_LAYERS {
                self.flatten()?;
                shown = Shown::No;
            } else {
                self.layers.push(Arc::new(Layer::new()?));
            }
        }
        let Some(last) = self.layers.last() else {
            return Err(io::Error::other("there is no layer"));
        };
        let ranges = bridged(&union(&last.ranges, changed), MAX_RANGES);
        let lacking = without(&ranges, &last.ranges);
        // Pages that bridge a gap have not changed, but the top layer's file lacks them.
        let bridges = without(&lacking, changed);
        let is_first = self.layers.len() == 1;
        if !is_first {
            self.copy_pages(&bridges, &last.file, 0)?;
        }
        let Some(top) = self.layers.last_mut().and_then(Arc::get_mut) else {
            return Err(io::Error::other("the top layer is shared"));
        };
        if is_first {
            // The file holds the whole memory, so it is written in place.
            write_all(&top.file, memory, changed)?;
            if top.file.metadata()?.len() < self.size as u64 {
                top.file.set_len(self.size as u64)?;
            }
            if shown == Shown::Yes {
                lay_over(memory, before..now, &top.file, 0, rights)?;
                discard_all(memory, written)?;
            }
        } else {
            write_all(&top.file, memory, changed)?;
            top.ranges = ranges;
            let taken = union(changed, &lacking);
            for range in &taken {
                lay_over(memory, range.clone(), &top.file, 0, rights)?;
            }
            discard_all(memory, &without(written, &taken))?;
        }
        Ok(shown)
    }

    fn top_is_own(&mut self) -> bool {
        self.layers.last_mut().and_then(Arc::get_mut).is_some_and(|layer| layer.writable)
    }

    /// Copies all layers into one that only this image has.
    fn flatten(&mut self) -> io::Result<()> {
        let layer = Layer::new()?;
        layer.file.set_len(self.size as u64)?;
        self.copy_into(&layer.file, 0)?;
        self.layers = vec![Arc::new(layer)];
        Ok(())
    }

    /// Writes the image into `file` from `offset`, holes left where it is zero.
    ///
    /// # Errors
    ///
    /// Whatever writing the file can meet.
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

    /// Writes pages into `file` from `offset`, but for those that are zero.
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

    /// Pages that may be other than zero. Reading the others is not only slow: the
    /// system would fill the holes of the files with pages of zeros.
    fn present(&self) -> io::Result<Vec<Pages>> {
        let (first, above) = self.layers();
        let held = self.size.min(first.length).div_ceil(PAGE);
        let mut pages = file::present(&first.file, first.offset, held)?;
        for layer in above {
            pages = union(&pages, &layer.ranges);
        }
        Ok(pages)
    }
}

/// Reads from a file that may end earlier: what it lacks is zero.
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
mod tests {
    use super::super::pages::push;
    use super::super::written_pages;
    use super::*;

    fn page(byte: u8) -> Vec<u8> {
        vec![byte; PAGE]
    }

    fn commit(image: &mut Image, pages: &[(usize, u8)], size: usize) {
        let (shown, mapping) = fill(image, pages, size);
        if shown == Shown::Yes {
            assert_eq!(mapping.bytes(), whole(image), "the mapping shows the image");
            assert_eq!(written_pages(mapping.bytes()), [], "no page is its own");
        }
    }

    fn fill(image: &mut Image, pages: &[(usize, u8)], size: usize) -> (Shown, Mapping) {
        let mut mapping = image.map(size, 0).unwrap();
        mapping.grow(size).unwrap();
        for (index, byte) in pages {
            mapping.bytes_mut()[index * PAGE..][..PAGE].fill(*byte);
        }
        let mut ranges = Vec::new();
        pages.iter().for_each(|(index, _)| push(&mut ranges, *index));
        let shown = image.commit(mapping.bytes_mut(), &ranges, &ranges, Rights::ReadWrite).unwrap();
        (shown, mapping)
    }

    fn whole(image: &Image) -> Vec<u8> {
        let mut bytes = Vec::new();
        image.read(0..image.size / PAGE, &mut bytes).unwrap();
        assert_eq!(image.map(0, 0).unwrap().bytes(), bytes, "read and mapped alike");
        bytes
    }

    #[test]
    fn forks_do_not_see_each_other() {
        let size = 16 * PAGE;
        let mut one = Image::new().unwrap();
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
    fn scattered_pages_are_bridged() {
        let size = 65_536 * 256;
        let mut image = Image::new().unwrap();
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
        // What bridged a gap is written in the layer that holds it now.
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
    fn a_long_line_of_forks_is_flattened() {
        let size = 16 * PAGE;
        let mut image = Image::new().unwrap();
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
        let mut image = Image::new().unwrap();
        commit(&mut image, &[(1, 1), (299, 2)], size);
        let fork = image.clone();
        commit(&mut image, &[(300, 3)], size);
        let mut mapping = image.map(2 * size, 0).unwrap();
        mapping.grow(2 * size).unwrap();
        for (page, byte) in [(1, 1), (299, 9), (300, 3), (301, 0), (700, 0), (701, 5)] {
            mapping.bytes_mut()[page * PAGE] = byte;
        }
        let written = written_pages(mapping.bytes());
        assert_eq!(image.changed(mapping.bytes(), &written).unwrap(), [299..300, 701..702]);
        let all: Vec<Pages> = std::iter::once(0..1_200).collect();
        assert_eq!(fork.changed(mapping.bytes(), &all).unwrap(), [299..301, 701..702]);
    }

    /// A gigabyte with one page at its end, which a copy of all of it would fill.
    #[test]
    #[cfg(target_os = "linux")]
    fn flattening_leaves_holes() {
        use std::os::unix::fs::MetadataExt;
        let pages = (1 << 30) / PAGE;
        let mut image = Image::new().unwrap();
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

    #[test]
    fn saved_and_opened_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("image");
        let create =
            || File::options().read(true).write(true).create(true).truncate(false).open(&path);
        let mut image = Image::new().unwrap();
        commit(&mut image, &[(3, 8)], 16 * PAGE);
        image.save(&create().unwrap(), PAGE as u64).unwrap();
        let mut opened = Image::open(create().unwrap(), PAGE as u64, 16 * PAGE).unwrap();
        assert_eq!(whole(&opened), whole(&image));
        commit(&mut opened, &[(3, 1)], 16 * PAGE);
        assert_eq!(whole(&opened)[3 * PAGE], 1);
        assert_eq!(std::fs::read(&path).unwrap()[4 * PAGE], 8, "the file is not written");
        assert!(Image::open(create().unwrap(), PAGE as u64, 17 * PAGE).is_err());
    }

    /// What follows a memory in its file is not the memory's, however far it grows.
    #[test]
    fn growing_beyond_what_was_opened() {
        let file = file::anonymous().unwrap();
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
}
