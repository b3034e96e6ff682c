//! Limits of memories and modules: sizes of heap and stable memory, stable pages that one message
//! touches, and sizes of modules.
//!
//! Stable pages are checked against the limit before bytes are copied, and a heap that is too small
//! makes the copy trap. So these tests need not write gigabytes.
//!
//! A module at a limit must also run in bounded time. Limits that are slow to run are tested in
//! `validate/tests/limits.rs`.

use stablebench_replica::{
    Bytes, Canister, Cycles, ErrorCode, Execution, OsPages, Principal, Reject, Settings, WasmPages,
};

use super::*;
use crate::support::{CALLER, code, compile, install, numbers, query, update};

/// Grows its heap by the pages of its argument and replies with the result of `memory.grow`.
const GROWING: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (func $grow
        (call $argument (i32.const 0) (i32.const 0) (i32.const 4))
        (i64.store (i32.const 0) (i64.extend_i32_s (memory.grow (i32.load (i32.const 0)))))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (export "canister_update u" (func $grow))
    (export "canister_query q" (func $grow)))"#;

const PAST_3_GIB: &str = "Canister exceeded its current Wasm memory limit of 3221225472 bytes. \
    The peak Wasm memory usage was 3221291008 bytes. If the canister reaches 4GiB, then it may \
    stop functioning and may become unrecoverable. Please reach out to the canister owner to \
    investigate the reason for the increased memory usage. It might be necessary to move data \
    from the Wasm memory to the stable memory. If such high Wasm memory usage is expected and \
    safe, then the developer can increase the Wasm memory limit in the canister settings";

#[test]
fn heap_of_an_update() {
    let mut canister = install(GROWING);
    let most = u32::try_from(3 * GIB / WASM_PAGE).unwrap();
    let more = update(&mut canister, "u", &most.to_le_bytes());
    rejected(&more, ErrorCode::CanisterWasmMemoryLimitExceeded, PAST_3_GIB);
    assert_eq!(canister.heap_size(), WasmPages(1));

    assert_eq!(numbers(update(&mut canister, "u", &(most - 1).to_le_bytes())), [1]);
    assert_eq!(canister.heap_size(), WasmPages(u64::from(most)));
    let more = update(&mut canister, "u", &1_u32.to_le_bytes());
    assert_eq!(code(&more), ErrorCode::CanisterWasmMemoryLimitExceeded);
    assert_eq!(canister.heap_size(), WasmPages(u64::from(most)));
}

#[test]
fn heap_of_an_install() {
    let growing = |pages: u64| {
        try_install(&format!(
            r#"(module (memory 1) (func (export "canister_init")
                (drop (memory.grow (i32.const {pages})))))"#
        ))
    };
    let most = 3 * GIB / WASM_PAGE;
    let all = growing(most - 1);
    assert_eq!(all.outcome, Ok(vec![]));
    assert_eq!(all.memory.heap, WasmPages(most));
    let more = growing(most);
    rejected(&more, ErrorCode::CanisterWasmMemoryLimitExceeded, PAST_3_GIB);
}

/// Accessible up to the last byte.
#[test]
fn heap_of_4_gib() {
    let canister = install(
        r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (memory 1)
        (func $store (param $at i32)
            (drop (memory.grow (i32.const 65535)))
            (i32.store8 offset=1 (local.get $at) (i32.const 1))
            (call $reply))
        (func (export "canister_query last") (call $store (i32.const -2)))
        (func (export "canister_query past it") (call $store (i32.const -1))))"#,
    );
    assert_eq!(query(&canister, "last", &[]).outcome, Ok(vec![]));
    trapped(&query(&canister, "past it", &[]), "heap out of bounds");
}

#[test]
fn heap_of_a_query() {
    let mut canister = install(GROWING);
    let most = u32::try_from(4 * GIB / WASM_PAGE).unwrap();
    assert_eq!(numbers(query(&canister, "q", &(most - 1).to_le_bytes())), [1]);
    assert_eq!(numbers(query(&canister, "q", &most.to_le_bytes())), [REFUSED]);
    assert_eq!(numbers(update(&mut canister, "q", &(most - 1).to_le_bytes())), [1]);
    assert_eq!(canister.heap_size(), WasmPages(1));
}

