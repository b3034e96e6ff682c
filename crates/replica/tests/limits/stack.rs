//! Depth of the stack. How deep it is depends on the compiler; that it ends does not.

use super::support::{CALLER, compile, install, numbers, query, update};
use super::*;

const DEEP: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (func $depth (param $left i32) (result i32)
        (if (result i32) (local.get $left)
            (then (i32.add (i32.const 1)
                (call $depth (i32.sub (local.get $left) (i32.const 1)))))
            (else (i32.const 0))))
    (func $go
        (call $argument (i32.const 0) (i32.const 0) (i32.const 4))
        (i64.store (i32.const 0) (i64.extend_i32_u (call $depth (i32.load (i32.const 0)))))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (export "canister_update u" (func $go))
    (export "canister_query q" (func $go)))"#;

fn recur() {
    let mut canister = install(DEEP);
    let endless = u32::MAX.to_le_bytes();
    for _ in 0..3 {
        for overflow in [update(&mut canister, "u", &endless), query(&canister, "q", &endless)] {
            trapped(&overflow, "stack overflow");
        }
        let deep = 10_000_u32.to_le_bytes();
        assert_eq!(numbers(update(&mut canister, "u", &deep)), [10_000]);
        assert_eq!(numbers(query(&canister, "q", &deep)), [10_000]);
    }
}

#[test]
fn recursion() {
    recur();
}

#[test]
fn recursion_on_a_thread_with_little_stack() {
    for stack in [256 << 10, 2 * MIB] {
        std::thread::Builder::new().stack_size(stack).spawn(recur).unwrap().join().unwrap();
    }
}

/// Ways to recur without end; `$f` is the function to call.
const ENDLESS: &[(&str, &str)] = &[
    ("directly", "(func $f (call $f))"),
    ("indirectly", "(func $f (call $g)) (func $g (call $f) (nop))"),
    (
        "through a table",
        "(table 2 funcref) (elem (i32.const 1) $f) (func $f (call_indirect (i32.const 1)))",
    ),
    // Each frame is larger than a guard page, and what the host's stack has to spare.
    (
        "with large frames",
        "(func $f (result v128) LOCALS (call $f) SUM) (func $g (drop (call $f)))",
    ),
];

fn endless(way: &str) -> String {
    const LOCALS: usize = 4_000;
    let locals = "(local v128)".repeat(LOCALS);
    // They are loaded before the call and used after it.
    let set: String = (0..LOCALS)
        .map(|local| format!("(local.set {local} (v128.load offset={local} (i32.const 0)))"))
        .collect();
    let sum: String = (0..LOCALS).map(|local| format!("(i64x2.add (local.get {local}))")).collect();
    way.replace("LOCALS", &format!("{locals}{set}")).replace("SUM", &sum)
}

/// In each function that the replica calls.
#[test]
fn endless_recursion() {
    for (name, way) in ENDLESS {
        let function = if way.contains("$g (drop") { "$g" } else { "$f" };
        let module = |uses: &str| {
            let uses = uses.replace("$f", function);
            let reply = r#"(import "ic0" "msg_reply" (func $reply))"#;
            format!("(module {reply} (memory 1) {} {uses})", endless(way))
        };
        let exporting = |what: &str| module(&format!(r#"(export "{what}" (func $f))"#));

        trapped(&try_install(&module("(start $f)")), "stack overflow");
        trapped(&try_install(&exporting("canister_init")), "stack overflow");
        let new = compile(&exporting("canister_post_upgrade"));
        trapped(&install("(module)").upgrade(&new, CALLER, &[]).unwrap(), "stack overflow");
        let mut old = install(&exporting("canister_pre_upgrade"));
        trapped(&old.upgrade(&compile("(module)"), CALLER, &[]).unwrap(), "stack overflow");

        let mut canister = install(&exporting("canister_update u"));
        trapped(&update(&mut canister, "u", &[]), "stack overflow");
        for kind in ["query", "composite_query"] {
            let canister = install(&exporting(&format!("canister_{kind} q")));
            trapped(&query(&canister, "q", &[]), "stack overflow");
        }
        let inspecting = r#"(export "canister_inspect_message" (func $f))
            (func (export "canister_update u") (call $reply))"#;
        let mut canister = install(&module(inspecting));
        let before = canister.balance();
        trapped(&update(&mut canister, "u", &[]), "stack overflow");
        assert_eq!(canister.balance(), before, "{name}: what is not let in pays nothing");
    }
}

/// Compiling is not recursive either.
#[test]
fn deeply_nested_blocks() {
    let nested = |depth: usize| {
        format!(
            r#"(module (import "ic0" "msg_reply" (func $reply))
            (func (export "canister_query go") {} (call $reply) {}))"#,
            "block ".repeat(depth),
            "end ".repeat(depth),
        )
    };
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || {
            // 50 for each of them, 1 for each end: just below the highest complexity.
            assert_eq!(query(&install(&nested(19_000)), "go", &[]).outcome, Ok(vec![]));
        })
        .unwrap()
        .join()
        .unwrap();
}
