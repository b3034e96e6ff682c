//! Tests of the replica as its users see it, each subject in a module; here those of assertions and
//! canisters for developers' own tests. Those that measure the process are in `process`.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]
#![allow(clippy::print_stdout, reason = "the output of a failed test names its input")]

#[path = "../support/mod.rs"]
mod support;

mod calls;
mod fuzzing;
mod hosts;
mod keys;
mod life;
mod limits;
mod logs;
mod management;
mod model;
mod motoko;
mod pages;
mod settings;
mod snapshots;
mod stable_memory;
mod subnet;

use stablebench_replica::testing::{Canister, assert_instructions};
use stablebench_replica::{ErrorCode, Principal, ReplyError, Rules};

/// Adds the argument, a Candid `nat64`, to a number that is kept, and replies with it.
const COUNTER: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_caller_size" (func $caller (result i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (data (i32.const 0) "DIDL\00\01\78")
    (data (i32.const 64) "DIDL\00\01\7d")
    (func $show (call $append (i32.const 0) (i32.const 15)) (call $reply))
    (func (export "canister_update add")
        (call $argument (i32.const 32) (i32.const 7) (i32.const 8))
        (i64.store (i32.const 7) (i64.add (i64.load (i32.const 7)) (i64.load (i32.const 32))))
        (call $show))
    (func (export "canister_query get") (call $show))
    (func (export "canister_query caller")
        (i32.store8 (i32.const 71) (call $caller))
        (call $append (i32.const 64) (i32.const 8)) (call $reply))
    (func (export "canister_update trap") (unreachable)))"#;

fn counter() -> Canister {
    Canister::install(&wat::parse_str(COUNTER).unwrap(), ())
}

#[test]
fn messages_take_and_return_values() {
    let mut canister = counter();
    assert_eq!(canister.update("add", (3_u64,)).reply::<(u64,)>().unwrap(), (3,));
    let mut fork = canister.fork();
    assert_eq!(fork.update("add", (4_u64,)).reply::<(u64,)>().unwrap(), (7,));
    assert_eq!(canister.query("get", ()).reply::<(u64,)>().unwrap(), (3,));
    let size =
        |canister: &Canister| canister.query("caller", ()).reply::<(candid::Nat,)>().unwrap().0;
    assert_eq!(size(&fork), 1_u8, "the anonymous principal");
    fork.set_caller(Principal::management_canister());
    assert_eq!(size(&fork), 0_u8);
    assert_eq!(size(&canister), 1_u8);
    let module = wat::parse_str(COUNTER).unwrap();
    canister.upgrade(&module, ()).outcome.unwrap();
    assert_eq!(canister.query("get", ()).reply::<(u64,)>().unwrap(), (0,), "the heap is new");
    assert_eq!(canister.heap_size().get(), 1, "it is a canister");
}

#[test]
fn replies_that_are_not_there_are_errors() {
    let mut canister = counter();
    let error = canister.update("trap", ()).reply::<()>().unwrap_err();
    assert!(
        matches!(&error, ReplyError::Rejected(reject) if reject.code == ErrorCode::CanisterTrapped),
        "{error}"
    );
    let error = canister.query("get", ()).reply::<(String,)>().unwrap_err();
    assert!(error.to_string().starts_with("the reply has other types: "), "{error}");
}

#[test]
fn ceilings_include_the_number_itself() {
    let mut canister = counter();
    let used = canister.update("add", (1_u64,)).instructions.get();
    let execution = assert_instructions!(canister.update("add", (1_u64,)), <= used);
    assert_eq!(execution.reply::<(u64,)>().unwrap(), (2,));
    assert_instructions!(canister.update("add", (1_u64,)), == used);
    // The result of a canister without a caller of its own, and an execution, are accepted too.
    let caller = Principal::anonymous();
    let execution = assert_instructions!((*canister).query(caller, "get", b"DIDL\0\0"), <= used);
    assert_instructions!(execution, <= used,);
}

#[test]
#[should_panic(expected = "`canister.update(\"add\", (1_u64,))` used ")]
fn one_more_than_the_ceiling_fails() {
    let mut canister = counter();
    let used = canister.update("add", (1_u64,)).instructions.get();
    assert_instructions!(canister.update("add", (1_u64,)), <= used - 1);
}

#[test]
#[should_panic(expected = " instructions instead of 1")]
fn another_number_fails() {
    assert_instructions!(counter().query("get", ()), == 1);
}

/// A message that ends early is cheap, but not what the test is about.
#[test]
#[should_panic(expected = "`counter().update(\"trap\", ())` was rejected: CanisterTrapped: ")]
fn a_rejected_message_fails() {
    assert_instructions!(counter().update("trap", ()), <= 1_000_000);
}

#[test]
#[should_panic(expected = "the module is rejected: CanisterInvalidWasm: ")]
fn a_module_that_is_none_fails() {
    Canister::install(b"wasm", ());
}

#[test]
#[should_panic(expected = "the installation is rejected: CanisterTrapped: ")]
fn an_installation_that_traps_fails() {
    let module = r#"(module (func (export "canister_init") (unreachable)))"#;
    Canister::install(&wat::parse_str(module).unwrap(), ());
}

#[test]
fn counts_are_lines_for_snapshots() {
    let module = wat::parse_str(COUNTER).unwrap();
    let mut text = String::new();
    for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
        let mut canister = Canister::install_under(rules, &module, ());
        for execution in [canister.update("add", (3_u64,)), canister.update("trap", ())] {
            text += &format!("{rules}\n{}\n\n", execution.counts());
        }
    }
    insta::assert_snapshot!(text.trim_end());
}
