//! What the unsafe code of mappings and of the engine's memories relies on.

use std::io::Write;

use wasmtime::{LinearMemory, MemoryCreator, MemoryType};

use super::mapping::{Mapping, Rights, discard, lay_over};
use super::{Creator, PAGE, file, prepare};

/// A file of pages, each full of its number, from 1.
fn numbered(pages: u8) -> std::fs::File {
    let mut file = file::anonymous().unwrap();
    for page in 1..=pages {
        file.write_all(&[page; PAGE]).unwrap();
    }
    file
}

fn firsts(mapping: &Mapping) -> Vec<u8> {
    mapping.bytes().iter().copied().step_by(PAGE).collect()
}

#[test]
fn nothing_is_usable_until_it_grows() {
    let mut mapping = Mapping::reserve(4 * PAGE, PAGE).unwrap();
    assert_eq!((mapping.bytes().len(), mapping.reserved(), mapping.guard()), (0, 4 * PAGE, PAGE));
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
fn a_file_is_laid_out_and_stays_as_it_is() {
    let (below, above) = (numbered(3), numbered(9));
    let mut mapping = Mapping::reserve(8 * PAGE, 0).unwrap();
    mapping.extend_with(&below, PAGE as u64, 5 * PAGE).unwrap();
    assert_eq!(firsts(&mapping), [2, 3, 0, 0, 0], "zeros where the file ends");
    lay_over(mapping.bytes_mut(), 1..3, &above, 0, Rights::ReadWrite).unwrap();
    mapping.bytes_mut()[0] = 70;
    mapping.bytes_mut()[2 * PAGE] = 80;
    assert_eq!(firsts(&mapping), [70, 2, 80, 0, 0]);
    discard(mapping.bytes_mut(), 1..3).unwrap();
    assert_eq!(firsts(&mapping), [70, 2, 3, 0, 0], "as the file has them");
    discard(mapping.bytes_mut(), 0..5).unwrap();
    assert_eq!(firsts(&mapping), [2, 2, 3, 0, 0]);
    let mut again = Mapping::reserve(8 * PAGE, 0).unwrap();
    again.extend_with(&above, 0, 3 * PAGE).unwrap();
    assert_eq!(firsts(&again), [1, 2, 3], "what was written is the first mapping's own");
}

#[test]
#[should_panic(expected = "out of range")]
fn nothing_is_laid_outside() {
    let mut mapping = Mapping::reserve(2 * PAGE, PAGE).unwrap();
    mapping.grow(PAGE).unwrap();
    let _ = lay_over(mapping.bytes_mut(), 0..2, &numbered(2), 0, Rights::ReadWrite);
}

#[test]
#[should_panic(expected = "memories begin with a page")]
fn only_whole_pages_are_discarded() {
    let mut mapping = Mapping::reserve(2 * PAGE, 0).unwrap();
    mapping.grow(2 * PAGE).unwrap();
    let _ = discard(&mut mapping.bytes_mut()[1..], 0..1);
}

#[test]
fn a_mapping_is_used_by_another_thread() {
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

fn create(minimum: usize, reserved: usize, guard: usize) -> Result<Box<dyn LinearMemory>, String> {
    let ty = MemoryType::new(0, None);
    Creator.new_memory(ty, minimum, None, Some(reserved), guard)
}

/// The engine gets what was prepared, in that order, and nothing that is less than it
/// asked for.
#[test]
fn memories_are_what_was_prepared() {
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
    assert!(create(0, 0, 0).is_err(), "what was not taken is not kept");
}
