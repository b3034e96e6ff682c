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
    assert_eq!(output.status.code(), Some(2), "as of `call`");
    assert!(stderr(&output).contains("the call failed: "), "{}", stderr(&output));
    let caller = "lxzze-o7777-77777-aaaaa-cai";
    let stack = format!("fail of {caller};reject callback of {caller};trap ");
    assert!(stdout(&output).contains(&stack), "{}", stdout(&output));
}

/// Calls `ask` of the second canister, and replies what it replies.
pub const SHOP: &str = r#"(module
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_arg_data_copy" (func $copy (param i32 i32 i32)))
    (import "ic0" "call_new" (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
    (import "ic0" "call_perform" (func $perform (result i32)))
    (memory 1) (table 1 funcref) (elem (i32.const 0) $back)
    (data (i32.const 0) "\ff\ff\ff\ff\ff\e0\00\01\01\01ask")
    (func (export "canister_update buy")
        (call $new (i32.const 0) (i32.const 10) (i32.const 10) (i32.const 3)
            (i32.const 0) (i32.const 0) (i32.const 0) (i32.const 0))
        (drop (call $perform)))
    (func $back (param i32)
        (call $copy (i32.const 64) (i32.const 0) (call $size))
        (call $append (i32.const 64) (call $size)) (call $reply))
    (@custom "icp:public candid:service" "service : { buy : () -> (nat64) }"))"#;

/// Counts its calls.
pub const BANK: &str = r#"(module
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1) (data (i32.const 1) "DIDL\00\01\78")
    (func (export "canister_update ask")
        (i64.store (i32.const 8) (i64.add (i64.load (i32.const 8)) (i64.const 1)))
        (call $append (i32.const 1) (i32.const 15)) (call $reply))
    (@custom "icp:public candid:service" "service : { ask : () -> (nat64) }"))"#;

/// Runs a command that succeeds, and returns the first line of its output and its notes.
fn succeeds(args: &[&str], directory: &Path) -> (String, String) {
    let output = stablebench(args, directory);
    assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    (stdout(&output).lines().next().unwrap_or_default().to_owned(), stderr(&output))
}

#[test]
fn all_canisters_of_a_call_are_saved() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "shop.wasm", SHOP);
    write(directory, "bank.wasm", BANK);
    let (shop, bank) = ("lxzze-o7777-77777-aaaaa-cai", "lqy7q-dh777-77777-aaaaq-cai");
    let buy = |more: &[&str]| succeeds(&[&["call", "shop.wasm", "buy"], more].concat(), directory);
    let (reply, notes) = buy(&["--with=bank.wasm", "--save=s"]);
    assert_eq!(reply, "(1 : nat64)");
    assert!(notes.contains(&format!("bank.wasm is {bank}")), "{notes}");
    // With the same words, and without those that the file knows.
    for (count, more) in [
        (2, &["--with=bank.wasm", "--state=s", "--save=s"][..]),
        (3, &["--state=s", "--save=s"]),
        (4, &["--state=s", "--with=bank.wasm"]),
        (4, &["--state=s", "--with=bank.wasm", "--with=bank.wasm"]),
    ] {
        let (reply, notes) = buy(more);
        assert_eq!(reply, format!("({count} : nat64)"), "{more:?}: {notes}");
        let third = notes.contains("bank.wasm is lz3um-vp777-77777-aaaba-cai");
        assert_eq!(third, more.len() == 3 && more[2] == "--with=bank.wasm", "{notes}");
    }
    // A saved canister is called by its id.
    let (reply, _) = succeeds(&["call", bank, "ask", "--state=s"], directory);
    assert_eq!(reply, "(4 : nat64)");
    let profile = ["profile", "--format=folded", "--state=s", "--call", "ask", "--wasm", bank];
    assert!(succeeds(&profile, directory).0.contains("canister_update ask"));
    let profile = ["profile", "--format=folded", "--state=s", "--wasm=shop.wasm", "--call", "buy"];
    let output = stablebench(&profile, directory);
    assert!(stdout(&output).contains(&format!("ask of {bank}")), "{}", stderr(&output));
    // The file is unchanged by all this, and names what it contains.
    for (args, text) in [
        (
            &["call", "bank.wasm", "ask", "--state=s"][..],
            format!("canister {shop} with another module than bank.wasm; name the module"),
        ),
        (
            &["call", "shop.wasm", "buy", "--with=shop.wasm", "--state=s"],
            format!("canister {bank} with another module than shop.wasm"),
        ),
        (
            &["call", "aaaaa-aa", "ask", "--state=s"],
            format!("s contains no canister aaaaa-aa; it contains {shop}, {bank}"),
        ),
        (&["call", bank, "ask"], format!("no canister {bank}")),
    ] {
        let output = stablebench(args, directory);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(stderr(&output).contains(&text), "{}", stderr(&output));
    }
    assert_eq!(buy(&["--state=s"]).0, "(4 : nat64)");
}

/// Calls a function of WASI, which the module has a replacement for.
pub const WASI: &str = r#"(module
    (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1) (data (i32.const 0) "DIDL\00\01\7c")
    (func (export "__ic_custom_sched_yield") (result i32) (i32.const 5))
    (func (export "canister_query yields")
        (i32.store8 (i32.const 7) (call $yield))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (func (export "canister_update ask") (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (@custom "icp:public candid:service"
        "service : { yields : () -> (int) query; ask : () -> () }"))"#;

#[test]
fn modules_for_wasi_are_converted_with_a_note() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "yields.wasm", WASI);
    write(directory, "caller.wasm", CALLER);
    let note = "yields.wasm calls WASI, which the IC does not have; these calls are replaced";
    for (args, text) in [
        (&["call", "yields.wasm", "yields"][..], "(5 : int)"),
        (&["call", "caller.wasm", "go", "--with=yields.wasm"], "()"),
        (
            &["profile", "--wasm=yields.wasm", "--call", "yields", "--format=folded"],
            "canister_query yields",
        ),
    ] {
        let output = stablebench(args, directory);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
        assert_eq!(stderr(&output).matches(note).count(), 1, "{}", stderr(&output));
        assert!(stdout(&output).contains(text), "{}", stdout(&output));
    }
    std::fs::write(directory.join("canbench.yml"), "wasm_path: yields.wasm\n").unwrap();
    let output = stablebench(&["canbench"], directory);
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
    assert!(!stderr(&output).contains("sched_yield"), "{}", stderr(&output));
    // Without a replacement, the next step is named.
    write(directory, "yields.wasm", &WASI.replace("__ic_custom", "custom"));
    let output = stablebench(&["call", "yields.wasm", "yields"], directory);
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("the crate ic-wasi-polyfill"), "{}", stderr(&output));
}