#[test]
fn heap_by_the_canisters_settings() {
    let growing = |limit: u64, pages: u32| {
        let mut canister = Canister::new(Settings {
            id: Principal::management_canister(),
            controllers: Vec::new(),
            balance: Cycles(1_000_000_000_000_000),
            heap_limit: Bytes(limit),
        })
        .unwrap();
        canister.install(&compile(GROWING), CALLER, &[]).unwrap().outcome.unwrap();
        update(&mut canister, "u", &pages.to_le_bytes())
    };
    assert_eq!(numbers(growing(10 * WASM_PAGE, 9)), [1]);
    assert_eq!(code(&growing(10 * WASM_PAGE, 10)), ErrorCode::CanisterWasmMemoryLimitExceeded);
    assert_eq!(numbers(growing(0, 65_535)), [1], "0 means no limit");
    assert_eq!(numbers(growing(0, 65_536)), [REFUSED]);
}

/// Accessible beyond 4 GiB, up to the last byte.
#[test]
fn heap_with_64_bit_addresses() {
    let canister = install(
        r#"(module
        (import "ic0" "msg_arg_data_copy" (func $argument (param i64 i64 i64)))
        (import "ic0" "msg_reply_data_append" (func $append (param i64 i64)))
        (import "ic0" "msg_reply" (func $reply))
        (memory i64 1)
        (func (export "canister_query q") (local $last i64)
            (call $argument (i64.const 0) (i64.const 0) (i64.const 8))
            (i64.store (i64.const 0) (memory.grow (i64.load (i64.const 0))))
            (local.set $last (i64.sub (i64.mul (memory.size) (i64.const 65536)) (i64.const 8)))
            (i64.store (local.get $last) (memory.size))
            (call $append (i64.const 0) (i64.const 8))
            (call $append (local.get $last) (i64.const 8))
            (call $reply)))"#,
    );
    let most = 6 * GIB / WASM_PAGE;
    let all = query(&canister, "q", &(most - 1).to_le_bytes());
    assert_eq!(numbers(all), [1, most]);
    assert_eq!(numbers(query(&canister, "q", &most.to_le_bytes())), [REFUSED, 1]);
}

const PAST_LIMIT: &str = "Canister exceeded memory access limits: Exceeded the limit for the \
    number of accessed pages in the stable memory in a single message execution: limit 2097152 KB \
    for regular messages and 1048576 KB for queries";

const CALLS: &str = r#"
    (import "ic0" "stable64_size" (func $size (result i64)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))"#;

/// A canister with more than `bytes` of stable memory, and a method that reads or writes that many
/// at once.
fn touching(kind: &str, call: &str, bytes: u64) -> Canister {
    install(&format!(
        r#"(module {CALLS}
        (memory 1)
        (func (export "canister_init") (drop (call $grow (i64.const {}))))
        (func (export "canister_{kind} go")
            (call ${call} (i64.const 0) (i64.const 0) (i64.const {bytes}))))"#,
        bytes / WASM_PAGE + 1,
    ))
}

/// The counter after one call that copies `bytes`, before pages are charged.
fn called(bytes: u64) -> u64 {
    assert_eq!(STABLE_READ, STABLE_WRITE);
    ONE + 3 * ONE + CALL + STABLE_WRITE + bytes
}

/// Tests the page limit of messages sent by `send`.
fn pages(limit: u64, kind: &str, send: impl Fn(Canister) -> Execution) {
    let pages = limit / OS_PAGE;
    for (call, written) in [("read", 0), ("write", pages)] {
        let most = send(touching(kind, call, limit));
        trapped(&most, "heap out of bounds");
        assert_eq!(most.memory.stable_accessed, OsPages(pages));
        assert_eq!(most.memory.stable_written, OsPages(written));
        assert_eq!(most.instructions.get(), called(limit) + STABLE_PAGE_WRITTEN * written);

        let more = send(touching(kind, call, limit + 1));
        rejected(&more, ErrorCode::CanisterMemoryAccessLimitExceeded, PAST_LIMIT);
        assert_eq!(more.memory.stable_accessed, OsPages(0));
        assert_eq!(more.instructions.get(), called(limit + 1), "pages are not charged");
    }
}

#[test]
fn stable_pages_of_a_query() {
    pages(GIB, "query", |canister| query(&canister, "go", &[]));
}

#[test]
fn stable_pages_of_a_query_called_as_an_update() {
    pages(GIB, "query", |mut canister| update(&mut canister, "go", &[]));
}

#[test]
fn stable_pages_of_an_update() {
    pages(2 * GIB, "update", |mut canister| update(&mut canister, "go", &[]));
}

