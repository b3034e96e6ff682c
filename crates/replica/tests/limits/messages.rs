//! Sizes of what messages bring, answer, certify and log.

use stablebench_replica::{Canister, ErrorCode, Execution};

use super::support::{CALLER, code, compile, install, numbers, query, update};
use super::*;

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
    assert_eq!(canister.balance(), before, "what was not taken in is not paid for");
    assert_eq!(canister.module().unwrap().hash(), hash);
}

/// A canister that replies with as many bytes as its argument says, in two parts.
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

/// Printing costs 50 a byte as far as the log has room. The log of a message has
/// 4 096 bytes, and a record takes 40 beside its text.
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
    // One run: the function, eight constants, a store, and five calls; the counter
    // is read after its own price.
    let run = ONE + 8 * ONE + ONE + 5 * CALL + PERFORMANCE_COUNTER;
    let text = |bytes: u64, transmitted: u64| {
        DEBUG_PRINT + bytes + 2 * bytes.min(4_096) + 50 * transmitted
    };
    for (first, second, transmitted) in [
        // 40 bytes are free after the first one.
        (4_016, 40, 40),
        (4_016, 41, 40),
        // One byte, and none.
        (4_055, 1, 1),
        (4_055, 9, 1),
        (4_056, 1, 0),
        // A text is cut to what a record holds.
        (5_000, 1, 0),
        // Only the beginning of a text is sent, and only that of the log.
        (0, 4_056, 4_056),
        (0, 4_057, 4_056),
        (0, 5_000, 4_056),
    ] {
        let expected = run + text(first, first.min(4_096)) + text(second, transmitted);
        assert_eq!(printing(first, second), expected, "{first} and {second} bytes");
    }
}

/// Of a text, 32 KiB are kept; of a trap's too.
#[test]
fn texts() {
    let telling = |bytes: usize| {
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
    assert_eq!(telling(32 << 10), 32 << 10);
    assert_eq!(telling((32 << 10) + 1), 32 << 10);
}

/// A name is held against its limit before it is read, and told whole.
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
