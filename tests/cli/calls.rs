//! `stablebench call` with canisters that call each other.

use std::path::Path;

use super::{stablebench, stderr, stdout};

/// Calls `ask` of the second canister, and replies in the callback.
const CALLER: &str = r#"(module
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (memory 1) (table 1 funcref) (elem (i32.const 0) $back)
    (data (i32.const 0) "\ff\ff\ff\ff\ff\e0\00\01\01\01askDIDL\00\00")
    (func (export "canister_update go")
        (call $new (i32.const 0) (i32.const 10) (i32.const 10) (i32.const 3)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
        (drop (call $perform)))
    (func $back (param i32) (call $append (i32.const 13) (i32.const 6)) (call $reply))
    (func (export "canister_heartbeat"))
    (@custom "icp:public candid:service" "service : { go : () -> () }"))"#;

const CALLEE: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (func (export "canister_update ask") (call $reply)))"#;

fn write(directory: &Path, name: &str, wat: &str) {
    std::fs::write(directory.join(name), wat::parse_str(wat).unwrap()).unwrap();
}

#[test]
fn a_call_shows_the_executions_that_it_causes() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "caller.wasm", CALLER);
    write(directory.path(), "callee.wasm", CALLEE);
    let call = ["call", "caller.wasm", "go", "--with=callee.wasm", "--rules=2025-10"];
    let output = stablebench(&call, directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("callee.wasm is lqy7q-dh777-77777-aaaaq-cai"));
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn a_missing_canister_is_a_reject_for_the_caller() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "caller.wasm", CALLER);
    let output = stablebench(&["call", "caller.wasm", "go"], directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
    let printed = stdout(&output);
    assert!(printed.contains("reject callback of lxzze-o7777-77777-aaaaa-cai"), "{printed}");
}

#[test]
fn a_refused_canister_is_named() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "caller.wasm", CALLER);
    std::fs::write(directory.path().join("other.wasm"), "no module").unwrap();
    let call = ["call", "caller.wasm", "go", "--with=other.wasm"];
    let output = stablebench(&call, directory.path());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("other.wasm"), "{}", stderr(&output));
}

/// The compiler keeps the interface in a private section. The heartbeat calls the actor itself.
#[test]
fn a_motoko_actor_is_called() {
    let directory = tempfile::tempdir().unwrap();
    let module = include_bytes!("../../crates/replica/tests/motoko/enhanced_counter_next.wasm.gz");
    std::fs::write(directory.path().join("counter.wasm.gz"), module).unwrap();
    let output = stablebench(&["call", "counter.wasm.gz", "add", "(2)"], directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
    insta::assert_snapshot!(stdout(&output));
    let output = stablebench(&["call", "counter.wasm.gz", "counts"], directory.path());
    assert!(stdout(&output).contains("count = 0 : nat"), "{}", stderr(&output));
}