/// Reads a byte of each page until the limit is reached.
#[test]
fn stable_pages_that_an_install_reads() {
    let execution = try_install(&format!(
        r#"(module {CALLS}
        (memory 1)
        (func (export "canister_init") (local $at i64)
            (drop (call $grow (i64.const {})))
            (loop $next
                (call $read (i64.const 0) (local.get $at) (i64.const 1))
                (local.set $at (i64.add (local.get $at) (i64.const {OS_PAGE})))
                (br $next))))"#,
        8 * GIB / WASM_PAGE + 1,
    ));
    rejected(&execution, ErrorCode::CanisterMemoryAccessLimitExceeded, PAST_LIMIT);
    let pages = 8 * GIB / OS_PAGE;
    assert_eq!(execution.memory.stable_accessed, OsPages(pages));
    // The function, a constant, drop; a round is seven operators, the call and `br`.
    let grown = 3 * ONE + CALL + STABLE_GROW;
    let round = 7 * ONE + CALL + BR + STABLE_READ + 1;
    assert_eq!(execution.instructions.get(), grown + round * (pages + 1));
}

/// Written pages count as accessed too, so this upgrade reaches the limit at which the install above
/// stopped. One call cannot write that much, because it would cost more than a slice.
#[test]
fn stable_pages_of_an_upgrade() {
    let (read, written) = (5 * GIB, 3 * GIB);
    let new = compile(&format!(
        r#"(module {CALLS}
        (memory 1)
        (func (export "canister_post_upgrade") (local $at i64)
            (drop (call $grow (i64.const {})))
            (loop $next
                (call $read (i64.const 0) (local.get $at) (i64.const 1))
                (br_if $next (i64.lt_u
                    (local.tee $at (i64.add (local.get $at) (i64.const {OS_PAGE})))
                    (i64.const {read}))))
            (call $write (i64.const {read}) (i64.const 0) (i64.const {written}))))"#,
        8 * GIB / WASM_PAGE + 1,
    ));
    let most = install("(module)").upgrade(&new, CALLER, &[]).unwrap();
    trapped(&most, "heap out of bounds");
    assert_eq!(most.memory.stable_accessed, OsPages(8 * GIB / OS_PAGE));
    assert_eq!(most.memory.stable_written, OsPages(written / OS_PAGE));
}

/// Accessible up to the last byte, in later messages and in a fork.
#[test]
fn stable_memory_of_500_gib() {
    let most = 500 * GIB;
    let mut canister = install(&format!(
        r#"(module {CALLS}
        (memory 1)
        (func (export "canister_update grow")
            (i64.store (i32.const 0) (call $grow (i64.const {})))
            (i64.store (i32.const 8) (call $grow (i64.const 2)))
            (i64.store (i32.const 16) (call $grow (i64.const 1)))
            (i64.store (i32.const 24) (call $grow (i64.const 1)))
            (i64.store (i32.const 32) (call $grow (i64.const -1)))
            (i64.store (i32.const 40) (call $size))
            (call $append (i32.const 0) (i32.const 48)) (call $reply))
        (func (export "canister_update write")
            (call $write (i64.const {}) (i64.const 32) (i64.const 8)) (call $reply))
        (func (export "canister_update write past it")
            (call $write (i64.const {}) (i64.const 0) (i64.const 8)) (call $reply))
        (func (export "canister_query read")
            (call $read (i64.const 0) (i64.const {}) (i64.const 8))
            (call $append (i32.const 0) (i32.const 8)) (call $reply)))"#,
        most / WASM_PAGE - 1,
        most - 8,
        most - 7,
        most - 8,
    ));
    let all = most / WASM_PAGE;
    let grown = numbers(update(&mut canister, "grow", &[]));
    assert_eq!(grown, [0, REFUSED, all - 1, REFUSED, REFUSED, all]);
    assert_eq!(canister.stable_size(), WasmPages(all));
    let fork = canister.fork();
    assert_eq!(update(&mut canister, "write", &[]).outcome, Ok(vec![]));
    trapped(&update(&mut canister, "write past it", &[]), "stable memory out of bounds");
    assert_eq!(numbers(query(&canister, "read", &[])), [REFUSED]);
    assert_eq!(numbers(query(&fork, "read", &[])), [0]);
}

