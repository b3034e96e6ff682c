//! What the management canister changes of a canister.

use stablebench_replica::{Bytes, Canister, Cycles, ErrorCode, Principal};

mod support;

use support::{CALLER, code, install, numbers, query, update};

/// Tells its time, version and counter, and whether the caller is a controller.
const TELLER: &str = r#"(module
    (import "ic0" "time" (func $time (result i64)))
    (import "ic0" "canister_version" (func $version (result i64)))
    (import "ic0" "is_controller" (func $is_controller (param i32 i32) (result i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (memory 1)
    (data (i32.const 0) "\04")
    (global $count (mut i64) (i64.const 0))
    (func $tell
        (i64.store (i32.const 64) (call $time))
        (i64.store (i32.const 72) (call $version))
        (i64.store (i32.const 80) (global.get $count))
        (i64.store (i32.const 88) (i64.extend_i32_u (call $is_controller (i32.const 0) (i32.const 1))))
        (call $append (i32.const 64) (i32.const 32))
        (call $reply))
    (func (export "canister_update count")
        (global.set $count (i64.add (global.get $count) (i64.const 1)))
        (call $tell))
    (export "canister_query tell" (func $tell)))"#;

/// Another module, with a heap of its own.
const OTHER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (memory 3)
    (func (export "canister_update other") (call $reply)))"#;

const LATER: u64 = 1_800_000_000_000_000_000;

fn tell(canister: &Canister) -> [u64; 4] {
    numbers(query(canister, "tell", &[])).try_into().unwrap()
}

#[test]
fn time_is_what_was_set_and_never_stands_still() {
    let mut canister = install(TELLER);
    let [beginning, ..] = tell(&canister);
    canister.set_time(LATER);
    assert_eq!(tell(&canister)[0], LATER);
    // Messages at one time are told apart.
    let mut last = 0;
    for _ in 0..3 {
        canister.set_time(LATER);
        let [time, ..] = numbers(update(&mut canister, "count", &[]))[..] else { panic!() };
        assert!(time > last && time < LATER + 10, "{time}");
        last = time;
    }
    // A clock that was put back puts nothing back.
    canister.set_time(beginning);
    assert_eq!(tell(&canister)[0], last + 1);
}

#[test]
fn settings_can_change() {
    let mut canister = install(TELLER);
    let [_, version, _, controls] = tell(&canister);
    assert_eq!(controls, 1);
    let somebody = Principal::from_slice(&[7]);
    canister.configure(vec![somebody], Bytes(1 << 30));
    assert_eq!(canister.settings().controllers, [somebody]);
    assert_eq!(canister.settings().heap_limit, Bytes(1 << 30));
    let [_, now, _, controls] = tell(&canister);
    assert_eq!((now, controls), (version + 1, 0));
    canister.count_change();
    assert_eq!((tell(&canister)[1], canister.version()), (version + 2, version + 2));
    let before = canister.balance();
    canister.add_cycles(Cycles(5));
    assert_eq!(canister.balance().get(), before.get() + 5);
}

#[test]
fn a_snapshot_brings_back_module_and_memories() {
    let mut canister = install(TELLER);
    update(&mut canister, "count", &[]);
    let snapshot = canister.fork();
    update(&mut canister, "count", &[]);
    let replica =
        stablebench_replica::Replica::new(stablebench_replica::Rules::of_2025_10(), None).unwrap();
    let other = replica.compile(&wat::parse_str(OTHER).unwrap()).unwrap();
    canister.install(&other, CALLER, &[]).unwrap().outcome.unwrap();
    assert_eq!(code(&query(&canister, "tell", &[])), ErrorCode::CanisterMethodNotFound);
    let (version, balance) = (canister.version(), canister.balance());
    canister.restore(&snapshot);
    let [_, now, count, _] = tell(&canister);
    assert_eq!((now, count), (version + 1, 1));
    assert_eq!(canister.balance(), balance, "cycles do not come back");
    assert_eq!(numbers(update(&mut canister, "count", &[]))[2], 2);
    assert_eq!(numbers(query(&snapshot, "tell", &[]))[2], 1);
}

#[test]
fn what_is_not_let_in_was_not_there() {
    let mut empty =
        stablebench_replica::Replica::new(stablebench_replica::Rules::of_2025_10(), None)
            .unwrap()
            .create_canister()
            .unwrap();
    let refused = update(&mut empty, "count", &[]);
    assert_eq!((refused.admitted, refused.cycles), (false, Cycles(0)));
    let mut canister = install(TELLER);
    // One without such a method was let in, and paid for.
    let missing = update(&mut canister, "missing", &[]);
    assert_eq!(code(&missing), ErrorCode::CanisterMethodNotFound);
    assert!(missing.admitted && missing.cycles > Cycles(0));
    assert!(update(&mut canister, "count", &[]).admitted);
    let mut closed = install(
        r#"(module (func (export "canister_inspect_message")) (func (export "canister_update m")))"#,
    );
    assert!(!update(&mut closed, "m", &[]).admitted);
}
