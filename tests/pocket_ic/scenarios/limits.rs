//! The limits of a message, each at the limit and one beyond it, and messages of more than 2 G
//! instructions, which take several rounds.

use crate::pair::Pair;
use crate::replica::{CONTROLLER, Canister, Replica, Rules};

const QUERY: u64 = 5_000_000_000;
const UPDATE: u64 = 40_000_000_000;
const MIB: u32 = 1 << 20;

pub fn query_instructions(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, FILL);
    let (argument, counter) = querying(replica.rules(), QUERY);
    assert_eq!(number(&canister.query(CONTROLLER, "query", &argument).unwrap()), counter);
    let (argument, _) = querying(replica.rules(), QUERY + 1);
    let refused = canister.query(CONTROLLER, "query", &argument).unwrap_err();
    assert_eq!(refused.code, "CanisterInstructionLimitExceeded");
    assert!(refused.message.contains("5000000000"), "{}", refused.message);
}

pub fn update_instructions(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, FILL);
    let (argument, counter) = updating(replica.rules(), UPDATE);
    let most = canister.update(CONTROLLER, "update", &argument);
    assert_eq!(number(&most.outcome.unwrap()), counter);
    let (argument, _) = updating(replica.rules(), UPDATE + 1);
    let refused = canister.update(CONTROLLER, "update", &argument).outcome.unwrap_err();
    assert_eq!(refused.code, "CanisterInstructionLimitExceeded");
    assert!(refused.message.contains("40000000000"), "{}", refused.message);
    let last = canister.query(CONTROLLER, "last", &[]).unwrap();
    assert_eq!(number(&last), counter, "the rejected update is rolled back");
}

/// A canister that replies with as many bytes as its argument requests.
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

pub fn reply_size(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, REPLIES);
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

/// Stable pages of 4 KiB that one query may access, 1 GiB in total.
const STABLE_PAGES: u32 = 1 << 18;

/// A canister that reads one byte of each of as many stable pages as its argument requests.
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

pub fn query_stable_pages(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, STABLE_READS);
    let most = canister.query(CONTROLLER, "query", &STABLE_PAGES.to_le_bytes());
    assert_eq!(most, Ok(vec![]));
    let more = canister.query(CONTROLLER, "query", &(STABLE_PAGES + 1).to_le_bytes());
    assert_eq!(more.unwrap_err().code, "CanisterMemoryAccessLimitExceeded");
}

const SLICE: u64 = 2_000_000_000;

/// Slicing changes no count: the counter shows the cost of the operators only.
pub fn long_message(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, FILL);
    for instructions in [SLICE - 1, SLICE, SLICE + 1, 2 * SLICE + SLICE / 2] {
        let (argument, counter) = updating(replica.rules(), instructions);
        let updated = canister.update(CONTROLLER, "update", &argument);
        assert_eq!(number(&updated.outcome.unwrap()), counter);
        let last = canister.query(CONTROLLER, "last", &[]).unwrap();
        assert_eq!(number(&last), counter, "the change is committed");
    }
}

/// A trap also rolls back the changes of earlier slices.
pub fn long_message_that_traps(replica: &dyn Replica) {
    let mut canister = Pair::with(replica, FILL);
    let (argument, counter) = updating(replica.rules(), SLICE / 1_000);
    let first = canister.update(CONTROLLER, "update", &argument);
    assert_eq!(number(&first.outcome.unwrap()), counter);
    let (argument, _) = updating(replica.rules(), 2 * SLICE + SLICE / 2);
    let trapped = canister.update(CONTROLLER, "update_and_trap", &argument);
    assert_eq!(trapped.outcome.unwrap_err().code, "CanisterTrapped");
    assert!(trapped.cycles > u128::from(2 * SLICE), "all slices are charged");
    let last = canister.query(CONTROLLER, "last", &[]).unwrap();
    assert_eq!(number(&last), counter);
}

/// A canister that uses as many instructions as its argument requests.
const FILL: &str = include_str!("fill.wat");

/// A function, and each operator without a constant of its own.
const ONE: u64 = 1;
const BR_IF: u64 = 2;
const CALL: u64 = 5;
const MEMORY_FILL: u64 = 100;
const SYSTEM_CALL: u64 = 500;
const PERFORMANCE_COUNTER: u64 = 200;
/// One byte of a reply.
const REPLIED: u64 = 50;

/// Bytes that one iteration fills.
const CHUNK: u64 = 65_536;
/// One iteration: three constants, the fill; `get`, constant, `sub`, `tee`, `br_if`.
const ITERATION: u64 = 3 * ONE + MEMORY_FILL + CHUNK + 4 * ONE + BR_IF;
/// `$fill` without iterations and bytes: the function, three constants and the argument of
/// 8 bytes; constant, `load`, `set`; three operands, one with an address, and the fill.
const FILLING: u64 = ONE + 3 * ONE + CALL + SYSTEM_CALL + 8 + 3 * ONE + 4 * ONE + MEMORY_FILL;
/// `$answer` until it reads the counter, by when all operators of the function have been charged:
/// the function, four constants, `store`, four calls.
const READING: u64 = ONE + 4 * ONE + ONE + 4 * CALL + PERFORMANCE_COUNTER;
/// `$answer` after that.
const ANSWERING: u64 = SYSTEM_CALL + 8 * REPLIED + SYSTEM_CALL;

/// Wasm pages of the heap: one is filled, the other takes the argument.
const PAGES: u64 = 2;

/// Returns the argument with which an update uses exactly `instructions`, and its reply.
fn updating(rules: Rules, instructions: u64) -> ([u8; 8], u64) {
    let prices = rules.pages();
    using(instructions, PAGES * (prices.wasm_page_touched + prices.wasm_page_written).get())
}

/// The same for a query, which is not charged for written pages.
fn querying(rules: Rules, instructions: u64) -> ([u8; 8], u64) {
    using(instructions, PAGES * rules.pages().wasm_page_touched.get())
}

fn using(instructions: u64, pages: u64) -> ([u8; 8], u64) {
    let filling = instructions - (FILLING + READING + ANSWERING + pages);
    let times = u32::try_from(filling / ITERATION).unwrap();
    let rest = u32::try_from(filling % ITERATION).unwrap();
    assert!(times > 0 && u64::from(rest) <= CHUNK, "{instructions} cannot be used");
    let mut argument = [0; 8];
    argument[..4].copy_from_slice(&times.to_le_bytes());
    argument[4..].copy_from_slice(&rest.to_le_bytes());
    (argument, instructions - ANSWERING)
}

/// Decodes the number in a reply.
fn number(reply: &[u8]) -> u64 {
    u64::from_le_bytes(reply.try_into().unwrap())
}