/// The 32-bit calls support up to 4 GiB, and fail on a larger stable memory.
#[test]
fn stable_memory_of_the_32_bit_calls() {
    const TOO_LARGE: &str = "32 bit stable memory api used on a memory larger than 4GB";
    let mut canister = install(
        r#"(module
        (import "ic0" "stable64_grow" (func $grow64 (param i64) (result i64)))
        (import "ic0" "stable_size" (func $size (result i32)))
        (import "ic0" "stable_grow" (func $grow (param i32) (result i32)))
        (import "ic0" "stable_read" (func $read (param i32 i32 i32)))
        (import "ic0" "stable_write" (func $write (param i32 i32 i32)))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (memory 1)
        (func $answer (param i32)
            (i64.store (i32.const 0) (i64.extend_i32_s (local.get 0)))
            (call $append (i32.const 0) (i32.const 8)) (call $reply))
        (func (export "canister_update grow to 4 GiB") (call $answer (call $grow (i32.const 65536))))
        (func (export "canister_update grow64") (drop (call $grow64 (i64.const 1))) (call $reply))
        (func (export "canister_query grow") (call $answer (call $grow (i32.const 1))))
        (func (export "canister_query size") (call $answer (call $size)))
        (func (export "canister_query read")
            (call $read (i32.const 0) (i32.const -1) (i32.const 1)) (call $reply))
        (func (export "canister_query write")
            (call $write (i32.const -1) (i32.const 0) (i32.const 1)) (call $reply))
        (func (export "canister_query read past it")
            (call $read (i32.const 0) (i32.const -1) (i32.const 2)) (call $reply)))"#,
    );
    assert_eq!(numbers(update(&mut canister, "grow to 4 GiB", &[])), [0]);
    assert_eq!(numbers(query(&canister, "grow", &[])), [REFUSED]);
    assert_eq!(numbers(query(&canister, "size", &[])), [4 * GIB / WASM_PAGE]);
    assert_eq!(query(&canister, "read", &[]).outcome, Ok(vec![]));
    assert_eq!(query(&canister, "write", &[]).outcome, Ok(vec![]));
    trapped(&query(&canister, "read past it", &[]), "stable memory out of bounds");
    assert_eq!(update(&mut canister, "grow64", &[]).outcome, Ok(vec![]));
    for method in ["grow", "size", "read", "write", "read past it"] {
        trapped(&query(&canister, method, &[]), TOO_LARGE);
    }
}

fn refusal(wat: &str) -> Reject {
    let wasm = wat::parse_str(wat).unwrap();
    Replica::new(stablebench_replica::Rules::of_2025_10(), None)
        .unwrap()
        .compile(&wasm)
        .expect_err("a module that is too large")
}

#[track_caller]
fn refused(wat: &str, expected: &str) {
    let reject = refusal(wat);
    let expected = format!("Canister's Wasm module is not valid: {expected}");
    assert_eq!((reject.code, words(&reject.message)), (ErrorCode::CanisterInvalidWasm, &*expected));
}

/// The text repeated; `#` is replaced by the number of the repetition.
fn repeated(count: usize, text: &str) -> String {
    (0..count).map(|number| text.replace('#', &number.to_string())).collect()
}

#[test]
fn functions() {
    // The module already has three functions.
    let functions = |count: usize| {
        let more = repeated(count - 3, "(func $f# (param i32) (result i32) (local.get 0))");
        format!(
            r#"(module
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1) {more}
            (func $last (param i32) (result i32) (i32.add (local.get 0) (i32.const 1)))
            (func $store (param i32) (i64.store (i32.const 0) (i64.extend_i32_u (local.get 0))))
            (func (export "canister_query go")
                (call $store (call $last (i32.const 6)))
                (call $append (i32.const 0) (i32.const 8)) (call $reply)))"#
        )
    };
    assert_eq!(numbers(query(&install(&functions(50_000)), "go", &[])), [7]);
    refused(
        &functions(50_001),
        "Wasm module defined 50001 functions which exceeds the maximum number allowed 50000",
    );
}

