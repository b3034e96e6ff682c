//! Calls between canisters: of `call` and `profile`, and a small run of the suite calls.

use std::path::Path;

use serde_json::Value;

use crate::{fails, stablebench, stderr, stdout, succeeds};

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
    let output = succeeds(&call, directory.path());
    assert!(stderr(&output).contains("callee.wasm is lqy7q-dh777-77777-aaaaq-cai"));
    insta::assert_snapshot!(stdout(&output));
}

#[test]
fn a_missing_canister_is_a_reject_for_the_caller() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "caller.wasm", CALLER);
    let output = succeeds(&["call", "caller.wasm", "go"], directory.path());
    let printed = stdout(&output);
    assert!(printed.contains("reject callback of lxzze-o7777-77777-aaaaa-cai"), "{printed}");
}

#[test]
fn a_refused_canister_is_named() {
    let directory = tempfile::tempdir().unwrap();
    write(directory.path(), "caller.wasm", CALLER);
    std::fs::write(directory.path().join("other.wasm"), "no module").unwrap();
    let call = ["call", "caller.wasm", "go", "--with=other.wasm"];
    let output = fails(&call, directory.path());
    assert!(stderr(&output).contains("other.wasm"), "{}", stderr(&output));
}

/// The compiler keeps the interface in a private section. The heartbeat calls the actor itself.
#[test]
fn a_motoko_actor_is_called() {
    let directory = tempfile::tempdir().unwrap();
    let module = include_bytes!("../../crates/replica/tests/motoko/enhanced_counter_next.wasm.gz");
    std::fs::write(directory.path().join("counter.wasm.gz"), module).unwrap();
    let output = succeeds(&["call", "counter.wasm.gz", "add", "(2)"], directory.path());
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
        let output = succeeds(&[&args, more].concat(), directory.path());
        assert!(stderr(&output).contains("callee.wasm is lqy7q-dh777-77777-aaaaq-cai"));
        stdout(&output)
    };
    let folded = profile(&["--format=folded"]);
    insta::assert_snapshot!(profile(&[]) + "\n" + &folded);
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
    let output = fails(&args, directory.path());
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
fn answers(args: &[&str], directory: &Path) -> (String, String) {
    let output = succeeds(args, directory);
    (stdout(&output).lines().next().unwrap_or_default().to_owned(), stderr(&output))
}

#[test]
fn all_canisters_of_a_call_are_saved() {
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path();
    write(directory, "shop.wasm", SHOP);
    write(directory, "bank.wasm", BANK);
    let (shop, bank) = ("lxzze-o7777-77777-aaaaa-cai", "lqy7q-dh777-77777-aaaaq-cai");
    let buy = |more: &[&str]| answers(&[&["call", "shop.wasm", "buy"], more].concat(), directory);
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
    let (reply, _) = answers(&["call", bank, "ask", "--state=s"], directory);
    assert_eq!(reply, "(4 : nat64)");
    let profile = ["profile", "--format=folded", "--state=s", "--call", "ask", "--wasm", bank];
    assert!(answers(&profile, directory).0.contains("canister_update ask"));
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
        let output = fails(args, directory);
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
        let output = succeeds(args, directory);
        assert_eq!(stderr(&output).matches(note).count(), 1, "{}", stderr(&output));
        assert!(stdout(&output).contains(text), "{}", stdout(&output));
    }
    std::fs::write(directory.join("canbench.yml"), "wasm_path: yields.wasm\n").unwrap();
    let output = stablebench(&["canbench"], directory);
    assert!(stderr(&output).contains(note), "{}", stderr(&output));
    assert!(!stderr(&output).contains("sched_yield"), "{}", stderr(&output));
    // Without a replacement, the next step is named.
    write(directory, "yields.wasm", &WASI.replace("__ic_custom", "custom"));
    let output = fails(&["call", "yields.wasm", "yields"], directory);
    assert!(stderr(&output).contains("the crate ic-wasi-polyfill"), "{}", stderr(&output));
}

const SMALL: &[&str] = &[
    "run",
    "calls",
    "--sizes=0,1000",
    "--fan-out=1,20",
    "--states=100",
    "--sections=size,reply,fan-out,kinds,tasks,upgrade",
    "--no-wall-time",
];

fn suite(more: &[&str], directory: &Path) -> String {
    let output = succeeds(&[SMALL, more].concat(), directory);
    stdout(&output)
}

struct Saved(Value);

