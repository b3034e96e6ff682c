//! Conversions of small modules, and of every module that differs from one in a byte.

#![allow(clippy::unwrap_used, reason = "a failure fails the test")]

use stablebench_wasi::{Error, convert};
use wasmparser::Validator;

const IMPORT: &str = r#"(import "wasi_snapshot_preview1" "fd_write"
    (func $write (param i32 i32 i32 i32) (result i32)))"#;

/// Uses of a replaced function in each place where there can be one, before and after a function of the
/// System API.
const MODULE: &str = r#"(module
    (import "wasi_snapshot_preview1" "sched_yield" (func $yield (result i32)))
    (import "ic0" "time" (func $time (result i64)))
    (import "wasi_unstable" "proc_exit" (func $exit (param i32)))
    (table 2 funcref)
    (memory 1)
    (global $held funcref (ref.func $yield))
    (global i32 (i32.const 7))
    (elem (i32.const 0) $yield $time)
    (func $own (export "__ic_custom_sched_yield") (result i32) (local $here i32) (i32.const 5))
    (func $__ic_custom_proc_exit (param i32) (unreachable))
    (func $first (export "_initialize") (call $exit (i32.const 1)))
    (func (export "canister_update go") (result i32)
        (drop (call $time)) (drop (ref.func $yield)) (drop (call $own))
        (return_call $yield))
    (export "again" (func $yield))
    (data (i32.const 0) "text"))"#;

fn wasm(text: &str) -> Vec<u8> {
    wat::parse_str(text).unwrap()
}

/// Returns the converted module as text.
fn converted(text: &str) -> String {
    let wasm = convert(&wasm(text)).unwrap().unwrap();
    Validator::new().validate_all(&wasm).unwrap();
    wasmprinter::print_bytes(&wasm).unwrap()
}

fn refused(text: &str) -> String {
    convert(&wasm(text)).unwrap_err().to_string()
}

/// Returns the number of the function with this name: the text numbers them in comments.
#[track_caller]
fn number(text: &str, name: &str) -> String {
    let (_, rest) = text.split_once(&format!("(func ${name} (;")).unwrap();
    rest.split_once(';').unwrap().0.to_owned()
}

#[test]
fn every_use_becomes_one_of_the_replacement() {
    let text = converted(MODULE);
    assert!(!text.contains("wasi") && !text.contains("_initialize"), "{text}");
    assert_eq!(text.matches("(import ").count(), 1, "{text}");
    assert_eq!((number(&text, "time"), number(&text, "own")), ("0".to_owned(), "1".to_owned()));
    for part in [
        "(global $held (;0;) funcref ref.func $own)",
        "(global (;1;) i32 i32.const 7)",
        "func $own $time)",
        "(start $first)",
        "call $__ic_custom_proc_exit",
        "ref.func $own",
        "return_call $own",
        "(local $here i32)",
        r#"(export "again" (func $own))"#,
        r#"(export "__ic_custom_sched_yield" (func $own))"#,
        r#"(data (;0;) (i32.const 0) "text")"#,
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// The linker exports wrappers.
#[test]
fn the_name_counts_more_than_an_export() {
    let text = converted(&format!(
        r#"(module {IMPORT}
            (func $__ic_custom_fd_write (param i32 i32 i32 i32) (result i32) (i32.const 1))
            (func $wrapper (export "__ic_custom_fd_write") (param i32 i32 i32 i32) (result i32)
                (call $__ic_custom_fd_write (local.get 0) (local.get 1) (local.get 2) (local.get 3)))
            (elem declare func $write))"#
    ));
    assert!(text.contains("func $__ic_custom_fd_write)"), "{text}");
}

#[test]
fn a_module_with_a_start_function_keeps_it() {
    let text = converted(&format!(
        r#"(module {IMPORT} (start $own) (func $own) (func $other (export "_initialize"))
            (func (export "__ic_custom_fd_write") (param i32 i32 i32 i32) (result i32)
                (i32.const 2)))"#
    ));
    assert!(text.contains("(start $own)") && !text.contains("_initialize"), "{text}");
}

