//! The limits of a message: at each it succeeds, one past it does not.
//!
//! What messages cost is computed here from their operators, by the prices below.

use stablebench_replica::{
    Bytes, Canister, Cycles, ErrorCode, Execution, Instructions, OsPages, Principal, Replica,
    Settings, WasmPages,
};

mod support;

use support::{CALLER, code, compile, install, numbers, query, update};

/// A function, and each of the operators `const`, `local.get`, `local.tee`,
/// `drop`, `i32.sub`.
const ONE: u64 = 1;
const BR: u64 = 2;
const BR_IF: u64 = 2;
const CALL: u64 = 5;
const F64_MIN: u64 = 18;
const MEMORY_FILL: u64 = 100;
/// A call of the System API, beside the operator.
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

#[track_caller]
fn out_of_instructions(execution: &Execution, limit: u64) {
    let reject = execution.outcome.as_ref().expect_err("the limit was exceeded");
    assert_eq!(reject.code, ErrorCode::CanisterInstructionLimitExceeded);
    assert!(
        reject.message.contains(&format!("exceeded the limit of {limit} instructions")),
        "{}",
        reject.message
    );
    assert_eq!(execution.instructions, Instructions(limit + 1));
    assert_eq!(execution.charge, Instructions(limit));
}

#[test]
fn instructions_of_an_update() {
    let execution = update(&mut install(&method("canister_update", UPDATE)), "go", &[]);
    assert_eq!(execution.outcome, Ok(vec![]));
    assert_eq!(execution.instructions, Instructions(UPDATE));
    let execution = update(&mut install(&method("canister_update", UPDATE + 1)), "go", &[]);
    out_of_instructions(&execution, UPDATE);
}

#[test]
fn instructions_of_a_query() {
    for kind in ["canister_query", "canister_composite_query"] {
        let execution = query(&install(&method(kind, QUERY)), "go", &[]);
        assert_eq!(execution.outcome, Ok(vec![]));
        assert_eq!(execution.instructions, Instructions(QUERY));
        out_of_instructions(&query(&install(&method(kind, QUERY + 1)), "go", &[]), QUERY);
    }
}

#[test]
fn a_query_called_as_an_update_may_use_as_much_as_one() {
    let execution = update(&mut install(&method("canister_query", UPDATE)), "go", &[]);
    assert_eq!(execution.outcome, Ok(vec![]));
    assert_eq!(execution.instructions, Instructions(UPDATE));
    let execution = update(&mut install(&method("canister_query", UPDATE + 1)), "go", &[]);
    out_of_instructions(&execution, UPDATE);
}

#[test]
fn instructions_of_an_install_are_those_of_all_its_functions() {
    let try_install = |init: u64, start: u64| {
        let wat = format!(
            r#"(module (memory 1) {} {}
                (func $start (call $burn_start)) (start $start)
                (func (export "canister_init") (call $burn_init)))"#,
            burn("burn_start", start - ONE),
            burn("burn_init", init - ONE),
        );
        let mut canister = Replica::new(None).unwrap().create_canister().unwrap();
        canister.install(&compile(&wat), CALLER, &[]).unwrap()
    };
    let start = INSTALL / 3;
    let execution = try_install(INSTALL - start, start);
    assert_eq!(execution.outcome, Ok(vec![]));
    assert_eq!(execution.instructions, Instructions(INSTALL));
    let execution = try_install(INSTALL - start + 1, start);
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
    assert_eq!(refused.cycles, Cycles(0), "what is not let in pays nothing");
}

