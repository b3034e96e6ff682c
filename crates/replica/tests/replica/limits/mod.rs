//! Limits of messages: instructions of each kind, the depth of the stack, sizes of arguments, replies,
//! certified data and logs. A message at the limit succeeds, and one beyond it fails. `memory` has the
//! limits of memories and modules.
//!
//! The expected costs are computed here from the operators with the prices below. Codes and messages
//! are compared completely, as those of recorded cases are.

mod memory;

use stablebench_replica::{Canister, Cycles, Effort, ErrorCode, Execution, Instructions, Replica};

use crate::support::{
    CALLER, code, compile, install, numbers, out_of_instructions, query, rejected, trapped, update,
    words,
};

/// A function, and each of the operators `const`, `local.get`, `local.tee`,
/// `drop`, `i32.sub`.
const ONE: u64 = 1;
const BR: u64 = 2;
const BR_IF: u64 = 2;
const CALL: u64 = 5;
const F64_MIN: u64 = 18;
const MEMORY_FILL: u64 = 100;
/// A System API call, without the operator.
const SYSTEM_CALL: u64 = 500;
const PERFORMANCE_COUNTER: u64 = 200;
const DEBUG_PRINT: u64 = 100;
const STABLE_GROW: u64 = 100;
const STABLE_READ: u64 = 20;
const STABLE_WRITE: u64 = 20;
const STABLE_PAGE_WRITTEN: u64 = 1_000;

const UPDATE: u64 = 40_000_000_000;
const QUERY: u64 = 5_000_000_000;
const INSTALL: u64 = 300_000_000_000;
const INSPECT: u64 = 200_000_000;
const SLICE: u64 = 2_000_000_000;

const GIB: u64 = 1 << 30;
const MIB: usize = 1 << 20;
const WASM_PAGE: u64 = 65_536;
const OS_PAGE: u64 = 4_096;

/// The result of `memory.grow` and similar calls that fail.
const REFUSED: u64 = u64::MAX;

fn empty() -> Canister {
    Replica::new(stablebench_replica::Rules::of_2025_10(), None).unwrap().create_canister().unwrap()
}

/// Installs a module into an empty canister.
fn try_install(wat: &str) -> Execution {
    empty().install(&compile(wat), CALLER, &[]).unwrap()
}

