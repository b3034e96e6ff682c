//! Stable memory that comes from outside.
//!
//! Sizes are those of `set_stable_memory` in `rs/state_machine_tests/src/lib.rs` of the replica.

use stablebench_replica::{
    Canister, Execution, HostError, Replica, Rules, StableMemoryError, WasmPages,
};

use crate::support::{CALLER, compile, install, numbers, query, update};

/// Reads and writes stable memory. The argument is where, and how many bytes up to a page.
const MODULE: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "stable64_size" (func $size (result i64)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (import "ic0" "canister_version" (func $version (result i64)))
    (memory 2)
    (global $calls (mut i64) (i64.const 0))
    (func $read_it
        (call $copy (i32.const 0) (i32.const 0) (i32.const 16))
        (call $read (i64.const 65536) (i64.load (i32.const 0)) (i64.load (i32.const 8)))
        (call $append (i32.const 65536) (i32.load (i32.const 8)))
        (call $reply))
    (export "canister_query read" (func $read_it))
    (export "canister_update read_too" (func $read_it))
    (func (export "canister_update grow")
        (drop (call $grow (i64.const 3)))
        (call $reply))
    ;; Fills as many bytes with sevens.
    (func (export "canister_update fill")
        (call $copy (i32.const 0) (i32.const 0) (i32.const 16))
        (memory.fill (i32.const 65536) (i32.const 7) (i32.load (i32.const 8)))
        (call $write (i64.load (i32.const 0)) (i64.const 65536) (i64.load (i32.const 8)))
        (global.set $calls (i64.add (global.get $calls) (i64.const 1)))
        (call $reply))
    (func (export "canister_query state")
        (i64.store (i32.const 0) (call $size))
        (i64.store (i32.const 8) (call $version))
        (i64.store (i32.const 16) (global.get $calls))
        (call $append (i32.const 0) (i32.const 24))
        (call $reply)))"#;

fn at(start: u64, size: u64) -> Vec<u8> {
    [start.to_le_bytes(), size.to_le_bytes()].concat()
}

fn read(canister: &Canister, start: u64, size: u64) -> Vec<u8> {
    query(canister, "read", &at(start, size)).outcome.unwrap()
}

fn state(canister: &Canister) -> [u64; 3] {
    numbers(query(canister, "state", &[])).try_into().unwrap()
}

/// Bytes each of which differs from its neighbours.
fn content(size: usize) -> Vec<u8> {
    (0..size).map(|at| (at % 251) as u8 + 1).collect()
}

fn filled() -> Canister {
    let mut canister = install(MODULE);
    update(&mut canister, "grow", &[]).outcome.unwrap();
    update(&mut canister, "fill", &at(0, 65_536)).outcome.unwrap();
    update(&mut canister, "fill", &at(131_072, 65_536)).outcome.unwrap();
    canister
}

#[test]
fn the_bytes_are_there_and_the_old_ones_gone() {
    let mut canister = filled();
    let [_, version, calls] = state(&canister);
    assert_eq!((canister.stable_size(), calls), (WasmPages(3), 2));
    let bytes = content(70_000);
    canister.set_stable_memory(&bytes).unwrap();
    assert_eq!(canister.stable_size(), WasmPages(2));
    // Heap and globals are as they were, and no version is counted.
    assert_eq!(state(&canister), [2, version, 2]);
    assert_eq!(read(&canister, 0, 65_536), bytes[..65_536]);
    let rest = read(&canister, 65_536, 65_536);
    assert_eq!(rest[..4_464], bytes[65_536..]);
    assert!(rest[4_464..].iter().all(|byte| *byte == 0));
    // The third page is gone, not hidden.
    assert!(query(&canister, "read", &at(131_072, 1)).outcome.is_err());
    update(&mut canister, "grow", &[]).outcome.unwrap();
    assert!(read(&canister, 131_072, 65_536).iter().all(|byte| *byte == 0));
    // And it can be written.
    update(&mut canister, "fill", &at(10, 5)).outcome.unwrap();
    let expected = [&bytes[..10], &[7; 5], &bytes[15..20]].concat();
    assert_eq!(read(&canister, 0, 20), expected);
}

