//! Instructions of each kind of message.

use stablebench_replica::{Cycles, ErrorCode, Execution, Instructions};

use super::support::{CALLER, code, compile, install, query, update};
use super::*;

/// A function that, with its call, uses exactly `instructions`, in milliseconds: operators whose
/// result is dropped are charged for and compile to nothing.
fn burn(name: &str, instructions: u64) -> String {
    const OPERATORS: usize = 1_000;
    let round = OPERATORS as u64 * (F64_MIN + 3 * ONE) + 4 * ONE + BR_IF;
    // The call; the function and its first constant, set and loop; after the loop
    // the operands of the fill and the fill.
    let fixed = CALL + 3 * ONE + 3 * ONE + MEMORY_FILL;
    let rounds = (instructions - fixed) / round;
    let rest = (instructions - fixed) % round;
    let operators = "(drop (f64.min (f64.const 0) (f64.const 0)))".repeat(OPERATORS);
    format!(
        "(func ${name} (local $rounds i32)
            (local.set $rounds (i32.const {rounds}))
            (loop $again
                {operators}
                (br_if $again (local.tee $rounds
                    (i32.sub (local.get $rounds) (i32.const 1)))))
            (memory.fill (i32.const 0) (i32.const 0) (i32.const {rest})))"
    )
}

/// A module with one method that replies and uses exactly `instructions`.
fn method(kind: &str, instructions: u64) -> String {
    let burn = burn("burn", instructions - (ONE + CALL + SYSTEM_CALL));
    format!(
        r#"(module (import "ic0" "msg_reply" (func $reply)) (memory 1) {burn}
            (func (export "{kind} go") (call $reply) (call $burn)))"#
    )
}

/// As [`out_of_instructions`], of a message whose last charge was one too much.
#[track_caller]
fn one_too_many(execution: &Execution, limit: u64) {
    out_of_instructions(execution, limit);
    assert_eq!(execution.instructions, Instructions(limit + 1));
}

#[test]
fn instructions_of_an_update() {
    let execution = update(&mut install(&method("canister_update", UPDATE)), "go", &[]);
    assert_eq!(execution.outcome, Ok(vec![]));
    assert_eq!(execution.instructions, Instructions(UPDATE));
    let execution = update(&mut install(&method("canister_update", UPDATE + 1)), "go", &[]);
    one_too_many(&execution, UPDATE);
}

#[test]
fn instructions_of_a_query() {
    for kind in ["canister_query", "canister_composite_query"] {
        let execution = query(&install(&method(kind, QUERY)), "go", &[]);
        assert_eq!(execution.outcome, Ok(vec![]));
        assert_eq!(execution.instructions, Instructions(QUERY));
        one_too_many(&query(&install(&method(kind, QUERY + 1)), "go", &[]), QUERY);
    }
}

/// In slices, as an update.
#[test]
fn instructions_of_a_query_called_as_an_update() {
    let execution = update(&mut install(&method("canister_query", QUERY)), "go", &[]);
    assert_eq!(execution.outcome, Ok(vec![]));
    assert_eq!(execution.instructions, Instructions(QUERY));
    let execution = update(&mut install(&method("canister_query", QUERY + 1)), "go", &[]);
    one_too_many(&execution, QUERY);
}

#[test]
fn instructions_of_an_install_are_those_of_all_its_functions() {
    let installing = |init: u64, start: u64| {
        try_install(&format!(
            r#"(module (memory 1) {} {}
                (func $start (call $burn_start)) (start $start)
                (func (export "canister_init") (call $burn_init)))"#,
            burn("burn_start", start - ONE),
            burn("burn_init", init - ONE),
        ))
    };
    let start = INSTALL / 3;
    let execution = installing(INSTALL - start, start);
    assert_eq!(execution.outcome, Ok(vec![]));
    assert_eq!(execution.instructions, Instructions(INSTALL));
    let execution = installing(INSTALL - start + 1, start);
    assert_eq!(code(&execution), ErrorCode::CanisterInstructionLimitExceeded);
    assert_eq!(execution.instructions, Instructions(INSTALL + 1));
    assert_eq!(execution.charge, Instructions(INSTALL));
}

/// Those of the old module count too.
#[test]
fn instructions_of_an_upgrade_are_those_of_all_its_functions() {
    let upgrading = |post: u64| {
        let third = INSTALL / 3;
        let mut canister = install(&format!(
            r#"(module (memory 1) {}
                (func (export "canister_pre_upgrade") (call $burn)))"#,
            burn("burn", third - ONE),
        ));
        let new = format!(
            r#"(module (memory 1) {} {}
                (func $start (call $burn_start)) (start $start)
                (func (export "canister_post_upgrade") (call $burn_post)))"#,
            burn("burn_start", third - ONE),
            burn("burn_post", post - ONE),
        );
        canister.upgrade(&compile(&new), CALLER, &[]).unwrap()
    };
    let execution = upgrading(INSTALL / 3);
    assert_eq!(execution.outcome, Ok(vec![]));
    assert_eq!(execution.instructions, Instructions(INSTALL));
    let execution = upgrading(INSTALL / 3 + 1);
    assert_eq!(code(&execution), ErrorCode::CanisterInstructionLimitExceeded);
    assert_eq!(execution.charge, Instructions(INSTALL));
}

#[test]
fn instructions_of_inspecting_a_message() {
    let inspecting = |instructions: u64| {
        let burn = burn("burn", instructions - (ONE + CALL + SYSTEM_CALL));
        let mut canister = install(&format!(
            r#"(module
                (import "ic0" "accept_message" (func $accept))
                (import "ic0" "msg_reply" (func $reply))
                (memory 1) {burn}
                (func (export "canister_inspect_message") (call $accept) (call $burn))
                (func (export "canister_update go") (call $reply)))"#
        ));
        update(&mut canister, "go", &[])
    };
    assert_eq!(inspecting(INSPECT).outcome, Ok(vec![]));
    let refused = inspecting(INSPECT + 1);
    assert_eq!(code(&refused), ErrorCode::CanisterInstructionLimitExceeded);
    let expected = format!("Canister exceeded the limit of {INSPECT} instructions");
    assert!(words(&refused.outcome.unwrap_err().message).starts_with(&expected));
    assert_eq!(refused.cycles, Cycles(0), "what is not let in pays nothing");
}

/// A single charge may overrun its slice, by less than another slice. A query has one
/// slice, unless it is called as an update.
#[test]
fn one_charge_and_the_slice() {
    let canister = |instructions: u64| {
        let size = instructions - (ONE + 3 * ONE + MEMORY_FILL);
        install(&format!(
            r#"(module (memory 1)
            (func (export "canister_update u")
                (memory.fill (i32.const 0) (i32.const 1) (i32.const {size})))
            (func (export "canister_query q")
                (memory.fill (i32.const 0) (i32.const 1) (i32.const {size}))))"#
        ))
    };
    let (mut most, mut more) = (canister(2 * SLICE - 1), canister(2 * SLICE));
    for method in ["u", "q"] {
        let charged = update(&mut most, method, &[]);
        // The heap is smaller than that.
        trapped(&charged, "heap out of bounds");
        assert_eq!(charged.instructions, Instructions(2 * SLICE - 1));
        rejected(
            &update(&mut more, method, &[]),
            ErrorCode::CanisterInstructionLimitExceeded,
            "Canister attempted to perform a large memory operation that used 4000000000 \
             instructions and exceeded the slice limit 2000000000",
        );
    }
    trapped(&query(&more, "q", &[]), "heap out of bounds");
}