/// A function that uses exactly `instructions` including its call, in milliseconds: operators whose
/// result is dropped are charged but compile to nothing.
fn burn(name: &str, instructions: u64) -> String {
    const OPERATORS: usize = 1_000;
    let round = OPERATORS as u64 * (F64_MIN + 3 * ONE) + 4 * ONE + BR_IF;
    // The call; the function and its first constant, set and loop; after the loop the operands of
    // the fill and the fill.
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

/// Like [`out_of_instructions`], for a message whose last charge exceeded the limit by one.
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

/// Executed in slices, like an update.
#[test]
fn instructions_of_a_query_called_as_an_update() {
    let execution = update(&mut install(&method("canister_query", QUERY)), "go", &[]);
    assert_eq!(execution.outcome, Ok(vec![]));
    assert_eq!(execution.instructions, Instructions(QUERY));
    let execution = update(&mut install(&method("canister_query", QUERY + 1)), "go", &[]);
    one_too_many(&execution, QUERY);
}

#[test]
fn instructions_of_an_install_include_all_its_functions() {
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

/// The functions of the old module count too.
#[test]
fn instructions_of_an_upgrade_include_all_its_functions() {
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
    assert_eq!(refused.cycles, Cycles(0), "a message that is not inducted is free");
}

/// A single charge may overrun its slice by less than another slice. A query has one slice, unless
/// it is called as an update.
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
        // The heap is smaller than the range of the operator.
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

const DEEP: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (func $depth (param $left i32) (result i32)
        (if (result i32) (local.get $left)
            (then (i32.add (i32.const 1)
                (call $depth (i32.sub (local.get $left) (i32.const 1)))))
            (else (i32.const 0))))
    (func $go
        (call $argument (i32.const 0) (i32.const 0) (i32.const 4))
        (i64.store (i32.const 0) (i64.extend_i32_u (call $depth (i32.load (i32.const 0)))))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (export "canister_update u" (func $go))
    (export "canister_query q" (func $go)))"#;

fn recur() {
    let mut canister = install(DEEP);
    let endless = u32::MAX.to_le_bytes();
    for _ in 0..3 {
        for overflow in [update(&mut canister, "u", &endless), query(&canister, "q", &endless)] {
            trapped(&overflow, "stack overflow");
        }
        let deep = 10_000_u32.to_le_bytes();
        assert_eq!(numbers(update(&mut canister, "u", &deep)), [10_000]);
        assert_eq!(numbers(query(&canister, "q", &deep)), [10_000]);
    }
}

#[test]
fn recursion() {
    recur();
}

/// The deepest recursion has the same depth and the same counts without optimisation, whose functions
/// need more stack.
#[test]
fn recursion_without_optimisation() {
    let rules = stablebench_replica::Rules::of_2025_10();
    let canisters = [Effort::Full, Effort::Least].map(|effort| {
        let replica = Replica::with_effort(effort, rules, None, |_| {}).unwrap();
        let module = replica.compile(&wat::parse_str(DEEP).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        canister
    });
    let counted = |canister: &Canister, depth: u32| {
        let of = query(canister, "q", &depth.to_le_bytes());
        (of.outcome, of.instructions)
    };
    let [optimised, other] = &canisters;
    let (mut fits, mut overflows) = (10_000, 10_000_000);
    while overflows - fits > 1 {
        let depth = (fits + overflows) / 2;
        match counted(optimised, depth).0 {
            Ok(_) => fits = depth,
            Err(_) => overflows = depth,
        }
    }
    for depth in [10, fits / 2, fits - 1, fits, overflows, overflows + 1, u32::MAX] {
        assert_eq!(counted(other, depth), counted(optimised, depth), "{depth}");
    }
    // An update is repeated on the state before it.
    let [mut optimised, mut other] = canisters;
    for depth in [overflows, 5] {
        let sent = |canister: &mut Canister| {
            let of = update(canister, "u", &depth.to_le_bytes());
            (of.outcome, of.instructions, of.charge)
        };
        assert_eq!(sent(&mut other), sent(&mut optimised), "{depth}");
    }
}

#[test]
fn recursion_on_a_thread_with_little_stack() {
    for stack in [256 << 10, 2 * MIB] {
        std::thread::Builder::new().stack_size(stack).spawn(recur).unwrap().join().unwrap();
    }
}

/// Kinds of endless recursion; `$f` is the function to call.
const ENDLESS: &[(&str, &str)] = &[
    ("directly", "(func $f (call $f))"),
    ("indirectly", "(func $f (call $g)) (func $g (call $f) (nop))"),
    (
        "through a table",
        "(table 2 funcref) (elem (i32.const 1) $f) (func $f (call_indirect (i32.const 1)))",
    ),
    // Each frame is larger than a guard page, and than the spare stack of the host.
    (
        "with large frames",
        "(func $f (result v128) LOCALS (call $f) SUM) (func $g (drop (call $f)))",
    ),
];

fn endless(way: &str) -> String {
    const LOCALS: usize = 4_000;
    let locals = "(local v128)".repeat(LOCALS);
    // The locals are loaded before the call and used after it.
    let set: String = (0..LOCALS)
        .map(|local| format!("(local.set {local} (v128.load offset={local} (i32.const 0)))"))
        .collect();
    let sum: String = (0..LOCALS).map(|local| format!("(i64x2.add (local.get {local}))")).collect();
    way.replace("LOCALS", &format!("{locals}{set}")).replace("SUM", &sum)
}

/// Recursion in each function that the replica calls.
#[test]
fn endless_recursion() {
    for (name, way) in ENDLESS {
        let function = if way.contains("$g (drop") { "$g" } else { "$f" };
        let module = |uses: &str| {
            let uses = uses.replace("$f", function);
            let reply = r#"(import "ic0" "msg_reply" (func $reply))"#;
            format!("(module {reply} (memory 1) {} {uses})", endless(way))
        };
        let exporting = |what: &str| module(&format!(r#"(export "{what}" (func $f))"#));

        trapped(&try_install(&module("(start $f)")), "stack overflow");
        trapped(&try_install(&exporting("canister_init")), "stack overflow");
        let new = compile(&exporting("canister_post_upgrade"));
        trapped(&install("(module)").upgrade(&new, CALLER, &[]).unwrap(), "stack overflow");
        let mut old = install(&exporting("canister_pre_upgrade"));
        trapped(&old.upgrade(&compile("(module)"), CALLER, &[]).unwrap(), "stack overflow");

        let mut canister = install(&exporting("canister_update u"));
        trapped(&update(&mut canister, "u", &[]), "stack overflow");
        for kind in ["query", "composite_query"] {
            let canister = install(&exporting(&format!("canister_{kind} q")));
            trapped(&query(&canister, "q", &[]), "stack overflow");
        }
        let inspecting = r#"(export "canister_inspect_message" (func $f))
            (func (export "canister_update u") (call $reply))"#;
        let mut canister = install(&module(inspecting));
        let before = canister.balance();
        trapped(&update(&mut canister, "u", &[]), "stack overflow");
        assert_eq!(canister.balance(), before, "{name}: a message that is not inducted is free");
    }
}

/// The compiler does not recurse either.
#[test]
fn deeply_nested_blocks() {
    let nested = |depth: usize| {
        format!(
            r#"(module (import "ic0" "msg_reply" (func $reply))
            (func (export "canister_query go") {} (call $reply) {}))"#,
            "block ".repeat(depth),
            "end ".repeat(depth),
        )
    };
    std::thread::Builder::new()
        .stack_size(256 << 10)
        .spawn(move || {
            // Each block costs 50, each end 1: just below the highest complexity.
            assert_eq!(query(&install(&nested(19_000)), "go", &[]).outcome, Ok(vec![]));
        })
        .unwrap()
        .join()
        .unwrap();
}

#[test]
fn argument() {
    let mut canister = install(
        r#"(module
            (import "ic0" "msg_arg_data_size" (func $size (result i32)))
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1)
            (func $answer
                (i64.store (i32.const 0) (i64.extend_i32_u (call $size)))
                (call $append (i32.const 0) (i32.const 8)) (call $reply))
            (export "canister_update u" (func $answer))
            (export "canister_query q" (func $answer)))"#,
    );
    let most = vec![0; 2 * MIB];
    assert_eq!(numbers(update(&mut canister, "u", &most)), [2 << 20]);
    assert_eq!(numbers(query(&canister, "q", &most)), [2 << 20]);
    let module = compile("(module)");
    assert_eq!(canister.fork().install(&module, CALLER, &most).unwrap().outcome, Ok(vec![]));
    assert_eq!(canister.fork().upgrade(&module, CALLER, &most).unwrap().outcome, Ok(vec![]));

    let more = vec![0; 2 * MIB + 1];
    let (before, hash) = (canister.balance(), canister.module().unwrap().hash());
    for refused in [
        update(&mut canister, "u", &more),
        query(&canister, "q", &more),
        canister.install(&module, CALLER, &more).unwrap(),
        canister.upgrade(&module, CALLER, &more).unwrap(),
    ] {
        assert_eq!(code(&refused), ErrorCode::InvalidManagementPayload);
    }
    assert_eq!(canister.balance(), before, "a message that is not inducted is free");
    assert_eq!(canister.module().unwrap().hash(), hash);
}

/// Replies with as many bytes as its argument says, in two parts.
fn replying() -> Canister {
    install(
        r#"(module
            (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reject" (func $reject (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 64)
            (func $size (result i32)
                (call $argument (i32.const 0) (i32.const 0) (i32.const 4))
                (i32.load (i32.const 0)))
            (func $answer (local $size i32)
                (local.set $size (call $size))
                (call $append (i32.const 4) (i32.const 1000000))
                (call $append (i32.const 4) (i32.sub (local.get $size) (i32.const 1000000)))
                (call $reply))
            (export "canister_update u" (func $answer))
            (export "canister_query q" (func $answer))
            (func (export "canister_update reject")
                (call $reject (i32.const 4) (call $size))))"#,
    )
}

#[test]
fn reply() {
    let mut canister = replying();
    let size = |bytes: usize| u32::try_from(bytes).unwrap().to_le_bytes();
    let length = |execution: &Execution| execution.outcome.as_ref().map(Vec::len).ok();

    let too_long = |execution: &Execution, call: &str, bytes: usize, limit: usize| {
        let words = format!(
            "Canister violated contract: ic0.{call}: application payload size ({bytes}) cannot be \
             larger than {limit}"
        );
        rejected(execution, ErrorCode::CanisterContractViolation, &words);
    };
    for called in ["u", "q"] {
        let most = update(&mut canister, called, &size(2 * MIB));
        assert_eq!(length(&most), Some(2 * MIB));
        let more = update(&mut canister, called, &size(2 * MIB + 1));
        too_long(&more, "msg_reply_data_append", 2_097_153, 2_097_152);
    }
    assert_eq!(length(&query(&canister, "q", &size(3 * MIB))), Some(3 * MIB));
    let more = query(&canister, "q", &size(3 * MIB + 1));
    too_long(&more, "msg_reply_data_append", 3_145_729, 3_145_728);

    let most = update(&mut canister, "reject", &size(2 * MIB));
    assert_eq!(code(&most), ErrorCode::CanisterRejectedMessage);
    assert_eq!(most.outcome.unwrap_err().message.len(), 2 * MIB);
    let more = update(&mut canister, "reject", &size(2 * MIB + 1));
    too_long(&more, "msg_reject", 2_097_153, 2_097_152);
}

#[test]
fn certified_data() {
    let mut canister = install(
        r#"(module
            (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1) (data (i32.const 0) "certified data of 33 bytes, not 32")
            (func (export "canister_update 32")
                (call $certify (i32.const 0) (i32.const 32)) (call $reply))
            (func (export "canister_update 33")
                (call $certify (i32.const 0) (i32.const 33)) (call $reply))
            (func (export "canister_query q")
                (call $certify (i32.const 0) (i32.const 1)) (call $reply)))"#,
    );
    assert_eq!(canister.certified_data(), b"");
    rejected(
        &update(&mut canister, "33", &[]),
        ErrorCode::CanisterContractViolation,
        "Canister violated contract: ic0_certified_data_set failed because the passed data must \
         be no larger than 32 bytes. Found 33 bytes",
    );
    assert_eq!(canister.certified_data(), b"");
    assert_eq!(update(&mut canister, "32", &[]).outcome, Ok(vec![]));
    assert_eq!(canister.certified_data(), b"certified data of 33 bytes, not ");
    assert_eq!(code(&query(&canister, "q", &[])), ErrorCode::CanisterContractViolation);
    assert_eq!(canister.certified_data(), b"certified data of 33 bytes, not ");
}

/// Printing costs 50 per byte while the log has space. The log of a message has 4 096 bytes, and a
/// record takes 40 in addition to its text.
#[test]
fn log() {
    let printing = |first: u64, second: u64| {
        let mut canister = install(&format!(
            r#"(module
            (import "ic0" "debug_print" (func $print (param i32 i32)))
            (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
            (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1)
            (func (export "canister_update go")
                (call $print (i32.const 0) (i32.const {first}))
                (call $print (i32.const 0) (i32.const {second}))
                (i64.store (i32.const 0) (call $counter (i32.const 0)))
                (call $append (i32.const 0) (i32.const 8)) (call $reply)))"#
        ));
        numbers(update(&mut canister, "go", &[]))[0]
    };
    // One run: the function, eight constants, a store, and five calls; the counter is read after its
    // own price.
    let run = ONE + 8 * ONE + ONE + 5 * CALL + PERFORMANCE_COUNTER;
    let text = |bytes: u64, transmitted: u64| {
        DEBUG_PRINT + bytes + 2 * bytes.min(4_096) + 50 * transmitted
    };
    for (first, second, transmitted) in [
        // 40 bytes are free after the first text.
        (4_016, 40, 40),
        (4_016, 41, 40),
        // One byte, and none.
        (4_055, 1, 1),
        (4_055, 9, 1),
        (4_056, 1, 0),
        // A text is truncated to the size of a record.
        (5_000, 1, 0),
        // Only the start of a text is transmitted, as far as the log has space.
        (0, 4_056, 4_056),
        (0, 4_057, 4_056),
        (0, 5_000, 4_056),
    ] {
        let expected = run + text(first, first.min(4_096)) + text(second, transmitted);
        assert_eq!(printing(first, second), expected, "{first} and {second} bytes");
    }
}

/// 32 KiB of a text are kept, also of a trap's.
#[test]
fn texts() {
    let kept = |bytes: usize| {
        let canister = install(&format!(
            r#"(module
            (import "ic0" "debug_print" (func $print (param i32 i32)))
            (import "ic0" "trap" (func $trap (param i32 i32)))
            (memory 1)
            (func (export "canister_query go")
                (memory.fill (i32.const 0) (i32.const 97) (i32.const {bytes}))
                (call $print (i32.const 0) (i32.const {bytes}))
                (call $trap (i32.const 0) (i32.const {bytes}))))"#
        ));
        let execution = query(&canister, "go", &[]);
        assert_eq!(code(&execution), ErrorCode::CanisterCalledTrap);
        let message = execution.outcome.unwrap_err().message;
        let letters = message.rsplit('\'').nth(1).expect("a text in quotes");
        assert_eq!(execution.printed, [letters]);
        letters.len()
    };
    assert_eq!(kept(32 << 10), 32 << 10);
    assert_eq!(kept((32 << 10) + 1), 32 << 10);
}

