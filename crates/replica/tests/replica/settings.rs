//! Settings of a canister, including environment variables, and other changes by the management
//! canister.
//!
//! The values of environment variables, the order of checks and the error messages are from
//! `rs/embedders/src/wasmtime_embedder/system_api.rs` of the replica, the limits and their messages
//! from `rs/execution_environment/src/canister_manager.rs`.

use std::collections::BTreeMap;

use stablebench_replica::{
    Bytes, Canister, Cycles, EnvironmentError, ErrorCode, Execution, Principal, Replica, Rules,
};

use crate::support::{CALLER, code, install, numbers, query, rejected, update};

/// Replies with its time, version and counter, and whether the caller is a controller.
const REPORTER: &str = r#"(module
    (import "ic0" "time" (func $time (result i64)))
    (import "ic0" "canister_version" (func $version (result i64)))
    (import "ic0" "is_controller" (func $is_controller (param i32 i32) (result i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (data (i32.const 0) "\04")
    (global $count (mut i64) (i64.const 0))
    (func $report
        (i64.store (i32.const 64) (call $time))
        (i64.store (i32.const 72) (call $version))
        (i64.store (i32.const 80) (global.get $count))
        (i64.store (i32.const 88) (i64.extend_i32_u (call $is_controller (i32.const 0) (i32.const 1))))
        (call $append (i32.const 64) (i32.const 32))
        (call $reply))
    (func (export "canister_update count")
        (global.set $count (i64.add (global.get $count) (i64.const 1)))
        (call $report))
    (export "canister_query report" (func $report)))"#;

/// Another module, with its own heap.
const OTHER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (memory 3)
    (func (export "canister_update other") (call $reply)))"#;

const LATER: u64 = 1_800_000_000_000_000_000;

fn report(canister: &Canister) -> [u64; 4] {
    numbers(query(canister, "report", &[])).try_into().unwrap()
}

#[test]
fn time_is_set_and_always_advances() {
    let mut canister = install(REPORTER);
    let [beginning, ..] = report(&canister);
    // As on a PocketIC server, all messages come in the second in which the first one came.
    assert_eq!(beginning / 1_000_000_000, 1_620_328_630);
    update(&mut canister, "count", &[]);
    assert_eq!(report(&canister)[0], beginning + 1);
    canister.set_time(LATER);
    assert_eq!(report(&canister)[0], LATER);
    // Messages at the same time get different times.
    let mut last = 0;
    for _ in 0..3 {
        canister.set_time(LATER);
        let [time, ..] = numbers(update(&mut canister, "count", &[]))[..] else { panic!() };
        assert!(time > last && time < LATER + 10, "{time}");
        last = time;
    }
    // Setting an earlier time has no effect.
    canister.set_time(beginning);
    assert_eq!(report(&canister)[0], last + 1);
}

#[test]
fn settings_can_change() {
    let mut canister = install(REPORTER);
    let [_, version, _, controls] = report(&canister);
    assert_eq!(controls, 1);
    let somebody = Principal::from_slice(&[7]);
    canister.configure(vec![somebody], Bytes(1 << 30));
    assert_eq!(canister.settings().controllers, [somebody]);
    assert_eq!(canister.settings().heap_limit, Bytes(1 << 30));
    let [_, now, _, controls] = report(&canister);
    assert_eq!((now, controls), (version + 1, 0));
    canister.count_change();
    assert_eq!((report(&canister)[1], canister.version()), (version + 2, version + 2));
    let before = canister.balance();
    canister.add_cycles(Cycles(5));
    assert_eq!(canister.balance().get(), before.get() + 5);
}

#[test]
fn a_snapshot_restores_module_and_memories() {
    let mut canister = install(REPORTER);
    update(&mut canister, "count", &[]);
    let snapshot = canister.fork();
    update(&mut canister, "count", &[]);
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let other = replica.compile(&wat::parse_str(OTHER).unwrap()).unwrap();
    canister.install(&other, CALLER, &[]).unwrap().outcome.unwrap();
    assert_eq!(code(&query(&canister, "report", &[])), ErrorCode::CanisterMethodNotFound);
    let (version, balance) = (canister.version(), canister.balance());
    canister.restore(&snapshot);
    let [_, now, count, _] = report(&canister);
    assert_eq!((now, count), (version + 1, 1));
    assert_eq!(canister.balance(), balance, "cycles are not restored");
    assert_eq!(numbers(update(&mut canister, "count", &[]))[2], 2);
    assert_eq!(numbers(query(&snapshot, "report", &[]))[2], 1);
}

#[test]
fn messages_that_are_not_inducted_are_free() {
    let mut empty = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
    let refused = update(&mut empty, "count", &[]);
    assert_eq!((refused.admitted, refused.cycles), (false, Cycles(0)));
    let mut canister = install(REPORTER);
    // A message to a missing method is inducted and charged.
    let missing = update(&mut canister, "missing", &[]);
    assert_eq!(code(&missing), ErrorCode::CanisterMethodNotFound);
    assert!(missing.admitted && missing.cycles > Cycles(0));
    assert!(update(&mut canister, "count", &[]).admitted);
    let mut closed = install(
        r#"(module (func (export "canister_inspect_message")) (func (export "canister_update m")))"#,
    );
    assert!(!update(&mut closed, "m", &[]).admitted);
}

const REFUSED: ErrorCode = ErrorCode::CanisterContractViolation;

/// A method for each call, with arguments from the message: numbers of four or eight bytes at 1000.
/// Copies go to the given address, results to 200. The reply is the 100 bytes at 200. Names for
/// lookups start at 0.
fn reader(width: u32, names: &str) -> String {
    let ty = format!("i{width}");
    let bytes = width / 8;
    let arguments = |count: u32| -> String {
        (0..count).map(|at| format!("({ty}.load ({ty}.const {}))", 1_000 + at * bytes)).collect()
    };
    let mut wat = format!(
        r#"(module
        (import "ic0" "msg_arg_data_size" (func $size (result {ty})))
        (import "ic0" "msg_arg_data_copy" (func $copy (param {ty} {ty} {ty})))
        (import "ic0" "msg_reply_data_append" (func $append (param {ty} {ty})))
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "accept_message" (func $accept))"#
    );
    let calls = [
        ("env_var_count", 0, Some(ty.as_str())),
        ("env_var_name_size", 1, Some(&ty)),
        ("env_var_name_copy", 4, None),
        ("env_var_name_exists", 2, Some("i32")),
        ("env_var_value_size", 2, Some(&ty)),
        ("env_var_value_copy", 5, None),
    ];
    for (name, params, result) in calls {
        let params = format!("{ty} ").repeat(params);
        let result = result.map(|ty| format!("(result {ty})")).unwrap_or_default();
        wat += &format!(r#"(import "ic0" "{name}" (func ${name} (param {params}) {result}))"#);
    }
    let memory = if width == 64 { "(memory i64 1)" } else { "(memory 1)" };
    wat += &format!(
        r#"{memory} (data ({ty}.const 0) "{names}")
        (func $take (call $copy ({ty}.const 1000) ({ty}.const 0) (call $size)))
        (func $send (call $append ({ty}.const 200) ({ty}.const 100)) (call $reply))"#
    );
    for (name, params, result) in calls {
        let call = format!("(call ${name} {})", arguments(params as u32));
        let call = match result {
            Some(result) => format!("({result}.store ({ty}.const 200) {call})"),
            None => call,
        };
        wat += &format!(
            r#"(func (export "canister_query {name}") (call $take) {call} (call $send))
            (func (export "canister_composite_query c_{name}") (call $take) {call} (call $send))"#
        );
    }
    wat + &format!(
        r#"(func (export "canister_init")
            ({ty}.store ({ty}.const 208) (call $env_var_count)))
        (func (export "canister_update init") (call $send)))"#
    )
}