/// All globals keep their values between messages.
#[test]
fn globals() {
    let globals = |count: usize| {
        let all = repeated(count, "(global (mut i64) (i64.const #))");
        let bump = repeated(count, "(global.set # (i64.add (global.get #) (i64.const 1)))");
        let sum = repeated(count, "(local.set $sum (i64.add (local.get $sum) (global.get #)))");
        format!(
            r#"(module
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1) {all}
            (func (export "canister_update bump") {bump} (call $reply))
            (func (export "canister_query sum") (local $sum i64) {sum}
                (i64.store (i32.const 0) (local.get $sum))
                (call $append (i32.const 0) (i32.const 8)) (call $reply)))"#
        )
    };
    let mut canister = install(&globals(1_000));
    let first = (0..1_000).sum::<u64>();
    assert_eq!(numbers(query(&canister, "sum", &[])), [first]);
    assert_eq!(update(&mut canister, "bump", &[]).outcome, Ok(vec![]));
    assert_eq!(numbers(query(&canister, "sum", &[])), [first + 1_000]);
    refused(
        &globals(1_001),
        "Wasm module defined 1001 globals which exceeds the maximum number allowed 1000",
    );
}

#[test]
fn methods() {
    let methods = |count: usize| {
        let all = repeated(count, r#"(export "canister_update m#" (func $reply))"#);
        format!(r#"(module (import "ic0" "msg_reply" (func $reply)) {all})"#)
    };
    let mut canister = install(&methods(1_000));
    assert_eq!(update(&mut canister, "m999", &[]).outcome, Ok(vec![]));
    refused(
        &methods(1_001),
        "The number of exported functions called `canister_update <name>`, `canister_query \
         <name>`, or `canister_composite_query <name>` is 1001 which exceeds 1000",
    );
}

/// The canister's limit applies, and the limit of all heaps.
#[test]
fn first_size_of_the_heap() {
    let heap = |pages: u64| format!("(module (memory {pages}))");
    assert_eq!(install(&heap(49_152)).heap_size(), WasmPages(49_152));
    let more = try_install(&heap(49_153));
    assert_eq!(code(&more), ErrorCode::CanisterWasmMemoryLimitExceeded);
    let most = compile(&heap(65_536));
    assert_eq!(unlimited().install(&most, CALLER, &[]).unwrap().outcome, Ok(vec![]));
    let upgraded = install("(module)").upgrade(&most, CALLER, &[]).unwrap();
    assert_eq!(code(&upgraded), ErrorCode::CanisterWasmMemoryLimitExceeded);
    let reject = refusal(&heap(65_537));
    assert_eq!(reject.code, ErrorCode::CanisterInvalidWasm);
    let expected = "memory size must be at most 0x10000 65536-byte pages";
    assert!(reject.message.contains(expected), "{reject}");

    let heap = |pages: u64| format!("(module (memory i64 {pages}))");
    let most = compile(&heap(98_304));
    assert_eq!(unlimited().install(&most, CALLER, &[]).unwrap().outcome, Ok(vec![]));
    refused(
        &heap(98_305),
        "Wasm module declares an initial Wasm64 heap memory size of 98305 pages which exceeds \
         the maximum allowed size of 98304 pages",
    );
}

/// A canister without a heap limit.
fn unlimited() -> Canister {
    Canister::new(Settings {
        id: Principal::management_canister(),
        controllers: Vec::new(),
        balance: Cycles(0),
        heap_limit: Bytes(0),
    })
    .unwrap()
}

/// Up to the last byte of the initial heap.
#[test]
fn data() {
    let data = |address: u64| {
        format!(
            r#"(module
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 2) (data (i32.const {address}) "12345678")
            (func (export "canister_query go")
                (call $append (i32.const {address}) (i32.const 8)) (call $reply)))"#
        )
    };
    assert_eq!(query(&install(&data(131_064)), "go", &[]).outcome, Ok(b"12345678".to_vec()));
    let reject = refusal(&data(131_065));
    let expected = "Could not instrument wasm module of canister: Wasm module has invalid data \
                    segment of 8 bytes at 131065";
    assert_eq!((reject.code, words(&reject.message)), (ErrorCode::CanisterInvalidWasm, expected));
}

#[test]
fn table() {
    let with_table = |elements: u32| {
        format!(
            r#"(module (import "ic0" "msg_reply" (func $reply))
                (table {elements} funcref) (elem (i32.const {}) $reply)
                (func (export "canister_update go") (call_indirect (i32.const {}))))"#,
            elements - 1,
            elements - 1,
        )
    };
    let last = update(&mut install(&with_table(1_000_000)), "go", &[]);
    assert_eq!(last.outcome, Ok(vec![]));
    let reject = refusal(&with_table(1_000_001));
    let expected = "Canister encountered a Wasm engine error: Failed to instantiate module: table \
                    minimum size of 1000001 elements exceeds table limits";
    let got = (reject.code, words(&reject.message));
    assert_eq!(got, (ErrorCode::CanisterWasmEngineError, expected));
}
