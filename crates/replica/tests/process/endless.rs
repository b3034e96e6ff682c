//! Canisters that never return: limits bound their cost for the host, in time and in memory.
//! Recursion is tested in `limits`.

use stablebench_replica::{Canister, ErrorCode, Execution, Replica};

use super::alone;
#[cfg(target_os = "linux")]
use super::peak_memory;
use crate::support::{
    CALLER, code, compile, install, out_of_instructions, query, rejected, update,
};

const UPDATE: u64 = 40_000_000_000;
const QUERY: u64 = 5_000_000_000;
const INSTALL: u64 = 300_000_000_000;
const INSPECT: u64 = 200_000_000;

const MIB: u64 = 1 << 20;

/// Operators that cost 21 000 instructions and compile to nothing. With them, messages reach the
/// instruction limit soon.
fn expensive() -> String {
    "(drop (f64.min (f64.const 0) (f64.const 0)))".repeat(1_000)
}

/// A module with a function `$go` that repeats `work` in a loop, and the exports in `uses`.
fn forever(work: &str, uses: &str) -> String {
    format!(
        r#"(module
        (import "ic0" "cost_sign_with_ecdsa"
            (func $cost (param i32 i32 i32 i32) (result i32)))
        (import "ic0" "debug_print" (func $print (param i32 i32)))
        (import "ic0" "msg_reject" (func $reject (param i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (import "ic0" "trap" (func $trap (param i32 i32)))
        (memory 16)
        (func $go (loop $again {work} {} (br $again)))
        {uses})"#,
        expensive()
    )
}

fn updating(work: &str) -> Execution {
    update(&mut install(&forever(work, r#"(export "canister_update go" (func $go))"#)), "go", &[])
}

fn querying(work: &str) -> Execution {
    query(&install(&forever(work, r#"(export "canister_query go" (func $go))"#)), "go", &[])
}

fn installing(work: &str, uses: &str) -> Execution {
    let mut canister = Replica::new(stablebench_replica::Rules::of_2025_10(), None)
        .unwrap()
        .create_canister()
        .unwrap();
    canister.install(&compile(&forever(work, uses)), CALLER, &[]).unwrap()
}

/// Checks the peak resident memory of a test, including compilation.
#[track_caller]
fn bounded_memory() {
    #[cfg(target_os = "linux")]
    {
        let peak = peak_memory().unwrap();
        assert!(peak < 512 << 20, "{} MiB at some time", peak >> 20);
        assert!(crate::support::held() < 512 << 20);
    }
}

#[test]
fn loops() {
    let _alone = alone();
    out_of_instructions(&updating(""), UPDATE);
    out_of_instructions(&querying(""), QUERY);
    for uses in ["(start $go)", r#"(export "canister_init" (func $go))"#] {
        out_of_instructions(&installing("", uses), INSTALL);
    }

    let old = forever("", r#"(export "canister_pre_upgrade" (func $go))"#);
    let upgraded = install(&old).upgrade(&compile("(module)"), CALLER, &[]).unwrap();
    out_of_instructions(&upgraded, INSTALL);
    let new = compile(&forever("", r#"(export "canister_post_upgrade" (func $go))"#));
    let upgraded = install("(module)").upgrade(&new, CALLER, &[]).unwrap();
    out_of_instructions(&upgraded, INSTALL);

    let mut canister = install(&forever(
        "",
        r#"(export "canister_inspect_message" (func $go))
        (export "canister_update u" (func $reply))
        (export "canister_composite_query q" (func $go))"#,
    ));
    let words = format!(
        "Canister exceeded the limit of {INSPECT} instructions for single message execution"
    );
    let not_let_in = update(&mut canister, "u", &[]);
    rejected(&not_let_in, ErrorCode::CanisterInstructionLimitExceeded, &words);
    out_of_instructions(&query(&canister, "q", &[]), QUERY);
    bounded_memory();
}

/// An empty loop is not free: its branch is checked.
#[test]
fn a_loop_of_nothing() {
    let _alone = alone();
    let canister = install(
        r#"(module (import "ic0" "msg_reply" (func $reply))
        (func (export "canister_inspect_message") (loop $again (br $again)))
        (func (export "canister_update u") (call $reply)))"#,
    );
    let not_let_in = update(&mut canister.fork(), "u", &[]);
    assert_eq!(code(&not_let_in), ErrorCode::CanisterInstructionLimitExceeded);
}

/// Printed texts are kept up to a total size, with 40 bytes for each.
#[track_caller]
fn printed_to_the_end(execution: &Execution, each: usize) {
    assert_eq!(code(execution), ErrorCode::CanisterInstructionLimitExceeded);
    assert_eq!(execution.printed.len(), (2 << 20) / (each + 40));
    assert!(execution.printed_before > 0);
    assert!(execution.printed.iter().all(|text| text.len() == each));
    bounded_memory();
}

#[test]
fn printing() {
    let _alone = alone();
    let short = "(call $print (i32.const 0) (i32.const 3))";
    printed_to_the_end(&querying(short), 3);
    printed_to_the_end(&updating(short), 3);
    let nothing = "(call $print (i32.const 0) (i32.const 0))";
    printed_to_the_end(&querying(nothing), 0);
    let long = "(call $print (i32.const 0) (i32.const 40000))";
    printed_to_the_end(&querying(long), 32 << 10);
    printed_to_the_end(&updating(long), 32 << 10);
    // Invalid UTF-8 becomes three times as long.
    let noise = "(memory.fill (i32.const 0) (i32.const 255) (i32.const 40000))";
    printed_to_the_end(&querying(&format!("{noise} {long}")), 96 << 10);
    let outside = "(call $print (i32.const -1) (i32.const 1000))";
    printed_to_the_end(&querying(outside), "(debug message out of memory bounds)".len());
}

#[test]
fn printing_while_installing() {
    let _alone = alone();
    let long = "(call $print (i32.const 0) (i32.const 1000000))";
    for uses in ["(start $go)", r#"(export "canister_init" (func $go))"#] {
        printed_to_the_end(&installing(long, uses), 32 << 10);
    }
}

/// Texts of rejects are truncated, even if the canister passes a longer one.
#[test]
fn long_texts_of_rejects() {
    let _alone = alone();
    let noise = "(memory.fill (i32.const 0) (i32.const 255) (i32.const 1048576))";
    for (ends, expected, longest) in [
        ("(call $trap (i32.const 0) (i32.const 1048576))", ErrorCode::CanisterCalledTrap, 97 << 10),
        (
            "(drop (call $cost (i32.const 0) (i32.const 1048576) (i32.const 0) (i32.const 0)))",
            ErrorCode::CanisterContractViolation,
            97 << 10,
        ),
        (
            "(call $reject (i32.const 0) (i32.const 1048576))",
            ErrorCode::CanisterContractViolation,
            1 << 10,
        ),
    ] {
        for execution in
            [querying(&format!("{noise} {ends}")), updating(&format!("{noise} {ends}"))]
        {
            let reject = execution.outcome.unwrap_err();
            assert_eq!(reject.code, expected, "{ends}");
            assert!(reject.message.len() < longest, "{ends}: {} bytes", reject.message.len());
        }
    }
    // A text longer than the message can pay for ends the message before it is read.
    let outside = "(call $trap (i32.const 0) (i32.const -1))";
    assert_eq!(code(&querying(outside)), ErrorCode::CanisterCalledTrap);
    bounded_memory();
}

#[test]
fn replying() {
    let _alone = alone();
    let endless = querying("(call $append (i32.const 0) (i32.const 65536))");
    assert_eq!(code(&endless), ErrorCode::CanisterContractViolation);
    let nothing = querying("(call $append (i32.const 0) (i32.const 0))");
    assert_eq!(code(&nothing), ErrorCode::CanisterInstructionLimitExceeded);
    bounded_memory();
}

/// Asserts that the canister is as it was installed.
#[track_caller]
fn unchanged(canister: &Canister) {
    assert_eq!((canister.heap_size().get(), canister.stable_size().get()), (16, 0));
}

#[test]
fn growing_the_heap() {
    let _alone = alone();
    let grow = "(drop (memory.grow (i32.const 1)))";
    out_of_instructions(&querying(grow), QUERY);
    assert_eq!(querying(grow).memory.heap.get(), 65_536);
    // One page of 4 KiB in each MiB is written: 16 MiB in all.
    let touch = r"(drop (memory.grow (i32.const 16)))
        (i32.store (i32.mul (i32.sub (memory.size) (i32.const 1)) (i32.const 65536)) (i32.const 1))";
    out_of_instructions(&querying(touch), QUERY);

    let mut canister = install(&forever(touch, r#"(export "canister_update go" (func $go))"#));
    let execution = update(&mut canister, "go", &[]);
    assert_eq!(code(&execution), ErrorCode::CanisterWasmMemoryLimitExceeded);
    unchanged(&canister);
    bounded_memory();
}

#[test]
fn growing_stable_memory() {
    let _alone = alone();
    // After the first 501 times it returns −1.
    let grow = "(drop (call $grow (i64.const 16384)))
        (call $write (i64.const 1000000000) (i64.const 0) (i64.const 1))";
    out_of_instructions(&querying(grow), QUERY);
    assert_eq!(querying(grow).memory.stable.get(), 500 << 14);
    let mut canister = install(&forever(grow, r#"(export "canister_update go" (func $go))"#));
    out_of_instructions(&update(&mut canister, "go", &[]), UPDATE);
    unchanged(&canister);
    bounded_memory();
}

/// A canister that keeps growing over several messages.
#[test]
fn growing_in_message_after_message() {
    let _alone = alone();
    let mut canister = install(
        r#"(module
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "msg_reply" (func $reply))
        (memory 1)
        (func (export "canister_update go")
            (drop (memory.grow (i32.const 4096)))
            (drop (call $grow (i64.const 1000000)))
            (call $reply)))"#,
    );
    for round in 1..=20 {
        let execution = update(&mut canister, "go", &[]);
        if round < 12 {
            assert_eq!(execution.outcome, Ok(vec![]));
        } else {
            assert_eq!(code(&execution), ErrorCode::CanisterWasmMemoryLimitExceeded);
        }
    }
    assert_eq!(canister.heap_size().get(), 1 + 11 * 4_096);
    assert_eq!(canister.stable_size().get(), 8_000_000);
    assert!(canister.balance().get() > 900 * u128::from(MIB));
    bounded_memory();
}
