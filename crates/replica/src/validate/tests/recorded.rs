//! Refusals recorded on a PocketIC server 10.

use super::*;

#[test]
fn unsupported_table_operators() {
    let operators = [
        ("table.set", "(table.set 0 (i32.const 0) (ref.null func))"),
        ("table.grow", "(drop (table.grow 0 (ref.null func) (i32.const 1)))"),
        ("table.fill", "(table.fill 0 (i32.const 0) (ref.null func) (i32.const 1))"),
        ("table.copy", "(table.copy 0 0 (i32.const 0) (i32.const 0) (i32.const 1))"),
        ("table.init", "(table.init 0 0 (i32.const 0) (i32.const 0) (i32.const 1))"),
    ];
    for (name, code) in operators {
        let wat = format!(
            r#"(module
                (import "ic0" "performance_counter" (func (param i32) (result i64)))
                (import "ic0" "msg_reply_data_append" (func (param i32 i32)))
                (import "ic0" "msg_reply" (func))
                (table 8 funcref) (elem func 3)
                (func) (func) (func)
                (func (export "canister_update m") {code}))"#
        );
        let words = "Wasm module contains a function at index 6 with unsupported instruction";
        refuse(&wat, &format!("{words} {name}"));
    }
}

#[test]
fn two_tables() {
    refuse_in_engine(
        "(module (table 1 funcref) (table 1 funcref))",
        "resource limit exceeded: table count too high at 2",
    );
}

#[test]
fn imported_memory() {
    refuse_in_engine(
        r#"(module (import "env" "memory" (memory 1)))"#,
        "unknown import: `env::memory` has not been defined",
    );
}

#[test]
fn unknown_import() {
    refuse(
        r#"(module (import "ic0" "teleport" (func)))"#,
        "Wasm module has an invalid import section. Module imports function 'teleport' from \
         'ic0' that is not exported by the runtime",
    );
}

#[test]
fn import_from_another_module() {
    refuse(
        r#"(module (import "wasi_snapshot_preview1" "fd_write"
            (func (param i32 i32 i32 i32) (result i32))))"#,
        "Wasm module has an invalid import section. Module imports function 'fd_write' from \
         'wasi_snapshot_preview1' that is not exported by the runtime",
    );
}

#[test]
fn two_memories() {
    refuse(
        "(module (memory 1) (memory 1))",
        "Wasmtime failed to validate wasm module wasmtime::Module::validate() failed with \
         multiple memories (at offset 0xa)",
    );
}

#[test]
fn reserved_export() {
    refuse(
        r#"(module (func) (export "canister_start" (func 0)))"#,
        "Wasm module has an invalid export section. Exporting reserved symbol canister_start \
         not allowed",
    );
}

#[test]
fn unknown_export_with_the_reserved_prefix() {
    refuse(
        r#"(module (func) (export "canister_foo x" (func 0)))"#,
        "Wasm module has an invalid export section. Exporting reserved function \
         'canister_foo x' with \"canister_\" prefix",
    );
}

#[test]
fn one_name_for_two_methods() {
    refuse(
        r#"(module (func) (export "canister_update a" (func 0))
            (export "canister_query a" (func 0)))"#,
        "Duplicate function 'a' exported multiple times with different call types: update, \
         query, or composite_query",
    );
}

#[test]
fn functions_that_trap_at_install_are_valid() {
    assert_eq!(accept("(module (func unreachable) (start 0))").start, Some(0));
    let info = accept(r#"(module (func unreachable) (export "canister_init" (func 0)))"#);
    assert!(info.has(EntryPoint::Init));
}