#[test]
fn sizes_are_whole_pages() {
    let mut canister = filled();
    for (size, pages) in [(0, 0), (1, 1), (65_536, 1), (65_537, 2), (4_096, 1), (0, 0)] {
        canister.set_stable_memory(&content(size)).unwrap();
        assert_eq!(canister.stable_size(), WasmPages(pages), "{size}");
        assert_eq!(state(&canister)[0], pages);
    }
}

#[test]
fn pages_of_zeros_are_zeros() {
    let mut canister = filled();
    let mut bytes = vec![0; 4 * 65_536];
    bytes[65_536 + 4_096] = 1;
    bytes[3 * 65_536 - 1] = 2;
    canister.set_stable_memory(&bytes).unwrap();
    let found: Vec<u8> = (0..4).flat_map(|page| read(&canister, page * 65_536, 65_536)).collect();
    assert!(found == bytes);
}

#[test]
fn forks_do_not_see_it() {
    let canister = filled();
    let mut fork = canister.fork();
    let other = fork.fork();
    fork.set_stable_memory(b"new").unwrap();
    for unchanged in [&canister, &other] {
        assert_eq!(unchanged.stable_size(), WasmPages(3));
        assert_eq!(read(unchanged, 0, 3), [7; 3]);
    }
    assert_eq!(read(&fork, 0, 4), b"new\0");
    let of_fork = fork.fork();
    fork.set_stable_memory(&[]).unwrap();
    assert_eq!(read(&of_fork, 0, 4), b"new\0");
}

/// Counts do not depend on how the pages were written.
#[test]
fn counts_are_those_of_pages_that_a_message_wrote() {
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        let replica = Replica::new(rules, None).unwrap();
        let module = replica.compile(&wat::parse_str(MODULE).unwrap()).unwrap();
        let installed = || {
            let mut canister = replica.create_canister().unwrap();
            canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
            canister
        };
        let mut written = installed();
        update(&mut written, "grow", &[]).outcome.unwrap();
        update(&mut written, "fill", &at(0, 65_536)).outcome.unwrap();
        // With the same heap.
        let mut set = written.fork();
        set.set_stable_memory(&[]).unwrap();
        let mut bytes = vec![7; 65_536];
        bytes.resize(3 * 65_536, 0);
        set.set_stable_memory(&bytes).unwrap();
        let counts = |execution: Execution| {
            (
                execution.outcome,
                execution.instructions,
                execution.charge,
                execution.pages,
                execution.memory.stable_accessed,
                execution.memory.stable_written,
            )
        };
        for range in [at(0, 10_000), at(60_000, 10_000), at(131_072, 65_536)] {
            let [one, other] = [&set, &written].map(|it| counts(query(it, "read", &range)));
            assert!(one == other, "{:?}", (one.1, other.1));
            for method in ["read_too", "fill"] {
                let one = counts(update(&mut set, method, &range));
                let other = counts(update(&mut written, method, &range));
                assert!(one == other, "{method}: {:?}", (one.1, other.1));
            }
        }
    }
}

#[test]
fn without_a_module_there_is_no_stable_memory() {
    let mut canister = Replica::new(Rules::today(), None).unwrap().create_canister().unwrap();
    let error = canister.set_stable_memory(b"bytes").unwrap_err();
    assert!(matches!(error, StableMemoryError::NoModule), "{error}");
    assert_eq!(canister.stable_size(), WasmPages(0));
    let words = "the canister has no module, so it has no stable memory; install one first";
    assert_eq!(error.to_string(), words);
    let _: StableMemoryError = HostError::Torn.into();
}

#[test]
fn upgrades_find_it_and_saved_canisters_keep_it() {
    let mut canister = filled();
    canister.set_stable_memory(b"from outside").unwrap();
    canister.upgrade(&compile(MODULE), CALLER, &[]).unwrap().outcome.unwrap();
    assert_eq!(read(&canister, 0, 12), b"from outside");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("canister");
    canister.save(&path).unwrap();
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let mut loaded = replica.load(&path).unwrap();
    assert_eq!(read(&loaded, 0, 13), b"from outside\0");
    loaded.set_stable_memory(b"else").unwrap();
    assert_eq!(read(&loaded, 0, 5), b"else\0");
    assert_eq!(read(&replica.load(&path).unwrap(), 0, 4), b"from", "the file is as it was");
}
