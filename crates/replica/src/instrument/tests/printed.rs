//! Small modules after instrumenting, as text. A changed price, check or index
//! shows as a difference to the snapshot.

use super::super::*;
use crate::rules::Rules;
use crate::validate::{Purpose, validate};

fn instrumented(wat: &str, rules: Rules) -> Instrumented {
    let wasm = wat::parse_str(wat).unwrap();
    validate(&wasm, rules, Purpose::Everything).unwrap();
    let instrumented = instrument(&wasm, Metering::Local, rules).unwrap();
    wasmparser::Validator::new().validate_all(&instrumented.wasm).unwrap();
    instrumented
}

fn whole(wat: &str) -> String {
    wasmprinter::print_bytes(instrumented(wat, Rules::of_2025_10()).wasm).unwrap()
}

/// The functions whose numbers among all are `numbers`, imports not counted.
fn functions(wat: &str, numbers: std::ops::RangeInclusive<usize>) -> String {
    let printed = whole(wat);
    let functions = printed.split("\n  (func ").skip(1).enumerate();
    functions
        .filter(|(number, _)| numbers.contains(number))
        .map(|(_, text)| {
            let (body, _) = text.split_once("\n  )").unwrap();
            format!("(func {body}\n)\n")
        })
        .collect()
}

/// A module of one function with these operators.
fn body(operators: &str) -> String {
    functions(&format!("(module (memory 1) (func (param i32) {operators}))"), 0..=0)
}

#[test]
fn an_empty_function() {
    insta::assert_snapshot!(whole("(module (func))"));
}

#[test]
fn an_if_with_else() {
    insta::assert_snapshot!(body(
        "local.get 0 if (result i32) i32.const 1 else i32.const 2 i32.const 3 i32.div_u end drop"
    ));
}

#[test]
fn an_if_without_operators_is_not_charged() {
    insta::assert_snapshot!(body("local.get 0 if else end"));
}

#[test]
fn a_loop() {
    insta::assert_snapshot!(body("loop local.get 0 i32.const 1 i32.sub local.tee 0 br_if 0 end"));
}

#[test]
fn a_br_table() {
    insta::assert_snapshot!(body(
        "block block local.get 0 br_table 0 1 2 end nop end nop nop return"
    ));
}

#[test]
fn bulk_memory() {
    let wat = r#"(module (memory 1) (data $d "data")
        (func (param i32)
            (memory.fill (i32.const 0) (i32.const 1) (local.get 0))
            (memory.copy (i32.const 0) (i32.const 8) (local.get 0))
            (memory.init $d (i32.const 0) (i32.const 0) (local.get 0))
            (data.drop $d)))"#;
    insta::assert_snapshot!(functions(wat, 0..=1));
}

#[test]
fn bulk_memory_of_a_64_bit_heap() {
    let wat = r#"(module (memory i64 1) (data $d "data")
        (func (param i64)
            (memory.fill (i64.const 0) (i32.const 1) (local.get 0))
            (memory.init $d (i64.const 0) (i32.const 0) (i32.const 4))
            (i64.store (i64.const 0) (i64.load (i64.const 8)))))"#;
    insta::assert_snapshot!(functions(wat, 0..=1));
}

#[test]
fn growing_the_heap() {
    insta::assert_snapshot!(body("local.get 0 memory.grow drop"));
}

#[test]
fn calls() {
    let wat = r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (table 1 funcref) (elem (i32.const 0) $twice)
        (type $number (func (param i32) (result i32)))
        (func $twice (type $number) (i32.add (local.get 0) (local.get 0)))
        (func $direct (result i32) (call $reply) (call $twice (i32.const 7)))
        (func $indirect (result i32) (call_indirect (type $number) (i32.const 7) (i32.const 0)))
        (func $tail (result i32) (return_call $twice (i32.const 7)))
        (func $tail_indirect (result i32)
            (return_call_indirect (type $number) (i32.const 7) (i32.const 0))))"#;
    insta::assert_snapshot!(functions(wat, 0..=4));
}

#[test]
fn stable_read_with_32_bit_addresses() {
    let wat = r#"(module (import "ic0" "stable_read" (func (param i32 i32 i32)))
        (memory 1)
        (func (call 0 (i32.const 1) (i32.const 2) (i32.const 3))))"#;
    insta::assert_snapshot!(functions(wat, 0..=2));
}

#[test]
fn stable_write_with_64_bit_addresses() {
    let wat = r#"(module (import "ic0" "stable64_write" (func (param i64 i64 i64)))
        (memory 1)
        (func (call 0 (i64.const 1) (i64.const 2) (i64.const 3))))"#;
    insta::assert_snapshot!(functions(wat, 0..=2));
}

#[test]
fn size_and_growth_of_stable_memory() {
    let wat = r#"(module
        (import "ic0" "stable_grow" (func (param i32) (result i32)))
        (import "ic0" "msg_reply" (func))
        (import "ic0" "stable64_grow" (func (param i64) (result i64)))
        (import "ic0" "stable_size" (func (result i32)))
        (import "ic0" "stable64_size" (func (result i64)))
        (func (drop (call 0 (call 3))) (drop (call 2 (call 4))) (call 1)))"#;
    insta::assert_snapshot!(whole(wat));
}

#[test]
fn a_start_function() {
    let wat =
        r#"(module (import "ic0" "msg_reply" (func)) (func) (func $start nop) (start $start))"#;
    assert!(instrumented(wat, Rules::of_2025_10()).has_start);
    insta::assert_snapshot!(whole(wat));
}

#[test]
fn globals_and_data() {
    let wat = r#"(module (memory (export "m") 2 3)
        (global i32 (i32.const 1)) (global $n (export "n") (mut i64) (i64.const 2))
        (global (mut f32) (f32.const 3))
        (data (i32.const 16) "active") (data $p "passive") (data (i32.const 65536) "page")
        (func (export "canister_update counter") (global.set $n (i64.const 5)) (data.drop $p)))"#;
    let instrumented = instrumented(wat, Rules::of_2025_10());
    assert_eq!(instrumented.globals, [(1, ValType::I64), (2, ValType::F32)]);
    assert_eq!(instrumented.data, [(16, b"active".to_vec()), (65_536, b"page".to_vec())]);
    assert_eq!((instrumented.has_heap, instrumented.heap_pages), (true, 2));
    insta::assert_snapshot!(whole(wat));
}

/// Validation refuses such a module; should it ever pass one, nothing is guessed.
#[test]
fn an_operator_without_a_price_is_named() {
    let wasm = wat::parse_str(
        r#"(module (memory 1) (func) (func (drop (i32.atomic.load (i32.const 0)))))"#,
    );
    let error = instrument(&wasm.unwrap(), Metering::Local, Rules::of_2025_10()).unwrap_err();
    assert_eq!(error.to_string(), "operator I32AtomicLoad in function 1 has no price");
}
