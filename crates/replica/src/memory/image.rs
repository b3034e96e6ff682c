//! The committed content of a memory.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::sync::Arc;

use super::mapping::{Access, Mapping};
use super::{PAGE, file};

/// A memory laid over from more ranges than this is copied into one file, so
/// that a mapping stays far below the kernel's limit on mapped ranges.
const MAX_RANGES: usize = 1_024;
/// Layers over the first one, for the same reason.
const MAX_LAYERS: usize = 8;

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
    ranges: Vec<Range<usize>>,
}

impl Layer {
    /// A layer whose file holds nothing else.
    fn own(file: File) -> Self {
        Self { file, offset: 0, length: usize::MAX, writable: true, ranges: Vec::new() }
    }
}

/// Committed pages of a memory, shared with the images forked from it.
#[derive(Clone, Debug)]
pub struct Image {
    layers: Vec<Arc<Layer>>,
    size: usize,
}

impl Image {
    /// An empty image.
    ///
    /// # Errors
    ///
    /// If no file can be made.
    pub fn new() -> io::Result<Self> {
        let layer = Layer::own(file::anonymous()?);
        Ok(Self { layers: vec![Arc::new(layer)], size: 0 })
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

    /// Maps the image into fresh address space of `reserved` bytes and a guard.
    /// What is written there stays there.
    ///
    /// # Errors
    ///
    /// If the system refuses the address space.
    pub fn map(&self, reserved: usize, guard: usize) -> io::Result<Mapping> {
        self.map_as(Access::Private, reserved.max(self.size), guard)
    }

    fn map_as(&self, access: Access, reserved: usize, guard: usize) -> io::Result<Mapping> {
        let mut mapping = Mapping::reserve(access, reserved, guard)?;
        let (first, above) = self.layers.split_first().unwrap_or_else(|| unreachable!());
        mapping.extend_with(&first.file, first.offset, self.size.min(first.length))?;
        mapping.grow(self.size)?;
        for layer in above {
            for range in &layer.ranges {
                mapping.lay_over(&layer.file, range.start * PAGE..range.end * PAGE)?;
            }
        }
        Ok(mapping)
    }

    /// The committed bytes, to be read only.
    ///
    /// # Errors
    ///
    /// If the system refuses the address space.
    pub fn read(&self) -> io::Result<Mapping> {
        self.map_as(Access::ReadOnly, self.size, 0)
    }

    /// Takes over `pages` of `content` and its size. `content` starts as this
    /// image and may be longer; pages are ascending.
    ///
    /// # Errors
    ///
    /// If the pages cannot be stored: no memory is left. The image is then not
    /// to be used any more.
    pub fn commit(&mut self, content: &[u8], pages: &[usize]) -> io::Result<()> {
        let size = content.len();
        let ranges = ranges_of(pages);
        let unchanged = ranges.is_empty() && size == self.size;
        if !unchanged && !self.top_is_own() {
            self.add_layer(ranges.len())?;
        }
        let is_first = self.layers.len() == 1;
        if let Some(top) = self.layers.last_mut().and_then(Arc::get_mut) {
            for range in &ranges {
                let bytes = range.start * PAGE..range.end * PAGE;
                top.file.write_all_at(&content[bytes.clone()], bytes.start as u64)?;
            }
            if !is_first {
                top.ranges = union(&top.ranges, &ranges);
            }
        }
        self.grow_first(size)?;
        self.size = size;
        if self.layers.iter().map(|layer| layer.ranges.len()).sum::<usize>() > MAX_RANGES {
            self.flatten()?;
        }
        Ok(())
    }

    fn top_is_own(&mut self) -> bool {
        self.layers.last_mut().and_then(Arc::get_mut).is_some_and(|layer| layer.writable)
    }

    fn add_layer(&mut self, ranges: usize) -> io::Result<()> {
        if self.layers.len() > MAX_LAYERS || ranges > MAX_RANGES {
            return self.flatten();
        }
        let layer = Layer::own(file::anonymous()?);
        self.layers.push(Arc::new(layer));
        Ok(())
    }

    /// The first layer is mapped as a whole; where it ends before the memory
    /// does, the mapping continues with zeros, so it need not grow. A file that
    /// only this image has does grow, since it is written in place.
    fn grow_first(&mut self, size: usize) -> io::Result<()> {
        if let Some(first) = self.layers.first_mut().and_then(Arc::get_mut)
            && first.writable
            && first.file.metadata()?.len() < size as u64
        {
            first.file.set_len(size as u64)?;
        }
        Ok(())
    }

    /// Copies all layers into one that only this image has.
    fn flatten(&mut self) -> io::Result<()> {
        let file = file::anonymous()?;
        file.set_len(self.size as u64)?;
        self.copy_into(&file, 0)?;
        self.layers = vec![Arc::new(Layer::own(file))];
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
        let whole = self.read()?;
        for pages in self.present()? {
            let bytes = pages.start * PAGE..self.size.min(pages.end * PAGE);
            write_sparse(file, offset + bytes.start as u64, &whole.bytes()[bytes])?;
        }
        Ok(())
    }

    /// Pages that may be other than zero. Reading the others is not only slow: the
    /// system would fill the holes of the files with pages of zeros.
    fn present(&self) -> io::Result<Vec<Range<usize>>> {
        let (first, above) = self.layers.split_first().unwrap_or_else(|| unreachable!());
        let held = self.size.min(first.length).div_ceil(PAGE);
        let mut pages = file::present(&first.file, first.offset, held)?;
        for layer in above {
            pages = union(&pages, &layer.ranges);
        }
        Ok(pages)
    }
}

fn write_sparse(file: &File, offset: u64, bytes: &[u8]) -> io::Result<()> {
    const ZERO: [u8; PAGE] = [0; PAGE];
    const CHUNK: usize = 256 * PAGE;
    for (at, chunk) in (offset..).step_by(CHUNK).zip(bytes.chunks(CHUNK)) {
        if chunk.chunks(PAGE).all(|page| page == &ZERO[..page.len()]) {
            continue;
        }
        file.write_all_at(chunk, at)?;
    }
    Ok(())
}

fn ranges_of(pages: &[usize]) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    for &page in pages {
        match ranges.last_mut() {
            Some(last) if last.end == page => last.end += 1,
            _ => ranges.push(page..page + 1),
        }
    }
    ranges
}

