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
    let create = || File::options().read(true).write(true).create(true).truncate(false).open(&path);
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
