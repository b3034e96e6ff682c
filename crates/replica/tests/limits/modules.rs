//! Sizes of modules. What is at a limit not only passes validation but runs, and in
//! bounded time; `validate/tests/limits.rs` holds those that are slow to run.

use stablebench_replica::{Bytes, Cycles, ErrorCode, Principal, Reject, Settings, WasmPages};

use super::support::{code, install, numbers, query, update};
use super::*;

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

/// The text repeated, each time with its number for `#`.
fn repeated(count: usize, text: &str) -> String {
    (0..count).map(|number| text.replace('#', &number.to_string())).collect()
}

#[test]
fn functions() {
    // Three functions stand in the module already.
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

/// All of them are kept from one message to the next.
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

/// The canister's limit holds for it, and the largest heap that there can be.
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

/// A canister whose settings have no limit on the heap.
fn unlimited() -> Canister {
    Canister::new(Settings {
        id: Principal::management_canister(),
        controllers: Vec::new(),
        balance: Cycles(0),
        heap_limit: Bytes(0),
    })
    .unwrap()
}

/// To the last byte of the heap's first size.
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