/// The length of a name is checked before it is read.
#[test]
fn names_of_environment_variables() {
    let asking = |call: &str, more: &str, size: u64| {
        let result = if call.ends_with("copy") { "" } else { "(result i32)" };
        let extra = more.matches("const").count();
        let params = "i32 ".repeat(2 + extra);
        let drop = if result.is_empty() { "" } else { "(drop)" };
        let canister = install(&format!(
            r#"(module
            (import "ic0" "{call}" (func $call (param {params}) {result}))
            (import "ic0" "msg_reply" (func $reply))
            (memory 1)
            (func (export "canister_query go")
                (memory.fill (i32.const 0) (i32.const 97) (i32.const 1000))
                (call $call (i32.const 0) (i32.const {size}) {more}) {drop}
                (call $reply)))"#
        ));
        query(&canister, "go", &[])
    };
    let three = "(i32.const 0) (i32.const 0) (i32.const 0)";
    assert_eq!(asking("env_var_name_exists", "", 100).outcome, Ok(vec![]));
    let unknown = format!("Environment variable {} not found", "a".repeat(100));
    for (call, more) in [("env_var_value_size", ""), ("env_var_value_copy", three)] {
        rejected(&asking(call, more, 100), ErrorCode::CanisterContractViolation, &unknown);
    }
    for (call, more) in
        [("env_var_name_exists", ""), ("env_var_value_size", ""), ("env_var_value_copy", three)]
    {
        let words = format!("Canister violated contract: ic0.{call}: Variable name is too large");
        rejected(&asking(call, more, 101), ErrorCode::CanisterContractViolation, &words);
        rejected(&asking(call, more, 1 << 31), ErrorCode::CanisterContractViolation, &words);
    }
}