/// A single charge may overrun its slice, by less than another slice.
#[test]
fn one_charge_and_the_slice() {
    let filling = |instructions: u64| {
        let size = instructions - (ONE + 3 * ONE + MEMORY_FILL);
        let wat = format!(
            r#"(module (memory 1) (func (export "canister_update go")
                (memory.fill (i32.const 0) (i32.const 1) (i32.const {size}))))"#
        );
        update(&mut install(&wat), "go", &[])
    };
    let charged = filling(2 * SLICE - 1);
    assert_eq!(code(&charged), ErrorCode::CanisterTrapped, "the heap is smaller than that");
    assert_eq!(charged.instructions, Instructions(2 * SLICE - 1));
    let refused = filling(2 * SLICE);
    assert_eq!(code(&refused), ErrorCode::CanisterInstructionLimitExceeded);
    let words = "a large memory operation that used 4000000000 instructions and exceeded the \
                 slice limit 2000000000";
    assert!(refused.outcome.unwrap_err().message.contains(words));
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
    let more = vec![0; 2 * MIB + 1];
    let before = canister.balance();
    for refused in [update(&mut canister, "u", &more), query(&canister, "q", &more)] {
        assert_eq!(code(&refused), ErrorCode::InvalidManagementPayload);
    }
    assert_eq!(canister.balance(), before, "what was not taken in is not paid for");
}

/// A canister that replies with as many bytes as its argument says, in two parts.
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

    for called in ["u", "q"] {
        let most = update(&mut canister, called, &size(2 * MIB));
        assert_eq!(length(&most), Some(2 * MIB));
        let more = update(&mut canister, called, &size(2 * MIB + 1));
        assert_eq!(code(&more), ErrorCode::CanisterContractViolation);
        let words = "application payload size (2097153) cannot be larger than 2097152";
        assert!(more.outcome.unwrap_err().message.contains(words));
    }
    assert_eq!(length(&query(&canister, "q", &size(3 * MIB))), Some(3 * MIB));
    let more = query(&canister, "q", &size(3 * MIB + 1));
    assert_eq!(code(&more), ErrorCode::CanisterContractViolation);

    let most = update(&mut canister, "reject", &size(2 * MIB));
    assert_eq!(code(&most), ErrorCode::CanisterRejectedMessage);
    assert_eq!(most.outcome.unwrap_err().message.len(), 2 * MIB);
    let more = update(&mut canister, "reject", &size(2 * MIB + 1));
    assert_eq!(code(&more), ErrorCode::CanisterContractViolation);
}

/// The limit is held before the bytes are read from the heap: a write that would be
/// allowed traps only there, and nothing has to be copied.
#[test]
fn stable_pages_that_a_query_writes() {
    let writing = |bytes: u64| {
        let canister = install(&format!(
            r#"(module
            (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
            (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
            (memory 1)
            (func (export "canister_init") (drop (call $grow (i64.const {}))))
            (func (export "canister_query go")
                (call $write (i64.const 0) (i64.const 0) (i64.const {bytes}))))"#,
            GIB / WASM_PAGE + 1,
        ));
        query(&canister, "go", &[])
    };
    let pages = GIB / OS_PAGE;
    let called = ONE + 3 * ONE + CALL + STABLE_WRITE;

    let most = writing(GIB);
    assert_eq!(code(&most), ErrorCode::CanisterTrapped);
    assert!(most.outcome.unwrap_err().message.contains("heap out of bounds"));
    assert_eq!(most.memory.stable_written, OsPages(pages));
    assert_eq!(most.instructions.get(), called + GIB + STABLE_PAGE_WRITTEN * pages);

    let more = writing(GIB + 1);
    assert_eq!(code(&more), ErrorCode::CanisterMemoryAccessLimitExceeded);
    assert_eq!(more.memory.stable_written, OsPages(0));
    assert_eq!(more.instructions.get(), called + GIB + 1, "pages are not paid for");
}

/// Reads a byte of each page until that is refused.
#[test]
fn stable_pages_that_an_install_reads() {
    let wat = format!(
        r#"(module
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
        (memory 1)
        (func (export "canister_init") (local $at i64)
            (drop (call $grow (i64.const {})))
            (loop $next
                (call $read (i64.const 0) (local.get $at) (i64.const 1))
                (local.set $at (i64.add (local.get $at) (i64.const {OS_PAGE})))
                (br $next))))"#,
        8 * GIB / WASM_PAGE + 1,
    );
    let mut canister = Replica::new(None).unwrap().create_canister().unwrap();
    let execution = canister.install(&compile(&wat), CALLER, &[]).unwrap();
    assert_eq!(code(&execution), ErrorCode::CanisterMemoryAccessLimitExceeded);
    let pages = 8 * GIB / OS_PAGE;
    assert_eq!(execution.memory.stable_accessed, OsPages(pages));
    // The function, a constant, drop; a round is seven operators, the call and `br`.
    let grown = 3 * ONE + CALL + STABLE_GROW;
    let round = 7 * ONE + CALL + BR + STABLE_READ + 1;
    assert_eq!(execution.instructions.get(), grown + round * (pages + 1));
}