/// Without code there is no section after the one of the start function.
#[test]
fn modules_without_imports_of_others_are_not_changed() {
    for text in [
        "(module)",
        r#"(module (import "ic0" "time" (func (result i64))) (func (export "_initialize")))"#,
        // Not valid for the IC, which is not asked here.
        r#"(module (import "ic0" "memory" (memory 1)))"#,
    ] {
        assert!(convert(&wasm(text)).unwrap().is_none(), "{text}");
    }
}

#[test]
fn modules_that_cannot_be_converted_are_refused() {
    let replaced =
        |ty: &str| format!(r#"(module {IMPORT} (func (export "__ic_custom_fd_write") {ty}))"#);
    for (text, part) in [
        (format!("(module {IMPORT})"), "the crate ic-wasi-polyfill has replacements"),
        (replaced(""), "__ic_custom_fd_write has another type"),
        (replaced("(param i32 i32 i32) (result i32) unreachable"), "has another type"),
        (replaced("(param i32 i32 i32 i64) (result i32) unreachable"), "has another type"),
        (
            // What is imported replaces nothing.
            format!(
                r#"(module {IMPORT} (import "ic0" "f" (func $f (param i32 i32 i32 i32) (result i32)))
                (export "__ic_custom_fd_write" (func $f)))"#
            ),
            "still imports wasi_snapshot_preview1::fd_write",
        ),
        (r#"(module (import "env" "f" (func)))"#.to_owned(), "still imports env::f"),
        (
            r#"(module (import "wasi_snapshot_preview1" "m" (memory 1)))"#.to_owned(),
            "still imports wasi_snapshot_preview1::m",
        ),
        (
            format!(
                r#"(module {IMPORT} (func (export "_initialize") (param i32))
                (func (export "__ic_custom_fd_write") (param i32 i32 i32 i32) (result i32) unreachable))"#
            ),
            "_initialize has parameters or results",
        ),
    ] {
        let error = refused(&text);
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn what_describes_other_code_is_dropped() {
    let module = MODULE.replace(
        "(table 2",
        r#"(@custom ".debug_info" "x") (@custom "metadata.code.branch_hint" "\00")
            (@custom "icp:public note" "kept") (table 2"#,
    );
    let converted = convert(&wasm(&module)).unwrap().unwrap();
    let has = |part: &[u8]| converted.windows(part.len()).any(|bytes| bytes == part);
    assert!(has(b"icp:public note") && has(b"kept"));
    assert!(!has(b".debug_info") && !has(b"branch_hint"));
}

/// The nesting of blocks is not limited here: nothing goes through them by recursion.
#[test]
fn deeply_nested_blocks_are_converted() {
    let blocks = "block ".repeat(20_000) + &"end ".repeat(20_000);
    let text = format!(
        r#"(module {IMPORT} (func {blocks})
            (func (export "__ic_custom_fd_write") (param i32 i32 i32 i32) (result i32) unreachable))"#
    );
    assert!(convert(&wasm(&text)).unwrap().is_some());
}

/// A module that is cut or changed is refused or converted to a valid one.
#[test]
fn no_module_panics() {
    let original = wasm(MODULE);
    assert!(matches!(convert(b"no module"), Err(Error::Invalid(_))));
    let (mut refused, mut valid) = (0, 0);
    let mut check = |wasm: &[u8]| match convert(wasm) {
        Ok(Some(converted)) => match Validator::new().validate_all(&converted) {
            Ok(_) => valid += 1,
            // An export that is removed may have been the declaration of its function.
            Err(error) => assert_eq!(error.message(), "undeclared function reference"),
        },
        Ok(None) => {}
        Err(_) => refused += 1,
    };
    for length in 0..original.len() {
        check(&original[..length]);
    }
    for at in 0..original.len() {
        for byte in 0..=u8::MAX {
            let mut changed = original.clone();
            changed[at] = byte;
            check(&changed);
        }
    }
    assert!(refused > 10_000 && valid > 10_000, "{refused} {valid}");
}
