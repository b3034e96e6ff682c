//! Counts of stable memory calls, and stable memory that is set from outside of the canister, whose
//! sizes are those of `set_stable_memory` in `rs/state_machine_tests/src/lib.rs` of the replica.

use stablebench_replica::{
    Bytes, Canister, ErrorCode, Execution, HostError, Replica, Rules, StableCalls,
    StableMemoryError, WasmPages,
};

use crate::support::{CALLER, code, compile, install, numbers, query, update};

/// A method for each kind of call. A canister starts with one page of stable memory, and its first
/// functions use it too.
const CALLS: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reject" (func $reject (param i32 i32)))
    (import "ic0" "accept_message" (func $accept))
    (import "ic0" "stable_grow" (func $grow (param i32) (result i32)))
    (import "ic0" "stable_size" (func $size (result i32)))
    (import "ic0" "stable_read" (func $read (param i32 i32 i32)))
    (import "ic0" "stable_write" (func $write (param i32 i32 i32)))
    (import "ic0" "stable64_read" (func $read64 (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write64 (param i64 i64 i64)))
    (memory 1)
    (func $reads (param $times i32) (param $bytes i32)
        (loop $again
            (call $read (i32.const 0) (i32.const 0) (local.get $bytes))
            (br_if $again
                (local.tee $times (i32.sub (local.get $times) (i32.const 1))))))
    (func $writes (param $times i32) (param $bytes i64)
        (loop $again
            (call $write64 (i64.const 0) (i64.const 0) (local.get $bytes))
            (br_if $again
                (local.tee $times (i32.sub (local.get $times) (i32.const 1))))))
    (func $seven_reads_and_three_writes
        (call $reads (i32.const 7) (i32.const 100))
        (call $writes (i32.const 3) (i64.const 9)))
    (func $start (drop (call $grow (i32.const 1))) (call $writes (i32.const 1) (i64.const 1)))
    (start $start)
    (func (export "canister_init") (call $writes (i32.const 1) (i64.const 20)))
    (func (export "canister_pre_upgrade") (call $writes (i32.const 1) (i64.const 300)))
    (func (export "canister_post_upgrade") (call $reads (i32.const 1) (i32.const 4000)))
    (func (export "canister_inspect_message")
        (call $reads (i32.const 5) (i32.const 5)) (call $accept))

    (func (export "canister_update both")
        (call $seven_reads_and_three_writes) (call $reply))
    (func (export "canister_query ask")
        (call $seven_reads_and_three_writes) (call $reply))
    (func (export "canister_update other widths")
        (call $write (i32.const 0) (i32.const 0) (i32.const 5))
        (call $read64 (i64.const 0) (i64.const 0) (i64.const 6)) (call $reply))
    ;; Copied in words, or in one operation; within a page, or across two.
    (func (export "canister_update sizes")
        (call $reads (i32.const 1) (i32.const 15))
        (call $reads (i32.const 1) (i32.const 64))
        (call $reads (i32.const 1) (i32.const 65))
        (call $writes (i32.const 1) (i64.const 63))
        (call $writes (i32.const 1) (i64.const 4097)) (call $reply))
    (func (export "canister_update nothing") (call $reply))
    (func (export "canister_update size and growth")
        (drop (call $size)) (drop (call $grow (i32.const 1))) (call $reply))
    (func (export "canister_update no bytes")
        (call $reads (i32.const 4) (i32.const 0))
        (call $writes (i32.const 2) (i64.const 0)) (call $reply))
    (func (export "canister_update trap")
        (call $seven_reads_and_three_writes) (unreachable))
    (func (export "canister_update reject")
        (call $seven_reads_and_three_writes) (call $reject (i32.const 0) (i32.const 0)))
    ;; The last call does not return: past the end of stable memory, past that of the heap.
    (func (export "canister_update read past the end")
        (call $seven_reads_and_three_writes)
        (call $read (i32.const 0) (i32.const 65536) (i32.const 1)))
    (func (export "canister_update write from past the heap")
        (call $seven_reads_and_three_writes)
        (call $write64 (i64.const 0) (i64.const 65530) (i64.const 8))))"#;

const BOTH: StableCalls = calls([7, 7 * 100], [3, 3 * 9]);

/// Reads and their bytes, writes and their bytes.
const fn calls([reads, read]: [u64; 2], [writes, written]: [u64; 2]) -> StableCalls {
    StableCalls { reads, bytes_read: Bytes(read), writes, bytes_written: Bytes(written) }
}