/// A canister that grows its heap by the pages of its argument and replies with
/// what `memory.grow` answered.
const GROWING: &str = r#"(module
    (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (func $grow
        (call $argument (i32.const 0) (i32.const 0) (i32.const 4))
        (i64.store (i32.const 0) (i64.extend_i32_s (memory.grow (i32.load (i32.const 0)))))
        (call $append (i32.const 0) (i32.const 8)) (call $reply))
    (export "canister_update u" (func $grow))
    (export "canister_query q" (func $grow)))"#;

const REFUSED: u64 = u64::MAX;

#[test]
fn heap_of_an_update() {
    let mut canister = install(GROWING);
    let most = u32::try_from(3 * GIB / WASM_PAGE).unwrap();
    let more = update(&mut canister, "u", &most.to_le_bytes());
    assert_eq!(code(&more), ErrorCode::CanisterWasmMemoryLimitExceeded);
    let words = "limit of 3221225472 bytes. The peak Wasm memory usage was 3221291008 bytes";
    assert!(more.outcome.unwrap_err().message.contains(words));
    assert_eq!(canister.heap_size(), WasmPages(1));

    assert_eq!(numbers(update(&mut canister, "u", &(most - 1).to_le_bytes())), [1]);
    assert_eq!(canister.heap_size(), WasmPages(u64::from(most)));
    let more = update(&mut canister, "u", &1_u32.to_le_bytes());
    assert_eq!(code(&more), ErrorCode::CanisterWasmMemoryLimitExceeded);
    assert_eq!(canister.heap_size(), WasmPages(u64::from(most)));
}

#[test]
fn heap_of_a_query() {
    let mut canister = install(GROWING);
    let most = u32::try_from(4 * GIB / WASM_PAGE).unwrap();
    assert_eq!(numbers(query(&canister, "q", &(most - 1).to_le_bytes())), [1]);
    assert_eq!(numbers(query(&canister, "q", &most.to_le_bytes())), [REFUSED]);
    assert_eq!(numbers(update(&mut canister, "q", &(most - 1).to_le_bytes())), [1]);
    assert_eq!(canister.heap_size(), WasmPages(1));
}

#[test]
fn heap_by_the_canisters_settings() {
    let growing = |limit: u64, pages: u32| {
        let mut canister = Canister::new(Settings {
            id: Principal::management_canister(),
            controllers: Vec::new(),
            balance: Cycles(0),
            heap_limit: Bytes(limit),
        })
        .unwrap();
        canister.install(&compile(GROWING), CALLER, &[]).unwrap().outcome.unwrap();
        update(&mut canister, "u", &pages.to_le_bytes())
    };
    assert_eq!(numbers(growing(10 * WASM_PAGE, 9)), [1]);
    assert_eq!(code(&growing(10 * WASM_PAGE, 10)), ErrorCode::CanisterWasmMemoryLimitExceeded);
    assert_eq!(numbers(growing(0, 65_535)), [1], "0 is no limit");
    assert_eq!(numbers(growing(0, 65_536)), [REFUSED]);
}

