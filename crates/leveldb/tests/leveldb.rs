//! Files against a model, and LevelDB on them against another.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]

use ic_stable_structures::{Memory, VectorMemory};
use proptest::prelude::*;
use proptest::test_runner::{RngAlgorithm, TestRng, TestRunner};
use stablebench_leveldb::{CHUNK_BYTES, Config, Disk, Error, Files, Store};
use std::collections::BTreeMap;
use std::ops::ControlFlow;

/// A runner whose cases are the same each time.
fn runner(cases: u32) -> TestRunner {
    let config = ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

fn memory() -> VectorMemory {
    VectorMemory::default()
}

#[derive(Clone, Debug)]
enum FileStep {
    Create(u8),
    Append(u8, usize, u8),
    Remove(u8),
    Rename(u8, u8),
    Reopen,
}

fn file_steps() -> impl Strategy<Value = Vec<FileStep>> {
    let name = || 0..6_u8;
    let step = prop_oneof![
        2 => name().prop_map(FileStep::Create),
        6 => (name(), 0..150_000_usize, any::<u8>()).prop_map(|(n, b, v)| FileStep::Append(n, b, v)),
        2 => name().prop_map(FileStep::Remove),
        1 => (name(), name()).prop_map(|(from, to)| FileStep::Rename(from, to)),
        1 => Just(FileStep::Reopen),
    ];
    prop::collection::vec(step, 1..60)
}

fn file_name(number: u8) -> String {
    format!("{}/{number}", if number.is_multiple_of(2) { "even" } else { "odd" })
}

fn check_files(files: &Files<VectorMemory>, model: &BTreeMap<String, Vec<u8>>) {
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
        .run(&file_steps(), |steps| {
            let memory = memory();
            let mut files = Files::open(memory.clone()).unwrap();
            let mut model = BTreeMap::<String, Vec<u8>>::new();
            let mut most = 0;
            for step in steps {
                match step {
                    FileStep::Create(number) => {
                        files.create(&file_name(number)).unwrap();
                        model.insert(file_name(number), Vec::new());
                    }
                    FileStep::Append(number, bytes, value) => {
                        if let Some(id) = files.find(&file_name(number)) {
                            files.append(id, &vec![value; bytes]).unwrap();
                            let content = model.get_mut(&file_name(number)).unwrap();
                            content.resize(content.len() + bytes, value);
                        }
                    }
                    FileStep::Remove(number) => {
                        let removed = files.remove(&file_name(number));
                        assert_eq!(removed.is_ok(), model.remove(&file_name(number)).is_some());
                    }
                    FileStep::Rename(from, to) => {
                        let renamed = files.rename(&file_name(from), &file_name(to));
                        let content = model.remove(&file_name(from));
                        assert_eq!(renamed.is_ok(), content.is_some());
                        content.map(|content| model.insert(file_name(to), content));
                    }
                    FileStep::Reopen => files = Files::open(memory.clone()).unwrap(),
                }
                most = most.max(files.used_chunks());
                // Free chunks are used before the memory grows.
                assert_eq!(memory.size() - 81, most);
            }
            check_files(&files, &model);
            check_files(&Files::open(memory).unwrap(), &model);
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

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// Small enough for tables of several levels.
const SMALL: Config = Config { snappy: false, write_buffer_size: 16 << 10 };

fn store(memory: &VectorMemory, config: Config) -> Store<VectorMemory> {
    Store::new(Disk::open(memory.clone()).unwrap(), "db", config)
}

#[derive(Clone, Debug)]
enum Step {
    /// From a key on, so many, some apart, with values of so many bytes.
    Put {
        from: u16,
        keys: u16,
        step: u16,
        bytes: u16,
    },
    Delete {
        from: u16,
        keys: u16,
        step: u16,
    },
    Read {
        from: u16,
        step: u16,
    },
    Clear,
    Reopen {
        snappy: bool,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let from = || 0..3_000_u16;
    let step = prop_oneof![
        10 => (from(), 1..400_u16, 1..9_u16, 0..500_u16)
            .prop_map(|(from, keys, step, bytes)| Step::Put { from, keys, step, bytes }),
        6 => (from(), 1..400_u16, 1..9_u16)
            .prop_map(|(from, keys, step)| Step::Delete { from, keys, step }),
        4 => (from(), 1..9_u16).prop_map(|(from, step)| Step::Read { from, step }),
        1 => any::<bool>().prop_map(|snappy| Step::Reopen { snappy }),
        1 => prop_oneof![1 => Just(Step::Clear), 3 => Just(Step::Reopen { snappy: true })],
    ];
    prop::collection::vec(step, 1..60)
}

/// Keys of several lengths, in another order than their numbers.
fn key(number: u16) -> Vec<u8> {
    let mut key = number.rotate_left(5).to_be_bytes().to_vec();
    key.resize(2 + usize::from(number % 7), number as u8);
    key
}

fn value(store: &mut Store<VectorMemory>, key: &[u8]) -> Option<Vec<u8>> {
    let mut found = None;
    let there = store.get(key, &mut |value| found = Some(value.to_vec())).unwrap();
    assert_eq!(there, found.is_some());
    found
}

fn check(store: &mut Store<VectorMemory>, model: &Model) {
    let mut rows = model.iter();
    store
        .scan(&[], &mut |key, value| {
            assert_eq!(rows.next(), Some((&key.to_vec(), &value.to_vec())));
            ControlFlow::Continue(())
        })
        .unwrap();
    assert_eq!(rows.next(), None);
    assert_eq!(store.count(), Ok(model.len() as u64));
    assert_eq!(store.last_key().unwrap(), model.keys().last().cloned());
    for number in 0..3_600 {
        let key = key(number);
        assert_eq!(value(store, &key), model.get(&key).cloned(), "{number}");
    }
}

fn follow(steps: Vec<Step>) {
    let memory = memory();
    let mut store = store(&memory, SMALL);
    let mut model = Model::new();
    for (place, step) in steps.into_iter().enumerate() {
        match step {
            Step::Put { from, keys, step, bytes } => {
                store.begin();
                for number in (from..).step_by(step.into()).take(keys.into()) {
                    let value = vec![place as u8; usize::from(bytes)];
                    store.put(&key(number), &value).unwrap();
                    model.insert(key(number), value);
                }
                store.commit().unwrap();
            }
            Step::Delete { from, keys, step } => {
                store.begin();
                for number in (from..).step_by(step.into()).take(keys.into()) {
                    store.delete(&key(number));
                    model.remove(&key(number));
                }
                store.commit().unwrap();
            }
            Step::Read { from, step } => {
                for number in (from..3_600).step_by(step.into()) {
                    let key = key(number);
                    assert_eq!(value(&mut store, &key), model.get(&key).cloned(), "{number}");
                }
            }
            Step::Clear => {
                store.clear().unwrap();
                model.clear();
            }
            Step::Reopen { snappy } => {
                store.close().unwrap();
                store = self::store(&memory, Config { snappy, ..SMALL });
            }
        }
    }
    check(&mut store, &model);
    store.close().unwrap();
    check(&mut self::store(&memory, SMALL), &model);
}

#[test]
fn a_store_is_what_the_model_has_whatever_is_done() {
    let outcome = runner(60).run(&steps(), |steps| {
        follow(steps);
        Ok(())
    });
    outcome.unwrap();
}

/// A defect of `DB::get`: see `store`.
#[test]
fn a_deleted_neighbour_in_a_newer_table_hides_nothing() {
    let memory = memory();
    let mut store = store(&memory, SMALL);
    let all = 4_000_u32;
    let key = |number: u32| number.to_be_bytes();
    store.begin();
    (0..all).for_each(|number| store.put(&key(number), &[7; 50]).unwrap());
    store.commit().unwrap();
    store.begin();
    (1..all).step_by(2).for_each(|number| store.delete(&key(number)));
    store.commit().unwrap();
    for reopened in [false, true] {
        for number in 0..all {
            let found = value(&mut store, &key(number));
            assert_eq!(found.is_some(), number % 2 == 0, "{number}, {reopened}");
        }
        store.close().unwrap();
        store = self::store(&memory, SMALL);
    }
}

#[test]
fn rows_that_no_table_has_are_there_after_it_was_opened_again() {
    for sync in [false, true] {
        let memory = memory();
        let mut store = store(&memory, Config::default());
        assert!(!store.exists() && !store.is_open());
        store.set_sync(sync);
        for number in 0..100_u8 {
            store.begin();
            store.put(&[number], &[number; 200]).unwrap();
            store.commit().unwrap();
        }
        let written = store.file_bytes();
        // Without sync, the end of the log waits on the heap.
        assert_eq!(written > 100 * 200, sync, "{written}");
        store.close().unwrap();
        assert!(store.file_bytes() > 100 * 200 && store.exists() && !store.is_open());
        let mut store = self::store(&memory, Config::default());
        assert_eq!(store.count(), Ok(100));
    }
}

#[test]
fn a_batch_that_was_not_committed_is_forgotten() {
    let mut store = store(&memory(), SMALL);
    store.begin();
    store.put(b"key", b"value").unwrap();
    store.begin();
    store.commit().unwrap();
    assert_eq!((store.count(), store.last_key()), (Ok(0), Ok(None)));
}

#[test]
fn two_databases_share_the_files_and_nothing_else() {
    let disk = Disk::open(memory()).unwrap();
    let mut stores = ["one", "other"].map(|name| Store::new(disk.clone(), name, SMALL));
    for (store, keys) in stores.iter_mut().zip([1_000_u32, 2_000]) {
        store.begin();
        (0..keys).for_each(|key| store.put(&key.to_be_bytes(), &[1; 100]).unwrap());
        store.commit().unwrap();
    }
    stores[0].clear().unwrap();
    assert_eq!((stores[0].count(), stores[1].count()), (Ok(0), Ok(2_000)));
}

#[test]
fn a_store_that_is_filled_again_takes_no_more_memory() {
    let memory = memory();
    let mut store = store(&memory, SMALL);
    let mut sizes = Vec::new();
    for _ in 0..4 {
        store.clear().unwrap();
        for batch in 0..100_u32 {
            store.begin();
            for key in 0..100 {
                store.put(&(batch * 100 + key).to_be_bytes(), &[1; 90]).unwrap();
            }
            store.commit().unwrap();
        }
        sizes.push(memory.size());
    }
    assert!(sizes[1..].iter().all(|size| *size == sizes[0]), "{sizes:?}");
}

#[test]
fn snappy_takes_fewer_bytes_and_reads_what_was_not_compressed() {
    let memory = memory();
    let fill = |store: &mut Store<VectorMemory>, from: u32| {
        for batch in 0..20 {
            store.begin();
            for key in 0..100 {
                store.put(&(from + batch * 100 + key).to_be_bytes(), &[7; 200]).unwrap();
            }
            store.commit().unwrap();
        }
    };
    let mut store = store(&memory, SMALL);
    fill(&mut store, 0);
    let plain = store.file_bytes();
    store.configure(Config { snappy: true, ..SMALL }).unwrap();
    fill(&mut store, 10_000);
    assert!(store.file_bytes() - plain < plain / 3, "{plain}, {}", store.file_bytes());
    assert_eq!(store.count(), Ok(4_000));
    assert_eq!(value(&mut store, &5_u32.to_be_bytes()), Some(vec![7; 200]));
}

/// A memory with a maximum size.
#[derive(Clone)]
struct Limited(VectorMemory, u64);

impl Memory for Limited {
    fn size(&self) -> u64 {
        self.0.size()
    }

    fn grow(&self, pages: u64) -> i64 {
        if self.0.size() + pages > self.1 { -1 } else { self.0.grow(pages) }
    }

    fn read(&self, from: u64, bytes: &mut [u8]) {
        self.0.read(from, bytes);
    }

    fn write(&self, to: u64, bytes: &[u8]) {
        self.0.write(to, bytes);
    }
}

/// Above all where LevelDB itself would have gone on.
#[test]
fn a_memory_that_cannot_grow_is_told_wherever_it_ends() {
    assert!(matches!(Disk::open(Limited(memory(), 80)), Err(Error::OutOfMemory { .. })));
    for pages in (82..100).step_by(3) {
        let disk = Disk::open(Limited(memory(), pages)).unwrap();
        let mut store = Store::new(disk, "db", SMALL);
        let outcome = (0..400_u32).try_for_each(|batch| {
            store.begin();
            (0..20_u32)
                .try_for_each(|key| store.put(&(key * 400 + batch).to_be_bytes(), &[9; 300]))?;
            store.commit()
        });
        let reported = match &outcome {
            Err(Error::OutOfMemory { .. }) => true,
            Err(Error::Engine { message }) => message.contains("cannot grow"),
            _ => false,
        };
        assert!(reported, "{pages}: {outcome:?}");
    }
}

#[test]
fn what_is_put_alone_is_there_at_once() {
    let mut store = store(&memory(), SMALL);
    store.set_single(true);
    store.put(b"key", b"value").unwrap();
    assert_eq!(value(&mut store, b"key"), Some(b"value".to_vec()));
    store.set_single(false);
    store.put(b"other", b"value").unwrap();
    assert_eq!(value(&mut store, b"other"), None);
    store.commit().unwrap();
    assert_eq!(store.count(), Ok(2));
}
