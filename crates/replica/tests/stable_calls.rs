//! Calls of stable memory are counted as made, and only those of the message.

use stablebench_replica::{Bytes, ErrorCode, Execution, StableCalls};

mod support;

use support::{CALLER, code, compile, install, numbers, query, update};

/// A method for each way in which a message calls stable memory. A canister begins with one
/// page of it, and its first functions call it too.
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
    ;; Copied in words, and at once; within a page, and over two.
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

/// Reads and their bytes, writes and theirs.
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
fn so_many_calls_of_so_many_bytes() {
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
fn nothing_leaks_from_one_message_into_the_next() {
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
fn what_is_undone_was_called() {
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
fn installs_and_upgrades_tell_those_of_all_functions() {
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
    let calls = execution.system_calls.as_ref().expect("they were asked for");
    calls.iter().map(|(name, count)| (name, count.calls, count.bytes.get())).collect()
}

#[test]
fn every_call_by_name_when_asked() {
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
    // All functions that run at an upgrade: pre_upgrade, start, post_upgrade.
    let upgraded = canister.upgrade(&compile(CALLS), CALLER, &[]).unwrap();
    assert_eq!(
        by_name(&upgraded),
        [("stable64_write", 2, 301), ("stable_grow", 1, 0), ("stable_read", 1, 4_000)]
    );
    canister.report_calls(false);
    assert_eq!(update(&mut canister, "both", &[]).system_calls, None);
}

#[test]
fn bytes_of_what_is_passed() {
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