#[track_caller]
fn replied(execution: Execution, expected: StableCalls) {
    assert_eq!(execution.stable_calls, expected);
    assert!(numbers(execution).is_empty());
}

#[track_caller]
fn failed(execution: &Execution, expected: ErrorCode, calls: StableCalls) {
    assert_eq!(code(execution), expected);
    assert_eq!(execution.stable_calls, calls);
}

#[test]
fn calls_and_bytes_are_counted() {
    let mut canister = install(CALLS);
    replied(update(&mut canister, "both", &[]), BOTH);
    replied(query(&canister, "ask", &[]), BOTH);
    replied(update(&mut canister, "ask", &[]), BOTH);
    replied(update(&mut canister, "other widths", &[]), calls([1, 6], [1, 5]));
    let sizes = calls([3, 15 + 64 + 65], [2, 63 + 4_097]);
    replied(update(&mut canister, "sizes", &[]), sizes);
    replied(update(&mut canister, "no bytes", &[]), calls([4, 0], [2, 0]));
    replied(update(&mut canister, "size and growth", &[]), StableCalls::default());
}

#[test]
fn each_message_is_counted_separately() {
    let mut canister = install(CALLS);
    replied(update(&mut canister, "nothing", &[]), StableCalls::default());
    for method in ["both", "trap", "ask"] {
        assert_eq!(update(&mut canister, method, &[]).stable_calls, BOTH, "{method}");
        let mut fork = canister.fork();
        replied(update(&mut canister, "nothing", &[]), StableCalls::default());
        replied(update(&mut fork, "nothing", &[]), StableCalls::default());
    }
    assert_eq!(update(&mut canister, "missing", &[]).stable_calls, StableCalls::default());
}

#[test]
fn undone_calls_are_counted() {
    let mut canister = install(CALLS);
    failed(&update(&mut canister, "trap", &[]), ErrorCode::CanisterTrapped, BOTH);
    failed(&update(&mut canister, "reject", &[]), ErrorCode::CanisterRejectedMessage, BOTH);
}

#[test]
fn the_call_that_traps_counts_without_bytes() {
    let mut canister = install(CALLS);
    let trapped = ErrorCode::CanisterTrapped;
    let (read, write) = (calls([8, 700], [3, 27]), calls([7, 700], [4, 27]));
    failed(&update(&mut canister, "read past the end", &[]), trapped, read);
    failed(&update(&mut canister, "write from past the heap", &[]), trapped, write);
}

#[test]
fn installs_and_upgrades_count_the_calls_of_all_functions() {
    let module = compile(CALLS);
    let mut canister = install("(module)");
    // The start function writes 1 byte, canister_init 20.
    replied(canister.install(&module, CALLER, &[]).unwrap(), calls([0, 0], [2, 21]));
    // canister_pre_upgrade writes 300, start 1, canister_post_upgrade reads 4 000.
    let upgraded = canister.upgrade(&module, CALLER, &[]).unwrap();
    replied(upgraded, calls([1, 4_000], [2, 301]));
    replied(update(&mut canister, "nothing", &[]), StableCalls::default());
}

/// A 64-bit heap.
#[test]
fn calls_of_a_64_bit_heap() {
    let mut canister = install(
        r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (memory i64 1)
        (func (export "canister_update go")
            (drop (call $grow (i64.const 1)))
            (call $write (i64.const 0) (i64.const 0) (i64.const 1000))
            (call $read (i64.const 0) (i64.const 0) (i64.const 10))
            (call $read (i64.const 0) (i64.const 0) (i64.const 7))
            (call $reply)))"#,
    );
    replied(update(&mut canister, "go", &[]), calls([2, 17], [1, 1_000]));
}

fn by_name(execution: &Execution) -> Vec<(&'static str, u64, u64)> {
    let calls = execution.system_calls.as_ref().expect("reporting is enabled");
    calls.iter().map(|(name, count)| (name, count.calls, count.bytes.get())).collect()
}

