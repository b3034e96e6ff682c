//! Size of the heap.

use stablebench_replica::{Bytes, Canister, Cycles, ErrorCode, Principal, Settings, WasmPages};

use super::support::{CALLER, code, compile, install, numbers, query, update};
use super::*;

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

const PAST_3_GIB: &str = "Canister exceeded its current Wasm memory limit of 3221225472 bytes. \
    The peak Wasm memory usage was 3221291008 bytes. If the canister reaches 4GiB, then it may \
    stop functioning and may become unrecoverable. Please reach out to the canister owner to \
    investigate the reason for the increased memory usage. It might be necessary to move data \
    from the Wasm memory to the stable memory. If such high Wasm memory usage is expected and \
    safe, then the developer can increase the Wasm memory limit in the canister settings";

#[test]
fn heap_of_an_update() {
    let mut canister = install(GROWING);
    let most = u32::try_from(3 * GIB / WASM_PAGE).unwrap();
    let more = update(&mut canister, "u", &most.to_le_bytes());
    rejected(&more, ErrorCode::CanisterWasmMemoryLimitExceeded, PAST_3_GIB);
    assert_eq!(canister.heap_size(), WasmPages(1));

    assert_eq!(numbers(update(&mut canister, "u", &(most - 1).to_le_bytes())), [1]);
    assert_eq!(canister.heap_size(), WasmPages(u64::from(most)));
    let more = update(&mut canister, "u", &1_u32.to_le_bytes());
    assert_eq!(code(&more), ErrorCode::CanisterWasmMemoryLimitExceeded);
    assert_eq!(canister.heap_size(), WasmPages(u64::from(most)));
}

#[test]
fn heap_of_an_install() {
    let growing = |pages: u64| {
        try_install(&format!(
            r#"(module (memory 1) (func (export "canister_init")
                (drop (memory.grow (i32.const {pages})))))"#
        ))
    };
    let most = 3 * GIB / WASM_PAGE;
    let all = growing(most - 1);
    assert_eq!(all.outcome, Ok(vec![]));
    assert_eq!(all.memory.heap, WasmPages(most));
    let more = growing(most);
    rejected(&more, ErrorCode::CanisterWasmMemoryLimitExceeded, PAST_3_GIB);
}

/// Reached to the last byte.
#[test]
fn heap_of_4_gib() {
    let canister = install(
        r#"(module
        (import "ic0" "msg_reply" (func $reply))
        (memory 1)
        (func $store (param $at i32)
            (drop (memory.grow (i32.const 65535)))
            (i32.store8 offset=1 (local.get $at) (i32.const 1))
            (call $reply))
        (func (export "canister_query last") (call $store (i32.const -2)))
        (func (export "canister_query past it") (call $store (i32.const -1))))"#,
    );
    assert_eq!(query(&canister, "last", &[]).outcome, Ok(vec![]));
    trapped(&query(&canister, "past it", &[]), "heap out of bounds");
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