fn union(one: &[Range<usize>], other: &[Range<usize>]) -> Vec<Range<usize>> {
    let mut all: Vec<Range<usize>> = one.iter().chain(other).cloned().collect();
    all.sort_unstable_by_key(|range| range.start);
    let mut merged: Vec<Range<usize>> = Vec::new();
    for range in all {
        match merged.last_mut() {
            Some(last) if last.end >= range.start => last.end = last.end.max(range.end),
            _ => merged.push(range),
        }
    }
    merged
}

#[cfg(test)]
mod tests {
    use super::*;

    fn page(byte: u8) -> Vec<u8> {
        vec![byte; PAGE]
    }

    fn commit(image: &mut Image, pages: &[(usize, u8)], size: usize) {
        let mut mapping = image.map(size, 0).unwrap();
        mapping.grow(size).unwrap();
        for (index, byte) in pages {
            mapping.bytes_mut()[index * PAGE..][..PAGE].fill(*byte);
        }
        let indices: Vec<usize> = pages.iter().map(|(index, _)| *index).collect();
        image.commit(mapping.bytes(), &indices).unwrap();
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
        let (one, two) = (one.read().unwrap(), two.read().unwrap());
        assert_eq!(one.bytes().len(), size * 2);
        assert_eq!(two.bytes().len(), size);
        let at = |mapping: &Mapping, index: usize| mapping.bytes()[index * PAGE..][..PAGE].to_vec();
        assert_eq!([at(&one, 0), at(&one, 5), at(&one, 6)], [page(1), page(2), page(4)]);
        assert_eq!([at(&two, 0), at(&two, 5), at(&two, 6)], [page(5), page(3), page(0)]);
    }

    #[test]
    fn many_scattered_commits_are_flattened() {
        let size = 65_536 * 256;
        let mut image = Image::new().unwrap();
        commit(&mut image, &[(1, 9)], size);
        let fork = image.clone();
        let scattered: Vec<(usize, u8)> = (0..2 * MAX_RANGES).map(|i| (2 * i, 7)).collect();
        commit(&mut image, &scattered, size);
        assert_eq!(image.layers.len(), 1);
        let (new, old) = (image.read().unwrap(), fork.read().unwrap());
        for (index, _) in scattered {
            assert_eq!(new.bytes()[index * PAGE], 7);
            assert_eq!(old.bytes()[index * PAGE], 0);
        }
        assert_eq!((new.bytes()[PAGE], old.bytes()[PAGE]), (9, 9));
    }

    /// A gigabyte with one page at its end, which a copy of all of it would fill.
    #[test]
    #[cfg(target_os = "linux")]
    fn flattening_leaves_holes() {
        use std::os::unix::fs::MetadataExt;
        let pages = (1 << 30) / PAGE;
        let mut image = Image::new().unwrap();
        commit(&mut image, &[(pages - 1, 5)], pages * PAGE);
        let fork = image.clone();
        commit(&mut image, &[(7, 6)], pages * PAGE);
        image.flatten().unwrap();
        for image in [&image, &fork] {
            let held = image.layers[0].file.metadata().unwrap().blocks() * 512;
            assert!(held <= 2 * 256 * PAGE as u64, "{held} bytes");
        }
        let whole = image.read().unwrap();
        assert_eq!((whole.bytes()[7 * PAGE], whole.bytes()[pages * PAGE - 1]), (6, 5));
        assert_eq!(fork.read().unwrap().bytes()[7 * PAGE], 0);
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
        assert_eq!(opened.read().unwrap().bytes(), image.read().unwrap().bytes());
        commit(&mut opened, &[(3, 1)], 16 * PAGE);
        assert_eq!(opened.read().unwrap().bytes()[3 * PAGE], 1);
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
            let whole = image.read().unwrap();
            let found: Vec<u8> = whole.bytes().iter().copied().step_by(PAGE).collect();
            assert_eq!(found, pages);
        }
    }
}
