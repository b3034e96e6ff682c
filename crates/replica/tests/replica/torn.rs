//! A host without free file descriptors, in a process of its own, because the limit applies to a
//! process and other tests open files.

use std::env;
use std::fs::File;
use std::process::Command;

use stablebench_replica::{Canister, HostError};

use crate::support::{CALLER, compile, install};

/// Adds one to a number on the heap and to one in stable memory, and replies with both.
const MODULE: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (memory 1)
    (func $answer
        (call $read (i64.const 8) (i64.const 0) (i64.const 8))
        (call $append (i32.const 0) (i32.const 16))
        (call $reply))
    (func (export "canister_init") (drop (call $grow (i64.const 1))))
    (func (export "canister_query both") (call $answer))
    (func (export "canister_update count")
        (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1)))
        (call $write (i64.const 0) (i64.const 0) (i64.const 8))
        (call $answer)))"#;

const CHILD: &str = "STABLEBENCH_FEW_FILES";

#[test]
fn a_partly_committed_message_makes_the_canister_unusable() {
    if env::var_os(CHILD).is_some() {
        return with_few_files();
    }
    let program = env::current_exe().unwrap();
    let status = Command::new("sh")
        .args(["-c", "ulimit -n 64 && exec \"$0\" --exact torn::a_partly_committed_message_makes_the_canister_unusable --nocapture"])
        .arg(program)
        .env(CHILD, "1")
        .status()
        .unwrap();
    assert!(status.success(), "{status}");
}

fn with_few_files() {
    let saved = tempfile::tempdir().unwrap();
    let base = install(MODULE);
    let mut torn = 0;
    // From no descriptors, so that nothing can be committed, to enough for everything.
    for left in 0..6 {
        let mut canister = base.fork();
        let mut held = Vec::new();
        while let Ok(file) = File::open("/dev/null") {
            held.push(file);
        }
        held.truncate(held.len() - left);
        let counted = canister.update(CALLER, "count", &[]);
        drop(held);
        let path = saved.path().join(left.to_string());
        match counted {
            Ok(execution) => {
                execution.outcome.unwrap();
                assert_eq!(both(&canister), [1, 1], "{left} left");
                canister.save(&path).unwrap();
            }
            Err(error) => {
                assert!(matches!(error, HostError::Exhausted(_)), "{error}");
                if canister.query(CALLER, "both", &[]).is_ok() {
                    assert_eq!(both(&canister), [0, 0], "{left} left");
                    continue;
                }
                torn += 1;
                is_refused(&mut canister);
                assert!(canister.save(&path).is_err() && !path.exists(), "{left} left");
                canister.install(&compile(MODULE), CALLER, &[]).unwrap().outcome.unwrap();
                assert_eq!(both(&canister), [0, 0], "{left} left");
            }
        }
    }
    assert!((1..6).contains(&torn), "{torn} were inconsistent");
    assert_eq!(both(&base), [0, 0]);
}

/// All operations report the inconsistent state.
fn is_refused(canister: &mut Canister) {
    let module = canister.module().unwrap().clone();
    let refusals = [
        canister.update(CALLER, "count", &[]),
        canister.query(CALLER, "both", &[]),
        canister.upgrade(&module, CALLER, &[]),
        canister.fork().query(CALLER, "both", &[]),
    ];
    for refusal in refusals {
        assert!(matches!(refusal, Err(HostError::Torn)), "{refusal:?}");
    }
}

fn both(canister: &Canister) -> [u64; 2] {
    let reply = canister.query(CALLER, "both", &[]).unwrap().outcome.unwrap();
    [0, 8].map(|at| u64::from_le_bytes(reply[at..at + 8].try_into().unwrap()))
}