/// Reached beyond 4 GiB too, to the last byte.
#[test]
fn heap_with_64_bit_addresses() {
    let canister = install(
        r#"(module
        (import "ic0" "msg_arg_data_copy" (func $argument (param i64 i64 i64)))
        (import "ic0" "msg_reply_data_append" (func $append (param i64 i64)))
        (import "ic0" "msg_reply" (func $reply))
        (memory i64 1)
        (func (export "canister_query q") (local $last i64)
            (call $argument (i64.const 0) (i64.const 0) (i64.const 8))
            (i64.store (i64.const 0) (memory.grow (i64.load (i64.const 0))))
            (local.set $last (i64.sub (i64.mul (memory.size) (i64.const 65536)) (i64.const 8)))
            (i64.store (local.get $last) (memory.size))
            (call $append (i64.const 0) (i64.const 8))
            (call $append (local.get $last) (i64.const 8))
            (call $reply)))"#,
    );
    let most = 6 * GIB / WASM_PAGE;
    let all = query(&canister, "q", &(most - 1).to_le_bytes());
    assert_eq!(numbers(all), [1, most]);
    assert_eq!(numbers(query(&canister, "q", &most.to_le_bytes())), [REFUSED, 1]);
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
    assert_eq!(code(&update(&mut canister, "33", &[])), ErrorCode::CanisterContractViolation);
    assert_eq!(canister.certified_data(), b"");
    assert_eq!(update(&mut canister, "32", &[]).outcome, Ok(vec![]));
    assert_eq!(canister.certified_data(), b"certified data of 33 bytes, not ");
    assert_eq!(code(&query(&canister, "q", &[])), ErrorCode::CanisterContractViolation);
    assert_eq!(canister.certified_data(), b"certified data of 33 bytes, not ");
}

#[test]
fn table() {
    let with_table = |elements: u32| {
        format!(
            r#"(module (import "ic0" "msg_reply" (func $reply))
                (table {elements} funcref) (elem (i32.const {}) $reply)
                (func (export "canister_update go") (call_indirect (i32.const {}))))"#,
            elements - 1,
            elements - 1,
        )
    };
    let last = update(&mut install(&with_table(1_000_000)), "go", &[]);
    assert_eq!(last.outcome, Ok(vec![]));
    let wasm = wat::parse_str(with_table(1_000_001)).unwrap();
    let refused = Replica::new(None).unwrap().compile(&wasm).unwrap_err();
    assert_eq!(refused.code, ErrorCode::CanisterWasmEngineError);
}

/// Printing costs 50 a byte as far as the log has room. The log of a message has
/// 4 096 bytes, and a record takes 40 beside its text.
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
    // One run: the function, eight constants, a store, and five calls; the counter
    // is read after its own price.
    let run = ONE + 8 * ONE + ONE + 5 * CALL + PERFORMANCE_COUNTER;
    let text = |bytes: u64, transmitted: u64| {
        DEBUG_PRINT + bytes + 2 * bytes.min(4_096) + 50 * transmitted
    };
    for (first, second, transmitted) in [
        // 40 bytes are free after the first one.
        (4_016, 40, 40),
        (4_016, 41, 40),
        // One byte, and none.
        (4_055, 1, 1),
        (4_055, 9, 1),
        (4_056, 1, 0),
        // A text is cut to what a record holds.
        (5_000, 1, 0),
        // Only the beginning of a text is sent, and only that of the log.
        (0, 4_056, 4_056),
        (0, 4_057, 4_056),
        (0, 5_000, 4_056),
    ] {
        let expected = run + text(first, first.min(4_096)) + text(second, transmitted);
        assert_eq!(printing(first, second), expected, "{first} and {second} bytes");
    }
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
            assert_eq!(code(&overflow), ErrorCode::CanisterTrapped);
            assert!(overflow.outcome.unwrap_err().message.contains("stack overflow"));
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

#[test]
fn recursion_on_a_thread_with_little_stack() {
    for stack in [256 << 10, 2 * MIB] {
        std::thread::Builder::new().stack_size(stack).spawn(recur).unwrap().join().unwrap();
    }
}