impl Saved {
    fn number(&self, section: &str, name: &str, configuration: &str, path: &str) -> u64 {
        let mut cases = self.0["cases"].as_array().unwrap().iter();
        let found = cases.find(|case| {
            case["section"] == section
                && case["name"] == name
                && case["configuration"] == configuration
        });
        let case = found.unwrap_or_else(|| panic!("no case {section}, {name}, {configuration}"));
        let found = case.pointer(&format!("/outcome/measured{path}")).and_then(Value::as_u64);
        found.unwrap_or_else(|| panic!("{path} of {case}"))
    }

    fn sending(&self, section: &str, name: &str, configuration: &str) -> u64 {
        self.number(section, name, configuration, "/detail/cost/inside/messaging/cycles")
    }

    fn executions(&self, section: &str, name: &str) -> u64 {
        let path = "/detail/cost/inside/messaging/executions";
        self.number(section, name, "another canister", path)
    }
}

#[test]
fn calls_cost_what_the_price_list_says() {
    let directory = tempfile::tempdir().unwrap();
    let saved = suite(&["--format=json"], directory.path());
    let saved = Saved(serde_json::from_str(&saved).unwrap());

    // A byte costs 1 000 cycles, in an argument and in a reply.
    for configuration in ["another canister", "itself", "with cycles", "best-effort"] {
        let [less, more] =
            ["0 B", "1 000 B"].map(|size| saved.sending("size", size, configuration));
        assert_eq!(more - less, 1_000 * 1_000, "{configuration}");
    }
    let [less, more] =
        ["0 B", "1 000 B"].map(|size| saved.sending("reply", size, "another canister"));
    assert_eq!(more - less, 1_000 * 1_000);

    // The message, and for each call the one that is called and a callback.
    assert_eq!(saved.executions("fan-out", "1 in parallel"), 3);
    for manner in ["in parallel", "one after another"] {
        assert_eq!(saved.executions("fan-out", &format!("20 {manner}")), 41);
        let twenty = saved.sending("fan-out", &format!("20 {manner}"), "another canister");
        let one = saved.sending("fan-out", &format!("1 {manner}"), "another canister");
        // A call without arguments, and its reply of 12 bytes.
        assert_eq!(
            (twenty - one) / 19,
            saved.sending("size", "0 B", "another canister") - base(&saved)
        );
    }
    assert_eq!(saved.executions("kinds", "an update calls an update"), 3);
    assert_eq!(saved.executions("kinds", "a composite query calls a query"), 3);
    for name in ["a user calls a query", "a composite query calls a query"] {
        assert_eq!(saved.number("kinds", name, "another canister", "/detail/cost/cycles"), 0);
    }

    // Each execution of a task is one more, and those of a heartbeat cost the same.
    let rounds = "while a canister awaits rounds";
    let executions = "/detail/cost/inside/messaging/executions";
    let alone = saved.number("tasks", rounds, "no task", executions);
    for task in ["timer", "heartbeat"] {
        assert_eq!(saved.number("tasks", rounds, task, "/detail/rows"), 30);
        let counted = saved.number("tasks", rounds, task, "/instructions");
        // The last execution of the timer does not set it again.
        assert!(
            counted > 0 && (task == "timer" || counted.is_multiple_of(30)),
            "{task}: {counted}"
        );
        let more = saved.number("tasks", rounds, task, executions) - alone;
        assert!(if task == "timer" { more == 30 } else { more > 30 }, "{task}: {more}");
    }
    let upgrade =
        |configuration| saved.number("upgrade", "100 rows", configuration, "/instructions");
    for configuration in ["btree", "sqlite/persist", "map on the heap"] {
        assert!(upgrade(configuration) > 10_000, "{configuration}");
    }
}

/// The cycles for sending the message without calls.
fn base(saved: &Saved) -> u64 {
    let path = "/harness/0/outcome/measured/detail/cost/inside/messaging/cycles";
    let harness = saved.0["harness"].as_array().unwrap();
    let place = harness.iter().position(|case| case["configuration"] == "bench_calls").unwrap();
    saved.0.pointer(&path.replace("/0/", &format!("/{place}/"))).unwrap().as_u64().unwrap()
}

#[test]
fn the_tables_show_cycles_and_tasks() {
    let directory = tempfile::tempdir().unwrap();
    let printed = suite(&["--format=markdown"], directory.path());
    for text in [
        "A call, by the size of its argument: instructions a call",
        "A call, by the size of its argument: cycles a call",
        "276 000 sending messages",
        "Messages without arguments, and all that they cause",
        "An execution of a task",
        "An upgrade, by the rows of the canister",
    ] {
        assert!(printed.contains(text), "{text}:\n{printed}");
    }
}

#[test]
fn sizes_that_no_call_can_have_are_refused() {
    for option in ["--sizes=2097152", "--fan-out=501", "--sections=all"] {
        fails(&["run", "calls", option], Path::new("."));
    }
}
