//! Sizes of arguments, replies, certified data and logs, and sizes of modules.
//!
//! A module at a limit must also run in bounded time. Limits that are slow to run are tested in
//! `validate/tests/limits.rs`.

use stablebench_replica::{
    Bytes, Canister, Cycles, ErrorCode, Execution, Principal, Reject, Settings, WasmPages,
};

use super::*;
use crate::support::{CALLER, code, compile, install, numbers, query, update};

#[test]
fn argument() {
    let mut canister = install(
        r#"(module
            (import "ic0" "msg_arg_data_size" (func $size (result i32)))
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1)
            (func $answer
                (i64.store (i32.const 0) (i64.extend_i32_u (call $size)))
                (call $append (i32.const 0) (i32.const 8)) (call $reply))
            (export "canister_update u" (func $answer))
            (export "canister_query q" (func $answer)))"#,
    );
    let most = vec![0; 2 * MIB];
    assert_eq!(numbers(update(&mut canister, "u", &most)), [2 << 20]);
    assert_eq!(numbers(query(&canister, "q", &most)), [2 << 20]);
    let module = compile("(module)");
    assert_eq!(canister.fork().install(&module, CALLER, &most).unwrap().outcome, Ok(vec![]));
    assert_eq!(canister.fork().upgrade(&module, CALLER, &most).unwrap().outcome, Ok(vec![]));

    let more = vec![0; 2 * MIB + 1];
    let (before, hash) = (canister.balance(), canister.module().unwrap().hash());
    for refused in [
        update(&mut canister, "u", &more),
        query(&canister, "q", &more),
        canister.install(&module, CALLER, &more).unwrap(),
        canister.upgrade(&module, CALLER, &more).unwrap(),
    ] {
        assert_eq!(code(&refused), ErrorCode::InvalidManagementPayload);
    }
    assert_eq!(canister.balance(), before, "a message that is not inducted is free");
    assert_eq!(canister.module().unwrap().hash(), hash);
}

/// Replies with as many bytes as its argument says, in two parts.
fn replying() -> Canister {
    install(
        r#"(module
            (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reject" (func $reject (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 64)
            (func $size (result i32)
                (call $argument (i32.const 0) (i32.const 0) (i32.const 4))
                (i32.load (i32.const 0)))
            (func $answer (local $size i32)
                (local.set $size (call $size))
                (call $append (i32.const 4) (i32.const 1000000))
                (call $append (i32.const 4) (i32.sub (local.get $size) (i32.const 1000000)))
                (call $reply))
            (export "canister_update u" (func $answer))
            (export "canister_query q" (func $answer))
            (func (export "canister_update reject")
                (call $reject (i32.const 4) (call $size))))"#,
    )
}

#[test]
fn reply() {
    let mut canister = replying();
    let size = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    let length = |execution: &Execution| execution.outcome.as_ref().map(Vec::len).ok();

    let too_long = |execution: &Execution, call: &str, bytes: usize, limit: usize| {
        let words = format!(
            "Canister violated contract: ic0.{call}: application payload size ({bytes}) cannot be \
             larger than {limit}"
        );
        rejected(execution, ErrorCode::CanisterContractViolation, &words);
    };
    for called in ["u", "q"] {
        let most = update(&mut canister, called, &size(2 * MIB));
        assert_eq!(length(&most), Some(2 * MIB));
        let more = update(&mut canister, called, &size(2 * MIB + 1));
        too_long(&more, "msg_reply_data_append", 2_097_153, 2_097_152);
    }
    assert_eq!(length(&query(&canister, "q", &size(3 * MIB))), Some(3 * MIB));
    let more = query(&canister, "q", &size(3 * MIB + 1));
    too_long(&more, "msg_reply_data_append", 3_145_729, 3_145_728);

    let most = update(&mut canister, "reject", &size(2 * MIB));
    assert_eq!(code(&most), ErrorCode::CanisterRejectedMessage);
    assert_eq!(most.outcome.unwrap_err().message.len(), 2 * MIB);
    let more = update(&mut canister, "reject", &size(2 * MIB + 1));
    too_long(&more, "msg_reject", 2_097_153, 2_097_152);
}

#[test]
fn certified_data() {
    let mut canister = install(
        r#"(module
            (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1) (data (i32.const 0) "certified data of 33 bytes, not 32")
            (func (export "canister_update 32")
                (call $certify (i32.const 0) (i32.const 32)) (call $reply))
            (func (export "canister_update 33")
                (call $certify (i32.const 0) (i32.const 33)) (call $reply))
            (func (export "canister_query q")
                (call $certify (i32.const 0) (i32.const 1)) (call $reply)))"#,
    );
    assert_eq!(canister.certified_data(), b"");
    rejected(
        &update(&mut canister, "33", &[]),
        ErrorCode::CanisterContractViolation,
        "Canister violated contract: ic0_certified_data_set failed because the passed data must \
         be no larger than 32 bytes. Found 33 bytes",
    );
    assert_eq!(canister.certified_data(), b"");
    assert_eq!(update(&mut canister, "32", &[]).outcome, Ok(vec![]));
    assert_eq!(canister.certified_data(), b"certified data of 33 bytes, not ");
    assert_eq!(code(&query(&canister, "q", &[])), ErrorCode::CanisterContractViolation);
    assert_eq!(canister.certified_data(), b"certified data of 33 bytes, not ");
}

