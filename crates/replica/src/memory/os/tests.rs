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
                os.show(mapping.bytes_mut(), pages.clone(), &file, at, Rights::ReadWrite).unwrap();
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
    assert!(error.starts_with("the environment variable STABLEBENCH_MEMORY is \"mac\""), "{error}");
    assert!(error.ends_with("portable"), "{error}");
}
