//! `stablebench call` and `stablebench profile` with canisters that call each other.

use std::path::Path;

use serde_json::Value;

use super::{stablebench, stderr, stdout};

/// Calls `ask` of the second canister, and replies in the callback, or fails there.
const CALLER: &str = r#"(module
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (memory 1) (table 2 funcref) (elem (i32.const 0) $back $trap)
    (data (i32.const 0) "\ff\ff\ff\ff\ff\e0\00\01\01\01askDIDL\00\00")
    (func (export "canister_update go")
        (call $new (i32.const 0) (i32.const 10) (i32.const 10) (i32.const 3)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
        (drop (call $perform)))
    (func (export "canister_update fail")
        (call $new (i32.const 0) (i32.const 10) (i32.const 10) (i32.const 3)
            (i32.const 1) (i32.const 0) (i32.const 1) (i32.const 0))
        (drop (call $perform)))
    (func $trap (param i32) unreachable)
    (func $back (param i32) (call $append (i32.const 13) (i32.const 6)) (call $reply))
    (func (export "canister_heartbeat"))
    (@custom "icp:public candid:service" "service : { go : () -> (); fail : () -> () }"))"#;

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

/// Returns the charges of the executions that `call` lists.
fn charges(printed: &str) -> u64 {
    let lines = printed.lines().skip_while(|line| !line.starts_with("executions")).skip(1);
    let charge = |line: &str| -> u64 {
        // Columns are separated by two spaces, thousands by one.
        let columns: Vec<&str> = line.split("  ").filter(|it| !it.trim().is_empty()).collect();
        columns[columns.len() - 4].replace(' ', "").parse().unwrap()
    };
    lines.map(charge).sum()
}

#[test]
fn a_profile_has_all_executions_of_a_call() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "caller.wasm", CALLER);
    write(directory.path(), "callee.wasm", CALLEE);
    let profile = |more: &[&str]| {
        let args = ["profile", "--wasm=caller.wasm", "--with=callee.wasm", "--call", "go"];
        let output = stablebench(&[&args, more].concat(), directory.path());
        assert!(output.status.success(), "{}", stderr(&output));
        assert!(stderr(&output).contains("callee.wasm is lqy7q-dh777-77777-aaaaq-cai"));
        stdout(&output)
    };
    insta::assert_snapshot!(profile(&[]));
    let folded = profile(&["--format=folded"]);
    insta::assert_snapshot!(folded);
    let call = ["call", "caller.wasm", "go", "--with=callee.wasm"];
    let charged = charges(&stdout(&stablebench(&call, directory.path())));
    let of = |line: &str| line.rsplit_once(' ').unwrap().1.parse::<u64>().unwrap();
    assert_eq!(folded.lines().map(of).sum::<u64>(), charged);
    let json: Value = serde_json::from_str(&profile(&["--format=json"])).unwrap();
    assert_eq!(json["messages"], 4);
    let own = |node: &Value| node["self"].as_u64().unwrap();
    assert_eq!(json["nodes"].as_array().unwrap().iter().map(own).sum::<u64>(), charged);
    let firefox: Value = serde_json::from_str(&profile(&["--format=firefox"])).unwrap();
    let weights = firefox["threads"][0]["samples"]["weight"].as_array().unwrap();
    assert_eq!(weights.iter().map(|weight| weight.as_u64().unwrap()).sum::<u64>(), charged);
    let picture = profile(&["--format=svg"]);
    for part in ["in 4 executions", "--with callee.wasm", "ask of lqy7q-dh777-77777-aaaaq-cai"] {
        assert!(picture.contains(part), "{part}: {picture}");
    }
}

#[test]
fn a_callback_that_fails_is_profiled() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "caller.wasm", CALLER);
    let args = ["profile", "--wasm=caller.wasm", "--call", "fail", "--format=folded"];
    let output = stablebench(&args, directory.path());
    assert!(output.status.success(), "{}", stderr(&output));
    assert!(stderr(&output).contains("the call failed: "), "{}", stderr(&output));
    let caller = "lxzze-o7777-77777-aaaaa-cai";
    let stack = format!("fail of {caller};reject callback of {caller};trap ");
    assert!(stdout(&output).contains(&stack), "{}", stdout(&output));
}
