//! Queries that a reading of the counter divides: what follows the reading is charged for pages as in
//! a message of its own. The counts are compared with those of two messages.

use stablebench_replica::{
    Canister, Execution, Instructions, Readings, Replica, Rules, Span, TouchedPages,
};

use crate::support::{CALLER, numbers};

/// `setup` and `work` touch pages in common. The counter is read before and after the work, and kept
/// in globals, so that no page of the heap is touched but by setup and work themselves.
const CANISTER: &str = r#"(module
    (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (memory 200)
    (global $from (mut i64) (i64.const 0))
    (global $to (mut i64) (i64.const 0))
    (func (export "canister_init") (drop (call $grow (i64.const 100))))
    (func $heap (param $at i32) (param $end i32)
        (loop $next
            (i32.store (local.get $at) (i32.add (i32.load (local.get $at)) (i32.const 1)))
            (local.set $at (i32.add (local.get $at) (i32.const 65536)))
            (br_if $next (i32.lt_u (local.get $at) (local.get $end)))))
    ;; Pages 1 to 99 of the heap; of stable memory, 200 bytes from page 1 to 2, and page 8.
    (func $setup
        (call $heap (i32.const 65536) (i32.const 6553600))
        (call $write (i64.const 131000) (i64.const 65536) (i64.const 200))
        (call $write (i64.const 524288) (i64.const 65536) (i64.const 5000)))
    ;; Pages 50 to 119 of the heap; of stable memory, what setup wrote, and pages 9 and 10.
    (func $work
        (global.set $from (call $counter (i32.const 0)))
        (call $heap (i32.const 3276800) (i32.const 7864320))
        (call $read (i64.const 3276800) (i64.const 131000) (i64.const 100))
        (call $write (i64.const 131100) (i64.const 3276800) (i64.const 100))
        (call $write (i64.const 524300) (i64.const 3276800) (i64.const 140000))
        (call $read (i64.const 3276800) (i64.const 655360) (i64.const 8))
        (global.set $to (call $counter (i32.const 0))))
    (func $results
        (i64.store (i32.const 0) (global.get $from))
        (i64.store (i32.const 8) (global.get $to))
        (i64.store (i32.const 16) (i64.load (i32.const 3276800)))
        (call $append (i32.const 0) (i32.const 24)) (call $reply))
    (func (export "canister_update setup") (call $setup) (call $reply))
    (func (export "canister_query setup, in a query")
        (drop (call $counter (i32.const 0))) (call $setup) (call $reply))
    (func (export "canister_query work") (call $work) (call $results))
    (func (export "canister_query both") (call $setup) (call $work) (call $results))
    (func (export "canister_update both, in an update") (call $setup) (call $work) (call $results))
    ;; The trap is repeated to find its count.
    (func (export "canister_query both, then trap")
        (call $setup) (call $work) (drop (i32.load (i32.const -1)))))"#;

