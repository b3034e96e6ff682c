use super::{memory, runner};
use ic_stable_structures::{Memory, VectorMemory};
use proptest::prelude::*;
use stablebench_leveldb::{CHUNK_BYTES, Error, Files};
use std::collections::BTreeMap;

#[derive(Clone, Debug)]
enum Step {
    Create(u8),
    Append(u8, usize, u8),
    Remove(u8),
    Rename(u8, u8),
    Reopen,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let name = || 0..6_u8;
    let step = prop_oneof![
        2 => name().prop_map(Step::Create),
        6 => (name(), 0..150_000_usize, any::<u8>()).prop_map(|(n, b, v)| Step::Append(n, b, v)),
        2 => name().prop_map(Step::Remove),
        1 => (name(), name()).prop_map(|(from, to)| Step::Rename(from, to)),
        1 => Just(Step::Reopen),
    ];
    prop::collection::vec(step, 1..60)
}

fn name(number: u8) -> String {
    format!("{}/{number}", if number.is_multiple_of(2) { "even" } else { "odd" })
}

fn check(files: &Files<VectorMemory>, model: &BTreeMap<String, Vec<u8>>) {
    assert!(files.names().eq(model.keys().map(String::as_str)));
    let mut chunks = 0;
    for (name, content) in model {
        let id = files.find(name).unwrap();
        assert_eq!(files.bytes(id), Some(content.len() as u64));
        let mut all = vec![0; content.len() + 5];
        assert_eq!(files.read(id, 0, &mut all), Ok(content.len()));
        assert!(all[..content.len()] == content[..], "{name}");
        let (from, mut some) = (content.len() / 3, vec![0; 70_000]);
        let read = files.read(id, from as u64, &mut some).unwrap();
        assert_eq!(read, some.len().min(content.len() - from));
        assert!(some[..read] == content[from..from + read]);
        chunks += content.len().div_ceil(CHUNK_BYTES as usize) as u64;
    }
    assert_eq!(files.used_chunks(), chunks);
    let odd = model.iter().filter(|(name, _)| name.starts_with("odd/"));
    assert_eq!(files.bytes_of("odd/"), odd.map(|(_, content)| content.len() as u64).sum());
}

#[test]
fn files_are_what_the_model_has_whatever_is_done() {
    runner(40)
        .run(&steps(), |steps| {
            let memory = memory();
            let mut files = Files::open(memory.clone()).unwrap();
            let mut model = BTreeMap::<String, Vec<u8>>::new();
            let mut most = 0;
            for step in steps {
                match step {
                    Step::Create(number) => {
                        files.create(&name(number)).unwrap();
                        model.insert(name(number), Vec::new());
                    }
                    Step::Append(number, bytes, value) => {
                        if let Some(id) = files.find(&name(number)) {
                            files.append(id, &vec![value; bytes]).unwrap();
                            let content = model.get_mut(&name(number)).unwrap();
                            content.resize(content.len() + bytes, value);
                        }
                    }
                    Step::Remove(number) => {
                        let removed = files.remove(&name(number));
                        assert_eq!(removed.is_ok(), model.remove(&name(number)).is_some());
                    }
                    Step::Rename(from, to) => {
                        let renamed = files.rename(&name(from), &name(to));
                        let content = model.remove(&name(from));
                        assert_eq!(renamed.is_ok(), content.is_some());
                        content.map(|content| model.insert(name(to), content));
                    }
                    Step::Reopen => files = Files::open(memory.clone()).unwrap(),
                }
                most = most.max(files.used_chunks());
                // Free chunks are used before the memory grows.
                assert_eq!(memory.size() - 81, most);
            }
            check(&files, &model);
            check(&Files::open(memory).unwrap(), &model);
            Ok(())
        })
        .unwrap();
}

#[test]
fn space_that_was_freed_is_used_again() {
    let memory = memory();
    let mut files = Files::open(memory.clone()).unwrap();
    for _ in 0..3 {
        for name in ["one", "other"] {
            let id = files.create(name).unwrap();
            files.append(id, &vec![1; 3 * CHUNK_BYTES as usize]).unwrap();
        }
        files.remove("one").unwrap();
        assert_eq!(memory.size(), 81 + 6);
        files = Files::open(memory.clone()).unwrap();
        assert_eq!(files.used_chunks(), 3);
    }
}

#[test]
fn where_a_chunk_is_put_does_not_follow_from_when_the_memory_was_read() {
    let written = |reopen: bool| {
        let memory = memory();
        let mut files = Files::open(memory.clone()).unwrap();
        for step in 0..40_u8 {
            let name = format!("{}", step % 5);
            let id = if step % 3 == 0 { None } else { files.find(&name) };
            let id = id.unwrap_or_else(|| files.create(&name).unwrap());
            files.append(id, &vec![step; usize::from(step) * 9_000]).unwrap();
            if reopen {
                files = Files::open(memory.clone()).unwrap();
            }
        }
        memory
    };
    assert_eq!(*written(false).borrow(), *written(true).borrow());
}

#[test]
fn what_is_gone_or_foreign_is_refused() {
    let memory = memory();
    let mut files = Files::open(memory.clone()).unwrap();
    let id = files.create("gone").unwrap();
    files.remove("gone").unwrap();
    files.create("next").unwrap();
    assert!(matches!(files.append(id, b"1"), Err(Error::Missing { .. })));
    assert!(matches!(files.read(id, 0, &mut [0]), Err(Error::Missing { .. })));
    assert!(matches!(files.remove("gone"), Err(Error::Missing { .. })));
    let long = "n".repeat(48);
    assert!(matches!(files.create(&long), Err(Error::NameTooLong { .. })));
    assert!(matches!(files.rename("next", &long), Err(Error::NameTooLong { .. })));
    files.create(&long[1..]).unwrap();
    assert_eq!(Files::open(memory.clone()).unwrap().names().count(), 2);
    memory.write(0, b"?");
    assert!(matches!(Files::open(memory), Err(Error::Foreign)));
}

#[test]
fn a_directory_that_is_full_is_told() {
    let mut files = Files::open(memory()).unwrap();
    for number in 0..16_384 {
        files.create(&number.to_string()).unwrap();
    }
    assert_eq!(files.create("one more"), Err(Error::Full));
    files.remove("77").unwrap();
    files.create("one more").unwrap();
}
