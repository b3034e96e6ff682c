//! Memory of forks that share most of their pages.

use stablebench_replica::WasmPages;

use super::alone;
use crate::support::{held, install, numbers, query, update};

#[test]
fn a_sparse_stable_memory_is_cheap() {
    let _alone = alone();
    let at = 8 * (1_u64 << 30) - 8;
    let wat = format!(
        r#"(module
        (import "ic0" "msg_arg_data_copy" (func $argument (param i32 i32 i32)))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (memory 1)
        (func (export "canister_init")
            (drop (call $grow (i64.const {})))
            (call $write (i64.const {at}) (i64.const 0) (i64.const 8)))
        (func (export "canister_update keep")
            (call $argument (i32.const 0) (i32.const 0) (i32.const 8))
            (call $write (i64.const {at}) (i64.const 0) (i64.const 8))
            (call $reply))
        (func (export "canister_query show")
            (call $read (i64.const 0) (i64.const {at}) (i64.const 8))
            (call $append (i32.const 0) (i32.const 8)) (call $reply)))"#,
        8 * (1_u64 << 30) / 65_536,
    );
    let before = held();
    let mut line = vec![install(&wat)];
    for generation in 1..=30 {
        let mut child = line.last().unwrap().fork();
        update(&mut child, "keep", &u64::to_le_bytes(generation)).outcome.unwrap();
        line.push(child);
    }
    for (generation, canister) in (0..).zip(&line) {
        assert_eq!(numbers(query(canister, "show", &[])), [generation]);
        assert_eq!(canister.stable_size(), WasmPages(8 << 14));
    }
    let grown = held().saturating_sub(before);
    assert!(grown < 256 << 20, "{} MiB more than before", grown >> 20);
}