fn install(rules: Rules) -> Canister {
    let replica = Replica::new(rules, None).unwrap();
    let module = replica.compile(&wat::parse_str(CANISTER).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    canister
}

fn query(canister: &mut Canister, method: &str, readings: Readings) -> Execution {
    canister.report_readings(readings);
    canister.query(CALLER, method, &[]).unwrap()
}

/// Instructions of the work, and what it has read.
fn work(execution: Execution) -> (u64, u64) {
    let [from, to, read] = numbers(execution)[..] else { panic!("three numbers") };
    (to - from, read)
}

#[test]
fn work_after_the_division_counts_as_in_a_message_of_its_own() {
    for rules in Rules::VARIANTS
        .iter()
        .map(|name| name.parse().unwrap())
        .chain([Rules::of_2025_10(), Rules::of_2026_08()])
    {
        let canister = install(rules);
        let mut apart = canister.fork();
        apart.update(CALLER, "setup", &[]).unwrap().outcome.unwrap();
        let own = query(&mut apart, "work", Readings::Reported);

        let mut together = canister.fork();
        let shared = query(&mut together, "both", Readings::Reported);
        let divided = query(&mut together, "both", Readings::DividedAt(0));
        assert_eq!(divided.pages, own.pages, "{rules}");
        assert_eq!(divided.memory, own.memory, "{rules}");
        assert_eq!(divided.stable_pages, own.stable_pages, "{rules}");
        let charges = |execution: &Execution| {
            let [from, to] = &execution.readings[..] else { panic!("two readings") };
            (from.pages, to.pages)
        };
        assert_eq!(charges(&divided), charges(&own), "{rules}");
        let [shared, divided, own] = [shared, divided, own].map(work);
        assert_eq!(divided, own, "{rules}");
        assert!(shared.0 < own.0, "{rules}: what setup has touched is free");
        // Neither it nor the fork behind it has changed.
        assert_eq!(work(query(&mut together, "both", Readings::Reported)), shared, "{rules}");
        assert_eq!(work(query(&mut together, "both", Readings::DividedAt(0))), own, "{rules}");
    }
}

/// 50 pages of the heap are free without the division, and pages 2 and 8 of stable memory.
#[test]
fn pages_of_the_setup_are_charged_again() {
    let mut canister = install(Rules::of_2026_08());
    let touched = |execution: &Execution| {
        let [from, to] = &execution.readings[..] else { panic!("two readings") };
        [from, to].map(|reading| {
            let TouchedPages { heap, stable, .. } = reading.pages.touched.unwrap();
            [heap.get(), stable.get()]
        })
    };
    let shared = query(&mut canister, "both", Readings::Reported);
    assert_eq!(touched(&shared), [[99, 3], [119, 5]]);
    let divided = query(&mut canister, "both", Readings::DividedAt(0));
    // A first read of a stable page is free, in either.
    assert_eq!(touched(&divided), [[0, 0], [70, 4]]);
    assert_eq!(work(divided).0 - work(shared).0, (50 + 2) * 80_000);
}

#[test]
fn a_division_leaves_nothing_behind() {
    let mut canister = install(Rules::of_2026_08());
    let setup = query(&mut canister, "setup, in a query", Readings::Reported);
    let trapped = query(&mut canister, "both, then trap", Readings::DividedAt(0));
    let message = &trapped.outcome.as_ref().unwrap_err().message;
    assert!(message.contains("out of bounds"), "{message}");
    // A reading that does not come divides nothing.
    for at in [0, 1, 9] {
        query(&mut canister, "both", Readings::DividedAt(at));
        let again = query(&mut canister, "setup, in a query", Readings::Reported);
        assert_eq!((again.pages, again.instructions), (setup.pages, setup.instructions), "{at}");
    }
}

/// An update keeps what it writes, so all its pages must be known at its end.
#[test]
fn updates_are_not_divided() {
    let [mut one, mut other] = [(); 2].map(|()| install(Rules::of_2026_08()));
    one.report_readings(Readings::Reported);
    other.report_readings(Readings::DividedAt(0));
    let update =
        |canister: &mut Canister| canister.update(CALLER, "both, in an update", &[]).unwrap();
    let (expected, found) = (update(&mut one), update(&mut other));
    assert_eq!((found.pages, found.memory), (expected.pages, expected.memory));
    assert_eq!(work(found), work(expected));
    let [one, other] =
        [one, other].map(|mut canister| query(&mut canister, "work", Readings::Reported));
    assert_eq!(work(one), work(other));
}

#[test]
fn the_profile_of_a_divided_query_contains_its_charges() {
    let mut canister = install(Rules::of_2026_08());
    let divided = query(&mut canister, "both", Readings::DividedAt(0));
    let [from, to] = [0, 1].map(|at| divided.readings[at].used);
    let span = Span::Between { from, to };
    let (execution, profile) = canister.profile_query(CALLER, "both", &[], span).unwrap();
    assert_eq!(execution.instructions, divided.instructions);
    assert_eq!(profile.instructions, Instructions(work(divided).0));
}