fn variables(of: &[(&str, &str)]) -> BTreeMap<String, String> {
    of.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

const THREE: [(&str, &str); 3] = [("A", ""), ("Zoë", "naïve"), ("b", "second")];
/// Names for lookups: at 0, 1, 5, 8, and an invalid UTF-8 string at 12.
const NAMES: &str = "AZo\\c3\\abb...none\\ff\\fe";

fn with_variables() -> Canister {
    let mut canister = install(&reader(32, NAMES));
    canister.set_environment(variables(&THREE)).unwrap();
    canister
}

fn ask(canister: &Canister, method: &str, arguments: &[u32]) -> Execution {
    let argument: Vec<u8> = arguments.iter().flat_map(|number| number.to_le_bytes()).collect();
    query(canister, method, &argument)
}

/// The reply: the bytes from 200 on.
#[track_caller]
fn reply(execution: Execution) -> Vec<u8> {
    execution.outcome.unwrap()
}

#[track_caller]
fn number(execution: Execution) -> u32 {
    u32::from_le_bytes(reply(execution)[..4].try_into().unwrap())
}

#[track_caller]
fn refused(execution: &Execution, words: &str) {
    rejected(execution, REFUSED, words);
}

#[test]
fn code_reads_names_in_order_and_values_by_name() {
    let canister = with_variables();
    assert_eq!(number(ask(&canister, "env_var_count", &[])), 3);
    // By bytes, so capital letters come first.
    let sizes = [0, 1, 2].map(|at| number(ask(&canister, "env_var_name_size", &[at])));
    assert_eq!(sizes, [1, 4, 1]);
    let copied = reply(ask(&canister, "env_var_name_copy", &[1, 200, 0, 4]));
    assert_eq!(&copied[..5], b"Zo\xc3\xab\0");
    let copied = reply(ask(&canister, "env_var_name_copy", &[1, 200, 1, 2]));
    assert_eq!(&copied[..3], b"o\xc3\0", "a part of the name");
    let names = [(0, 1), (1, 4), (5, 1), (9, 4), (0, 0), (1, 1)];
    let known = names.map(|(at, size)| number(ask(&canister, "env_var_name_exists", &[at, size])));
    assert_eq!(known, [1, 1, 1, 0, 0, 0]);
    let sizes = [(0, 1), (1, 4), (5, 1)];
    let sizes = sizes.map(|(at, size)| number(ask(&canister, "env_var_value_size", &[at, size])));
    assert_eq!(sizes, [0, 6, 6]);
    let copied = reply(ask(&canister, "env_var_value_copy", &[1, 4, 200, 0, 6]));
    assert_eq!(&copied[..7], b"na\xc3\xafve\0");
    let copied = reply(ask(&canister, "env_var_value_copy", &[5, 1, 201, 3, 3]));
    assert_eq!(&copied[..5], b"\0ond\0");
    assert_eq!(reply(ask(&canister, "env_var_value_copy", &[0, 1, 200, 0, 0]))[..4], [0; 4]);
}

#[test]
fn unknown_indices_and_names_are_refused() {
    let canister = with_variables();
    let out_of_bounds = |index: u32, count: u32| {
        format!(
            "Environment variable index {index} is out of bounds. The number of environment \
             variables is {count}"
        )
    };
    for index in [3, u32::MAX] {
        refused(&ask(&canister, "env_var_name_size", &[index]), &out_of_bounds(index, 3));
        // The index is checked before the target address.
        let copied = ask(&canister, "env_var_name_copy", &[index, u32::MAX, 0, 9]);
        refused(&copied, &out_of_bounds(index, 3));
    }
    let empty = install(&reader(32, NAMES));
    assert_eq!(number(ask(&empty, "env_var_count", &[])), 0);
    refused(&ask(&empty, "env_var_name_size", &[0]), &out_of_bounds(0, 0));
    let unknown = "Environment variable none not found";
    refused(&ask(&canister, "env_var_value_size", &[9, 4]), unknown);
    refused(&ask(&canister, "env_var_value_copy", &[9, 4, u32::MAX, 0, 9]), unknown);
}

#[test]
fn invalid_names_are_refused() {
    let mut canister = with_variables();
    let words = |call: &str, what: &str| format!("Canister violated contract: ic0.{call}{what}");
    let three = [
        ("env_var_name_exists", "heap"),
        ("env_var_value_size", "heap"),
        ("env_var_value_copy", "name"),
    ];
    for (call, part) in three {
        let asked = |at: u32, size: u32| ask(&canister, call, &[at, size, 200, 0, 0]);
        refused(&asked(13, 2), &words(call, ": Variable name is not a valid UTF-8 string"));
        refused(&asked(0, 101), &words(call, ": Variable name is too large"));
        refused(&asked(u32::MAX, 101), &words(call, ": Variable name is too large"));
        let outside = format!(" {part}: src=65535 + length=2 exceeds the slice size=65536");
        refused(&asked(65_535, 2), &words(call, &outside));
    }
    // A longer name can be set, and is found only by its index.
    let long = "n".repeat(101);
    canister.set_environment(variables(&[(&long, "v")])).unwrap();
    assert_eq!(number(ask(&canister, "env_var_name_size", &[0])), 101);
    let copied = reply(ask(&canister, "env_var_name_copy", &[0, 200, 0, 101]));
    assert_eq!(copied, [b'n'; 100]);
}

#[test]
fn copies_outside_the_heap_or_the_text_are_refused() {
    let canister = with_variables();
    let words = |words: &str| format!("Canister violated contract: ic0.{words}");
    let cases: [(&str, &[u32], &str); 4] = [
        (
            "env_var_name_copy",
            &[1, 65_534, 0, 4],
            "env_var_name_copy heap: src=65534 + length=4 exceeds the slice size=65536",
        ),
        (
            "env_var_name_copy",
            &[1, 200, 1, 4],
            "env_var_name_copy name: src=1 + length=4 exceeds the slice size=4",
        ),
        (
            "env_var_value_copy",
            &[5, 1, 65_534, 9, 4],
            "env_var_value_copy heap: src=65534 + length=4 exceeds the slice size=65536",
        ),
        (
            "env_var_value_copy",
            &[5, 1, 200, 3, 4],
            "env_var_value_copy value: src=3 + length=4 exceeds the slice size=6",
        ),
    ];
    for (call, arguments, expected) in cases {
        refused(&ask(&canister, call, arguments), &words(expected));
    }
}

/// Charges depend on the requested size, not on the actual one.
#[test]
fn copies_are_charged_by_the_byte() {
    let canister = with_variables();
    let used = |call: &str, arguments: &[u32]| ask(&canister, call, arguments).instructions.get();
    let (none, four) = ([1, 200, 0, 0], [1, 200, 0, 4]);
    assert_eq!(used("env_var_name_copy", &four) - used("env_var_name_copy", &none), 4);
    let (none, six) = ([1, 4, 200, 0, 0], [1, 4, 200, 0, 6]);
    assert_eq!(used("env_var_value_copy", &six) - used("env_var_value_copy", &none), 6);
    let [short, long] = [[0, 1], [1, 4]];
    for call in ["env_var_name_exists", "env_var_value_size"] {
        assert_eq!(used(call, &short), used(call, &long), "{call}");
    }
}

/// Under rules that charge for touching pages, reading a name and writing a value touch pages.
#[test]
fn reading_names_and_copying_texts_touches_pages() {
    let wat = r#"(module
        (import "ic0" "env_var_value_size" (func $size (param i32 i32) (result i32)))
        (import "ic0" "env_var_value_copy" (func $value (param i32 i32 i32 i32 i32)))
        (import "ic0" "env_var_name_copy" (func $name (param i32 i32 i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (memory 8)
        (data (i32.const 0) "A")
        (func (export "canister_update nothing") (call $reply))
        (func (export "canister_update size")
            (drop (call $size (i32.const 0) (i32.const 1))) (call $reply))
        (func (export "canister_update name")
            (call $name (i32.const 0) (i32.const 131071) (i32.const 0) (i32.const 1))
            (call $reply))
        (func (export "canister_update value")
            (call $value (i32.const 0) (i32.const 1) (i32.const 131071) (i32.const 0) (i32.const 2))
            (call $reply)))"#;
    let replica = Replica::new(Rules::of_2026_08(), None).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.set_environment(variables(&[("A", "xy")])).unwrap();
    let module = replica.compile(&wat::parse_str(wat).unwrap()).unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    let mut touched = |method: &str| {
        let execution = update(&mut canister, method, &[]);
        execution.outcome.unwrap();
        let pages = execution.pages.touched.unwrap();
        (pages.heap.get(), pages.heap_written.get())
    };
    assert_eq!(touched("nothing"), (0, 0));
    assert_eq!(touched("size"), (1, 0));
    assert_eq!(touched("name"), (1, 1));
    // The page of the name, and the two pages that the value spans.
    assert_eq!(touched("value"), (3, 2));
}

#[test]
fn a_heap_with_64_bit_addresses_reads_environment_variables() {
    let mut canister = install(&reader(64, NAMES));
    canister.set_environment(variables(&THREE)).unwrap();
    let ask = |call: &str, arguments: &[u64]| {
        let argument: Vec<u8> = arguments.iter().flat_map(|number| number.to_le_bytes()).collect();
        query(&canister, call, &argument)
    };
    assert_eq!(reply(ask("env_var_count", &[]))[..8], 3_u64.to_le_bytes());
    assert_eq!(reply(ask("env_var_name_size", &[1]))[..8], 4_u64.to_le_bytes());
    assert_eq!(&reply(ask("env_var_name_copy", &[1, 200, 0, 4]))[..5], b"Zo\xc3\xab\0");
    assert_eq!(reply(ask("env_var_name_exists", &[5, 1]))[0], 1);
    assert_eq!(reply(ask("env_var_value_size", &[5, 1]))[..8], 6_u64.to_le_bytes());
    assert_eq!(&reply(ask("env_var_value_copy", &[5, 1, 200, 0, 6]))[..7], b"second\0");
    let index = u64::MAX;
    let expected = format!(
        "Environment variable index {index} is out of bounds. The number of environment variables \
         is 3"
    );
    refused(&ask("env_var_name_size", &[index]), &expected);
    let invalid = "Canister violated contract: ic0.env_var_value_copy value: \
                   src=18446744073709551615 + length=2 is an invalid address";
    refused(&ask("env_var_value_copy", &[5, 1, 200, index, 2]), invalid);
}

#[test]
fn every_mode_except_start_reads_environment_variables() {
    let wat = |exports: &str| {
        format!(
            r#"(module
            (import "ic0" "env_var_count" (func $count (result i32)))
            (import "ic0" "msg_reply" (func $reply))
            (import "ic0" "accept_message" (func $accept))
            (memory 1)
            (func $check (if (i32.ne (call $count) (i32.const 1)) (then (unreachable))))
            {exports})"#
        )
    };
    let every = wat(r#"(func (export "canister_init") (call $check))
        (func (export "canister_pre_upgrade") (call $check))
        (func (export "canister_post_upgrade") (call $check))
        (func (export "canister_inspect_message") (call $check) (call $accept))
        (func (export "canister_update u") (call $check) (call $reply))
        (func (export "canister_query q") (call $check) (call $reply))
        (func (export "canister_composite_query c") (call $check) (call $reply))"#);
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.set_environment(variables(&[("A", "1")])).unwrap();
    let module = replica.compile(&wat::parse_str(every).unwrap()).unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    canister.upgrade(&module, CALLER, &[]).unwrap().outcome.unwrap();
    for method in ["u", "q"] {
        assert_eq!(update(&mut canister, method, &[]).outcome, Ok(vec![]));
    }
    for method in ["q", "c"] {
        assert_eq!(query(&canister, method, &[]).outcome, Ok(vec![]));
    }
    let start = wat("(start $check)");
    let module = replica.compile(&wat::parse_str(start).unwrap()).unwrap();
    let expected =
        "Canister violated contract: \"ic0_env_var_count\" cannot be executed in start mode";
    refused(&canister.install(&module, CALLER, &[]).unwrap(), expected);
}

#[test]
fn environment_variables_are_settings() {
    let mut canister = install(&reader(32, NAMES));
    let version = canister.version();
    canister.set_environment(variables(&THREE)).unwrap();
    assert_eq!(canister.version(), version + 1);
    assert_eq!(canister.environment(), &variables(&THREE));
    let somebody = Principal::from_slice(&[7]);
    canister.configure_with(vec![somebody], Bytes(5), variables(&[("B", "2")])).unwrap();
    assert_eq!(canister.version(), version + 2, "one change of several settings");
    assert_eq!(canister.settings().controllers, [somebody]);
    assert_eq!(canister.environment(), &variables(&[("B", "2")]));
    canister.set_environment(variables(&THREE)).unwrap();
    assert_eq!(canister.settings().heap_limit, Bytes(5), "other settings stay");
    canister.set_environment(BTreeMap::new()).unwrap();
    assert_eq!(number(ask(&canister, "env_var_count", &[])), 0);

    // A failed change has no effect.
    let version = canister.version();
    let long = variables(&[("a", "1"), ("b", &"v".repeat(129))]);
    canister.configure_with(vec![CALLER], Bytes(6), long).unwrap_err();
    assert_eq!((canister.version(), canister.environment().len()), (version, 0));
    assert_eq!(canister.settings().controllers, [somebody]);
}

#[test]
fn the_limits_are_those_of_the_management_canister() {
    let many = |count: usize| (0..count).map(|at| (at.to_string(), String::new())).collect();
    for (rules, most) in [(Rules::of_2025_10(), 20), (Rules::of_2026_08(), 32)] {
        let replica = Replica::new(rules, None).unwrap();
        let mut canister = replica.create_canister().unwrap();
        let module = replica.compile(&wat::parse_str("(module)").unwrap()).unwrap();
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        canister.set_environment(many(most)).unwrap();
        let count = most + 1;
        let error = canister.set_environment(many(count)).unwrap_err();
        assert_eq!(error, EnvironmentError::TooMany { count, most });
        let words = format!("Too many environment variables: {count} (max: {most})");
        assert_eq!(error.to_string(), words);
    }
    // Without a module the newest rules apply.
    let mut canister = Replica::new(Rules::of_2025_10(), None).unwrap().create_canister().unwrap();
    canister.set_environment(many(32)).unwrap();
    canister.set_environment(many(33)).unwrap_err();
    // The limit is in bytes, not in characters.
    let (fits, long) = ("ä".repeat(64), "ä".repeat(64) + "x");
    canister.set_environment(variables(&[(&fits, &fits)])).unwrap();
    let error = canister.set_environment(variables(&[(&long, "")])).unwrap_err();
    let words =
        format!("Environment variable name \"{long}\" exceeds the maximum allowed length of 128.");
    assert_eq!(error.to_string(), words);
    let error = canister.set_environment(variables(&[("", &long)])).unwrap_err();
    let words =
        format!("Environment variable value \"{long}\" exceeds the maximum allowed length of 128.");
    assert_eq!(error.to_string(), words);
}

#[test]
fn forks_have_their_own_environment_variables() {
    let mut canister = with_variables();
    let mut fork = canister.fork();
    assert_eq!(fork.environment(), &variables(&THREE));
    fork.set_environment(variables(&[("only", "fork")])).unwrap();
    canister.set_environment(BTreeMap::new()).unwrap();
    assert_eq!(number(ask(&fork, "env_var_count", &[])), 1);
    assert_eq!(number(ask(&canister, "env_var_count", &[])), 0);
    // A snapshot contains no settings.
    let snapshot = fork.fork();
    fork.set_environment(variables(&THREE)).unwrap();
    fork.restore(&snapshot);
    assert_eq!(fork.environment(), &variables(&THREE));
}

#[test]
fn installing_keeps_environment_variables() {
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.set_environment(variables(&THREE)).unwrap();
    let module = replica.compile(&wat::parse_str(reader(32, NAMES)).unwrap()).unwrap();
    for _ in 0..2 {
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        let reply = update(&mut canister, "init", &[]).outcome.unwrap();
        assert_eq!(reply[8..12], 3_u32.to_le_bytes(), "init sees them");
    }
}

#[test]
fn saved_canisters_keep_environment_variables() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("canister");
    let replica = Replica::new(Rules::of_2025_10(), None).unwrap();
    let canister = with_variables();
    canister.save(&path).unwrap();
    let loaded = replica.load(&path).unwrap();
    assert_eq!(loaded.environment(), &variables(&THREE));
    assert_eq!(number(ask(&loaded, "env_var_count", &[])), 3);
    canister.save_with_note(&path, "note").unwrap();
    let (loaded, _) = replica.load_with_note(&path, canister.module().unwrap()).unwrap();
    assert_eq!(loaded.environment(), &variables(&THREE));

    // The largest number that a canister without a module can have.
    let mut canister = replica.create_canister().unwrap();
    canister
        .set_environment((0..32).map(|at| (at.to_string(), "v".repeat(128))).collect())
        .unwrap();
    let module = replica.compile(&wat::parse_str("(module)").unwrap()).unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    canister.save(&path).unwrap();
    assert_eq!(replica.load(&path).unwrap().environment().len(), 32);
}