#[test]
fn calls_are_reported_by_name_on_request() {
    let mut canister = install(CALLS);
    assert_eq!(update(&mut canister, "both", &[]).system_calls, None);
    canister.report_calls(true);
    let both = [("msg_reply", 1, 0), ("stable64_write", 3, 27), ("stable_read", 7, 700)];
    assert_eq!(by_name(&update(&mut canister, "both", &[])), both);
    assert_eq!(by_name(&query(&canister.fork(), "ask", &[])), both);
    assert_eq!(
        by_name(&update(&mut canister, "reject", &[])),
        [("msg_reject", 1, 0), ("stable64_write", 3, 27), ("stable_read", 7, 700)]
    );
    // A trap undoes the writes and not the counts.
    assert_eq!(
        by_name(&update(&mut canister, "read past the end", &[])),
        [("stable64_write", 3, 27), ("stable_read", 8, 700)]
    );
    assert_eq!(
        by_name(&update(&mut canister, "size and growth", &[])),
        [("msg_reply", 1, 0), ("stable_size", 1, 0), ("stable_grow", 1, 0)]
    );
    // The functions of an upgrade: pre_upgrade, start, post_upgrade.
    let upgraded = canister.upgrade(&compile(CALLS), CALLER, &[]).unwrap();
    assert_eq!(
        by_name(&upgraded),
        [("stable64_write", 2, 301), ("stable_grow", 1, 0), ("stable_read", 1, 4_000)]
    );
    canister.report_calls(false);
    assert_eq!(update(&mut canister, "both", &[]).system_calls, None);
}

