//! The limits of a message: at each it succeeds, one past it does not.

use super::fill::{FILL, number, querying, updating};
use crate::beside::Beside;
use crate::canister::{CONTROLLER, Canister, Replica};

const QUERY: u64 = 5_000_000_000;
const UPDATE: u64 = 40_000_000_000;
const MIB: u32 = 1 << 20;

pub fn instructions_of_a_query(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, FILL);
    let (argument, counter) = querying(replica.rules(), QUERY);
    assert_eq!(number(&canister.query(CONTROLLER, "query", &argument).unwrap()), counter);
    let (argument, _) = querying(replica.rules(), QUERY + 1);
    let refused = canister.query(CONTROLLER, "query", &argument).unwrap_err();
    assert_eq!(refused.code, "CanisterInstructionLimitExceeded");
    assert!(refused.message.contains("5000000000"), "{}", refused.message);
}

pub fn instructions_of_an_update(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, FILL);
    let (argument, counter) = updating(replica.rules(), UPDATE);
    let most = canister.update(CONTROLLER, "update", &argument);
    assert_eq!(number(&most.outcome.unwrap()), counter);
    let (argument, _) = updating(replica.rules(), UPDATE + 1);
    let refused = canister.update(CONTROLLER, "update", &argument).outcome.unwrap_err();
    assert_eq!(refused.code, "CanisterInstructionLimitExceeded");
    assert!(refused.message.contains("40000000000"), "{}", refused.message);
    let last = canister.query(CONTROLLER, "last", &[]).unwrap();
    assert_eq!(number(&last), counter, "what was refused is undone");
}

/// Replies with as many bytes as the argument says.
const REPLIES: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 64)
    (func $answer
        (call $argument (i32.const 0) (i32.const 0) (i32.const 4))
        (call $append (i32.const 4) (i32.load (i32.const 0)))
        (call $reply))
    (export "canister_update update" (func $answer))
    (export "canister_query query" (func $answer)))"#;

pub fn replies(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, REPLIES);
    for (called_as_update, method, limit) in
        [(true, "update", 2 * MIB), (true, "query", 2 * MIB), (false, "query", 3 * MIB)]
    {
        let mut answer = |bytes: u32| {
            let argument = bytes.to_le_bytes();
            if called_as_update {
                canister.update(CONTROLLER, method, &argument).outcome
            } else {
                canister.query(CONTROLLER, method, &argument)
            }
        };
        assert_eq!(answer(limit).unwrap().len(), limit as usize, "{method}");
        let refused = answer(limit + 1).unwrap_err();
        assert_eq!(refused.code, "CanisterContractViolation", "{method}");
    }
}

/// Stable pages of 4 KiB that one query may access: 1 GiB of them.
const STABLE_PAGES: u32 = 1 << 18;

/// Reads a byte of each of as many stable pages as the argument says.
const STABLE_READS: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (memory 1)
    (func (export "canister_init")
        ;; 16 384 wasm pages of 64 KiB are 1 GiB.
        (drop (call $grow (i64.const 16385))))
    (func (export "canister_query query") (local $left i32) (local $at i64)
        (call $argument (i32.const 0) (i32.const 0) (i32.const 4))
        (local.set $left (i32.load (i32.const 0)))
        (loop $next
            (call $read (i64.const 4) (local.get $at) (i64.const 1))
            (local.set $at (i64.add (local.get $at) (i64.const 4096)))
            (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1)))))
        (call $reply)))"#;

pub fn stable_pages_of_a_query(replica: &dyn Replica) {
    let mut canister = Beside::with(replica, STABLE_READS);
    let most = canister.query(CONTROLLER, "query", &STABLE_PAGES.to_le_bytes());
    assert_eq!(most, Ok(vec![]));
    let more = canister.query(CONTROLLER, "query", &(STABLE_PAGES + 1).to_le_bytes());
    assert_eq!(more.unwrap_err().code, "CanisterMemoryAccessLimitExceeded");
}