/// Printing costs 50 per byte while the log has space. The log of a message has 4 096 bytes, and a
/// record takes 40 in addition to its text.
#[test]
fn log() {
    let printing = |first: u64, second: u64| {
        let mut canister = install(&format!(
            r#"(module
            (import "ic0" "debug_print" (func $print (param i32 i32)))
            (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1)
            (func (export "canister_update go")
                (call $print (i32.const 0) (i32.const {first}))
                (call $print (i32.const 0) (i32.const {second}))
                (i64.store (i32.const 0) (call $counter (i32.const 0)))
                (call $append (i32.const 0) (i32.const 8)) (call $reply)))"#
        ));
        numbers(update(&mut canister, "go", &[]))[0]
    };
    // One run: the function, eight constants, a store, and five calls; the counter is read after its
    // own price.
    let run = ONE + 8 * ONE + ONE + 5 * CALL + PERFORMANCE_COUNTER;
    let text = |bytes: u64, transmitted: u64| {
        DEBUG_PRINT + bytes + 2 * bytes.min(4_096) + 50 * transmitted
    };
    for (first, second, transmitted) in [
        // 40 bytes are free after the first text.
        (4_016, 40, 40),
        (4_016, 41, 40),
        // One byte, and none.
        (4_055, 1, 1),
        (4_055, 9, 1),
        (4_056, 1, 0),
        // A text is truncated to the size of a record.
        (5_000, 1, 0),
        // Only the start of a text is transmitted, as far as the log has space.
        (0, 4_056, 4_056),
        (0, 4_057, 4_056),
        (0, 5_000, 4_056),
    ] {
        let expected = run + text(first, first.min(4_096)) + text(second, transmitted);
        assert_eq!(printing(first, second), expected, "{first} and {second} bytes");
    }
}

/// 32 KiB of a text are kept, also of a trap's.
#[test]
fn texts() {
    let kept = |bytes: usize| {
        let canister = install(&format!(
            r#"(module
            (import "ic0" "debug_print" (func $print (param i32 i32)))
            (import "ic0" "trap" (func $trap (param i32 i32)))
            (memory 1)
            (func (export "canister_query go")
                (memory.fill (i32.const 0) (i32.const 97) (i32.const {bytes}))
                (call $print (i32.const 0) (i32.const {bytes}))
                (call $trap (i32.const 0) (i32.const {bytes}))))"#
        ));
        let execution = query(&canister, "go", &[]);
        assert_eq!(code(&execution), ErrorCode::CanisterCalledTrap);
        let message = execution.outcome.unwrap_err().message;
        let letters = message.rsplit('\'').nth(1).expect("a text in quotes");
        assert_eq!(execution.printed, [letters]);
        letters.len()
    };
    assert_eq!(kept(32 << 10), 32 << 10);
    assert_eq!(kept((32 << 10) + 1), 32 << 10);
}

/// The length of a name is checked before it is read.
#[test]
fn names_of_environment_variables() {
    let asking = |call: &str, more: &str, size: u64| {
        let result = if call.ends_with("copy") { "" } else { "(result i32)" };
        let extra = more.matches("const").count();
        let params = "i32 ".repeat(2 + extra);
        let drop = if result.is_empty() { "" } else { "(drop)" };
        let canister = install(&format!(
            r#"(module
            (import "ic0" "{call}" (func $call (param {params}) {result}))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1)
            (func (export "canister_query go")
                (memory.fill (i32.const 0) (i32.const 97) (i32.const 1000))
                (call $call (i32.const 0) (i32.const {size}) {more}) {drop}
                (call $reply)))"#
        ));
        query(&canister, "go", &[])
    };
    let three = "(i32.const 0) (i32.const 0) (i32.const 0)";
    assert_eq!(asking("env_var_name_exists", "", 100).outcome, Ok(vec![]));
    let unknown = format!("Environment variable {} not found", "a".repeat(100));
    for (call, more) in [("env_var_value_size", ""), ("env_var_value_copy", three)] {
        rejected(&asking(call, more, 100), ErrorCode::CanisterContractViolation, &unknown);
    }
    for (call, more) in
        [("env_var_name_exists", ""), ("env_var_value_size", ""), ("env_var_value_copy", three)]
    {
        let words = format!("Canister violated contract: ic0.{call}: Variable name is too large");
        rejected(&asking(call, more, 101), ErrorCode::CanisterContractViolation, &words);
        rejected(&asking(call, more, 1 << 31), ErrorCode::CanisterContractViolation, &words);
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