#[test]
fn requested_bytes_are_counted() {
    let mut canister = install(
        r#"(module
            (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "is_controller" (func $controls (param i32 i32) (result i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1)
            (func (export "canister_update echo")
                (call $copy (i32.const 0) (i32.const 1) (i32.const 4))
                (call $append (i32.const 0) (i32.const 3))
                (call $append (i32.const 0) (i32.const 30))
                (drop (call $controls (i32.const 100) (i32.const 10)))
                (call $reply)))"#,
    );
    canister.report_calls(true);
    let execution = canister.update(CALLER, "echo", &[1, 2, 3, 4, 5]).unwrap();
    let expected = [
        ("msg_arg_data_copy", 1, 4),
        ("msg_reply_data_append", 2, 33),
        ("msg_reply", 1, 0),
        ("is_controller", 1, 10),
    ];
    assert_eq!(by_name(&execution), expected);
    assert_eq!(execution.system_calls.unwrap().of("msg_reply_data_append").calls, 2);
}

/// Reads and writes stable memory. The argument is the address and the size, at most a page.
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

/// Bytes that differ from their neighbours.
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
fn stable_memory_is_replaced() {
    let mut canister = filled();
    let [_, version, calls] = state(&canister);
    assert_eq!((canister.stable_size(), calls), (WasmPages(3), 2));
    let bytes = content(70_000);
    canister.set_stable_memory(&bytes).unwrap();
    assert_eq!(canister.stable_size(), WasmPages(2));
    // Heap and globals are unchanged, and so is the version.
    assert_eq!(state(&canister), [2, version, 2]);
    assert_eq!(read(&canister, 0, 65_536), bytes[..65_536]);
    let rest = read(&canister, 65_536, 65_536);
    assert_eq!(rest[..4_464], bytes[65_536..]);
    assert!(rest[4_464..].iter().all(|byte| *byte == 0));
    // The third page does not exist any more.
    assert!(query(&canister, "read", &at(131_072, 1)).outcome.is_err());
    update(&mut canister, "grow", &[]).outcome.unwrap();
    assert!(read(&canister, 131_072, 65_536).iter().all(|byte| *byte == 0));
    // The new memory is writable.
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
fn forks_are_not_affected() {
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

/// Counts do not depend on how pages were written.
#[test]
fn counts_equal_those_of_pages_that_a_message_wrote() {
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
fn upgrades_and_saved_canisters_keep_it() {
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
    assert_eq!(read(&replica.load(&path).unwrap(), 0, 4), b"from", "the file is unchanged");
}

/// Copies to stable memory and back. The argument is the address in the heap, that in stable memory
/// and the size.
const COPIES: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "stable_read" (func $read (param i32 i32 i32)))
    (import "ic0" "stable_write" (func $write (param i32 i32 i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read64 (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write64 (param i64 i64 i64)))
    (memory 2)
    (func (export "canister_init") (drop (call $grow (i64.const 1))))
    ;; Fills the heap from 8192 on with bytes that differ from their neighbours.
    (func $fill (param $factor i32) (local $at i32)
        (loop $next
            (i32.store8 offset=8192 (local.get $at) (i32.mul (local.get $at) (local.get $factor)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $at) (i32.const 4096)))))
    ;; The page is marked by the first write, so that the others can be short. The same heap address
    ;; plus 8192 is the target, and its surroundings are in the reply, as are those in stable memory.
    (func $there_and_back (param $wide i32) (local $heap i32) (local $stable i32) (local $size i32)
        (call $copy (i32.const 0) (i32.const 0) (i32.const 24))
        (local.set $heap (i32.load (i32.const 0)))
        (local.set $stable (i32.load (i32.const 8)))
        (local.set $size (i32.load (i32.const 16)))
        (call $write (i32.const 0) (i32.const 0) (i32.const 8192))
        (call $fill (i32.const 11))
        (if (local.get $wide)
            (then
                (call $write64 (i64.extend_i32_u (local.get $stable))
                    (i64.extend_i32_u (local.get $heap)) (i64.extend_i32_u (local.get $size)))
                (call $read64
                    (i64.extend_i32_u (i32.add (local.get $heap) (i32.const 8192)))
                    (i64.extend_i32_u (local.get $stable)) (i64.extend_i32_u (local.get $size))))
            (else
                (call $write (local.get $stable) (local.get $heap) (local.get $size))
                (call $read (i32.add (local.get $heap) (i32.const 8192)) (local.get $stable)
                    (local.get $size))))
        (call $append (i32.const 16384) (i32.const 4096))
        (call $read (i32.const 0) (i32.const 0) (i32.const 8192))
        (call $append (i32.const 0) (i32.const 8192))
        (call $reply))
    (func (export "canister_query narrow") (call $there_and_back (i32.const 0)))
    (func (export "canister_query wide") (call $there_and_back (i32.const 1)))
    ;; Whole pages of the heap and of stable memory are marked, then one read.
    (func (export "canister_query read")
        (call $copy (i32.const 0) (i32.const 0) (i32.const 24))
        (call $write64 (i64.const 0) (i64.const 0) (i64.const 65536))
        (call $read64 (i64.load (i32.const 0)) (i64.load (i32.const 8)) (i64.load (i32.const 16)))
        (call $reply)))"#;

fn install_under(rules: Rules, wat: &str) -> Canister {
    let replica = Replica::new(rules, None).unwrap();
    let module = replica.compile(&wat::parse_str(wat).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    canister
}

fn three(numbers: [u64; 3]) -> Vec<u8> {
    numbers.map(u64::to_le_bytes).concat()
}

/// Lengths up to one more than the longest copy in words, within a page and across two.
#[test]
fn copies_of_each_length_are_exact() {
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        let canister = install_under(rules, COPIES);
        let filled: Vec<u8> = (0..4_096_u32).map(|at| (at * 11) as u8).collect();
        for size in 0..=129_usize {
            for stable in [16, 4_096 - size, 4_097 - size] {
                let heap = 3_000 + size;
                let mut read = vec![0; 4_096];
                read[heap..][..size].copy_from_slice(&filled[heap..][..size]);
                let mut written = vec![0; 8_192];
                let argument = three([heap as u64 + 8_192, stable as u64, size as u64]);
                written[..24].copy_from_slice(&argument);
                written[stable..][..size].copy_from_slice(&filled[heap..][..size]);
                for method in ["narrow", "wide"] {
                    let reply = query(&canister, method, &argument).outcome.unwrap();
                    let (back, there) = reply.split_at(4_096);
                    assert!(back == read && there == written, "{method} {size} {stable}");
                }
            }
        }
    }
}

/// Addresses that are those of marked pages if some of their bits are ignored.
#[test]
fn short_copies_from_outside_fail() {
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        let canister = install_under(rules, COPIES);
        let read = |heap: u64, stable: u64, size: u64| {
            query(&canister, "read", &three([heap, stable, size])).outcome
        };
        assert_eq!(read(131_064, 65_528, 8), Ok(vec![]));
        for stable in [65_529, 65_536, 1 << 32, 1 << 44, (1 << 44) + 8, u64::MAX - 7, u64::MAX] {
            let reject = read(0, stable, 8).unwrap_err();
            assert_eq!(reject.code, ErrorCode::CanisterTrapped, "{stable}");
            assert!(reject.message.contains("stable memory out of bounds"), "{reject}");
        }
        for heap in [131_065, 131_072, (1 << 32) - 8, 1 << 32, 1 << 63, u64::MAX - 7, u64::MAX] {
            let reject = read(heap, 0, 8).unwrap_err();
            assert_eq!(reject.code, ErrorCode::CanisterTrapped, "{heap}");
            assert!(reject.message.contains("heap out of bounds"), "{reject}");
        }
    }
}
