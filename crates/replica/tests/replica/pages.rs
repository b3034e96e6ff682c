//! Charges for touching pages, derived from the rules. Each page is charged once in a message, even if
//! it is touched repeatedly.
//!
//! A query may be divided by a reading of the counter: what follows it is charged for pages as in a
//! message of its own, and the counts are compared with those of two messages.

use stablebench_replica::{
    Canister, ErrorCode, Execution, Instructions, Readings, Replica, Rules, Span, TouchedPages,
    WasmPages,
};

use crate::support::{CALLER, code, numbers};

const PAGE: u64 = 80_000;
/// Heap pages of the canister below.
const HEAP: u32 = 40_000;

/// Methods that touch as many pages as the argument is long. The reply is the counter before and
/// after. Results are in page 0, which is touched and written before.
const CANISTER: &str = r#"(module
    (import "ic0" "performance_counter" (func $counter (param i32) (result i64)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (memory 40000)
    (func (export "canister_init")
        (drop (call $grow (i64.const 100))) (i64.store (i32.const 65536) (i64.const 7)))
    (func (export "canister_pre_upgrade") (i64.store (i32.const 65536) (i64.const 8)))
    (func (export "canister_post_upgrade") (i64.store (i32.const 65536) (i64.const 9)))
    (func $begin
        (i64.store (i32.const 0) (i64.const 0))
        (i64.store (i32.const 0) (call $counter (i32.const 0))))
    (func $end
        (i64.store (i32.const 8) (call $counter (i32.const 0)))
        (call $append (i32.const 0) (i32.const 16)) (call $reply))
    ;; From the page after the first one on, every $step pages.
    (func $reads (param $count i32) (param $step i32) (local $at i32)
        (block $done (loop $next
            (br_if $done (i32.eqz (local.get $count)))
            (local.set $at (i32.add (local.get $at) (local.get $step)))
            (drop (i64.load (i32.mul (local.get $at) (i32.const 65536))))
            (local.set $count (i32.sub (local.get $count) (i32.const 1)))
            (br $next))))
    (func $writes (param $count i32) (param $step i32) (local $at i32)
        (block $done (loop $next
            (br_if $done (i32.eqz (local.get $count)))
            (local.set $at (i32.add (local.get $at) (local.get $step)))
            (i32.store (i32.mul (local.get $at) (i32.const 65536)) (local.get $at))
            (local.set $count (i32.sub (local.get $count) (i32.const 1)))
            (br $next))))
    (func (export "canister_update read")
        (call $begin) (call $reads (call $size) (i32.const 1)) (call $end))
    (func (export "canister_update write")
        (call $begin) (call $writes (call $size) (i32.const 1)) (call $end))
    (func (export "canister_update read, then write")
        (call $begin) (call $reads (call $size) (i32.const 1))
        (call $writes (call $size) (i32.const 1)) (call $end))
    (func (export "canister_update write every other page")
        (call $begin) (call $writes (call $size) (i32.const 2))
        (call $writes (call $size) (i32.const 2)) (call $end))
    ;; Stores a multiple of its number in each of the pages from $from up to $to.
    (func $stores (param $from i32) (param $to i32) (param $factor i32)
        (loop $next
            (i32.store (i32.mul (local.get $from) (i32.const 65536))
                (i32.mul (local.get $from) (local.get $factor)))
            (local.set $from (i32.add (local.get $from) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $from) (local.get $to)))))
    ;; Zeros, so that no page changes: files with so many pages are slow to delete.
    (func (export "canister_update many")
        (call $begin) (call $stores (i32.const 1000) (i32.const 10000) (i32.const 0))
        (call $stores (i32.const 20000) (i32.const 29000) (i32.const 0)) (call $end))
    (func (export "canister_update gap") (call $begin)
        (call $stores (i32.const 12000) (i32.const 12100) (i32.const 1)) (call $end))
    ;; The sum of what the method above stores, and the counter.
    (func (export "canister_query read the gap") (local $at i32) (local $sum i64)
        (local.set $at (i32.const 12000))
        (loop $next
            (local.set $sum (i64.add (local.get $sum)
                (i64.load32_u (i32.mul (local.get $at) (i32.const 65536)))))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $at) (i32.const 12100))))
        (i64.store (i32.const 0) (local.get $sum))
        (call $end))
    (func (export "canister_query query")
        (call $begin) (call $writes (call $size) (i32.const 1)) (call $end))
    (func (export "canister_composite_query composite")
        (call $begin) (call $writes (call $size) (i32.const 1)) (call $end))
    ;; The argument is as long as what is copied.
    (func (export "canister_update copy onto itself")
        (call $begin)
        (memory.copy (i32.const 131072) (i32.const 131072) (call $size))
        (call $end))
    (func (export "canister_update copy past the end")
        (call $begin)
        (call $write (i64.const 0) (i64.const 2621439990) (i64.const 20)))
    (func $write_stable
        (call $write (i64.const 131000) (i64.const 0) (i64.const 100)) (call $reply))
    (export "canister_query stable query" (func $write_stable))
    (export "canister_composite_query stable composite" (func $write_stable))
    (func (export "canister_update stable")
        (call $begin)
        (call $read (i64.const 0) (i64.const 0) (i64.const 1))
        (call $write (i64.const 131000) (i64.const 0) (i64.const 100))
        (call $write (i64.const 131000) (i64.const 0) (i64.const 100))
        (call $end)))"#;

fn install(rules: Rules, wat: &str) -> Canister {
    let replica = Replica::new(rules, None).unwrap();
    let module = replica.compile(&wat::parse_str(wat).unwrap()).unwrap();
    let mut canister = replica.create_canister().unwrap();
    canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
    canister
}

fn canister() -> Canister {
    install(Rules::of_2026_08(), CANISTER)
}

fn update(canister: &mut Canister, method: &str, pages: usize) -> Execution {
    canister.update(CALLER, method, &vec![0; pages]).unwrap()
}

fn touched(execution: &Execution) -> [u64; 4] {
    let TouchedPages { heap, heap_written, stable, stable_written, .. } =
        execution.pages.touched.expect("the rules charge for touching");
    [heap, heap_written, stable, stable_written].map(WasmPages::get)
}

/// Instructions between the two readings, without those of the operators.
fn for_pages(canister: &mut Canister, method: &str, pages: usize) -> u64 {
    // Under the older rules the operators cost the same, and touching pages is free.
    let mut older = install(Rules::of_2025_10(), CANISTER);
    let between = |execution: Execution| {
        let read = numbers(execution);
        read[1] - read[0]
    };
    let operators = between(update(&mut older, method, pages));
    between(update(canister, method, pages)) - operators
}

/// The C library of the real replica's hosts reads the beginning of many bytes, and writes none.
#[test]
fn bytes_that_are_copied_onto_themselves_are_read() {
    let mut canister = canister();
    for (bytes, pages) in [(0, 0), (1_372, 1), (60_000, 1)] {
        assert_eq!(for_pages(&mut canister, "copy onto itself", bytes), pages * PAGE, "{bytes}");
    }
}

#[test]
fn a_first_touch_and_a_first_write_are_charged() {
    let mut canister = canister();
    for pages in [0, 1, 2, 100] {
        let count = pages as u64;
        assert_eq!(for_pages(&mut canister, "read", pages), count * PAGE);
        assert_eq!(for_pages(&mut canister, "write", pages), 2 * count * PAGE);
        assert_eq!(for_pages(&mut canister, "read, then write", pages), 2 * count * PAGE);
    }
    let execution = update(&mut canister, "read, then write", 5);
    assert_eq!(touched(&execution), [6, 6, 0, 0]);
    assert_eq!(execution.pages.heap, Instructions(12 * PAGE));
    assert_eq!(execution.charge, execution.instructions, "no charge is left for the end");
}

#[test]
fn pages_are_charged_when_they_are_touched() {
    let mut canister = canister();
    canister.report_readings(Readings::Reported);
    let execution = update(&mut canister, "write", 3);
    let [before, after] = &execution.readings[..] else { panic!("{:?}", execution.readings) };
    assert_eq!(before.pages.heap, Instructions(2 * PAGE), "the page of the results");
    assert_eq!(after.pages.heap, Instructions(8 * PAGE));
    assert_eq!([before.used.get(), after.used.get()], numbers(execution)[..]);
}

#[test]
fn queries_do_not_pay_for_writes() {
    let canister = canister();
    let pages = [0; 4];
    let query = canister.query(CALLER, "query", &pages).unwrap();
    assert_eq!(touched(&query), [5, 0, 0, 0]);
    assert_eq!(query.pages.heap, Instructions(5 * PAGE));
    let composite = canister.query(CALLER, "composite", &pages).unwrap();
    assert_eq!(touched(&composite), [5, 5, 0, 0]);
    let mut canister = canister;
    let replicated = canister.update(CALLER, "query", &pages).unwrap();
    assert_eq!(replicated.pages.heap, Instructions(5 * PAGE));
}

/// Nor are pages of stable memory reported as written where that is not charged.
#[test]
fn queries_do_not_pay_for_writes_to_stable_memory() {
    let mut canister = canister();
    for execution in [
        canister.query(CALLER, "stable query", &[]).unwrap(),
        update(&mut canister, "stable query", 0),
    ] {
        assert_eq!(touched(&execution), [1, 0, 2, 0]);
        assert_eq!(execution.pages.stable, Instructions(2 * PAGE));
    }
    let composite = canister.query(CALLER, "stable composite", &[]).unwrap();
    assert_eq!(touched(&composite), [1, 0, 2, 2]);
    assert_eq!(composite.pages.stable, Instructions(4 * PAGE));
}

/// Every call that limits the length of a range, and that length.
const LIMITED: &[(&str, u64)] = &[
    ("(drop (call $is_controller (i32.const 65536) (i32.const SIZE)))", 29),
    ("(call $new (i32.const 65536) (i32.const SIZE) NONE NONE NONE NONE NONE NONE)", 29),
    ("(call $new NONE NONE (i32.const 65536) (i32.const SIZE) NONE NONE NONE NONE)", 20_000),
    ("(call $certify (i32.const 65536) (i32.const SIZE))", 32),
    ("(drop (call $exists (i32.const 65536) (i32.const SIZE)))", 100),
    ("(drop (call $value_size (i32.const 65536) (i32.const SIZE)))", 100),
    ("(call $value (i32.const 65536) (i32.const SIZE) NONE NONE NONE)", 100),
    ("(call $append (i32.const 65536) (i32.const SIZE))", 2 << 20),
    ("(call $reject (i32.const 65536) (i32.const SIZE))", 2 << 20),
];

/// A length is checked before anything is read.
#[test]
fn ranges_that_are_too_long_touch_nothing() {
    let replica = Replica::new(Rules::of_2026_08(), None).unwrap();
    for (call, longest) in LIMITED {
        let executed = |size: u64| {
            let call = call.replace("SIZE", &size.to_string()).replace("NONE", "(i32.const 0)");
            let wat = format!(
                r#"(module
                    (import "ic0" "is_controller" (func $is_controller (param i32 i32) (result i32)))
                    (import "ic0" "call_new"
                        (func $new (param i32 i32 i32 i32 i32 i32 i32 i32)))
                    (import "ic0" "certified_data_set" (func $certify (param i32 i32)))
                    (import "ic0" "env_var_name_exists" (func $exists (param i32 i32) (result i32)))
                    (import "ic0" "env_var_value_size"
                        (func $value_size (param i32 i32) (result i32)))
                    (import "ic0" "env_var_value_copy" (func $value (param i32 i32 i32 i32 i32)))
                    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
                    (import "ic0" "msg_reject" (func $reject (param i32 i32)))
                    (memory 40)
                    (func (export "canister_update go") {call}))"#
            );
            let module = replica.compile(&wat::parse_str(&wat).unwrap()).unwrap();
            let mut canister = replica.create_canister().unwrap();
            canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
            update(&mut canister, "go", 0)
        };
        let at = executed(*longest);
        assert_eq!(touched(&at), [longest.div_ceil(65_536), 0, 0, 0], "{call}");
        let past = executed(longest + 1);
        assert_eq!(code(&past), ErrorCode::CanisterContractViolation, "{call}");
        assert_eq!(touched(&past), [0; 4], "{call}");
    }
}

#[test]
fn stable_pages_are_charged_by_wasm_page() {
    let mut canister = canister();
    let execution = update(&mut canister, "stable", 0);
    // The first read is free. The write touches pages 1 and 2, but not the page of the read.
    assert_eq!(touched(&execution), [1, 1, 2, 2]);
    assert_eq!(execution.pages.stable, Instructions(4 * PAGE));
    // Each message starts without touched pages.
    assert_eq!(touched(&update(&mut canister, "stable", 0)), [1, 1, 2, 2]);
}

#[test]
fn a_copy_past_the_end_touches_nothing() {
    let mut canister = canister();
    let execution = update(&mut canister, "copy past the end", 0);
    assert_eq!(code(&execution), ErrorCode::CanisterTrapped);
    assert_eq!(touched(&execution), [1, 1, 0, 0]);
    // The charge of a message that is repeated to find its count is that of one execution.
    assert_eq!(execution.pages.heap, Instructions(2 * PAGE));
}

/// Copies of 24 and of 224 bytes of which 16 are inside of the heap, on a stable page that the message
/// has written. The shorter ones are made in words if the heap has 32-bit addresses, the longer ones
/// in one operation.
#[test]
fn a_stable_copy_past_the_end_of_the_heap_changes_nothing() {
    let with_heap = |heap: &str, apis: &[(&str, &str)]| {
        let (mut imports, mut methods) = (String::new(), String::new());
        for (api, width) in apis {
            for (call, to, from) in [("read", 65_520, 0), ("write", 0, 65_520)] {
                imports += &format!(
                    r#"(import "ic0" "{api}_{call}"
                        (func ${api}_{call} (param {width} {width} {width})))"#
                );
                for length in [24, 224] {
                    methods += &format!(
                        r#"(func (export "canister_update {api} {call} {length}")
                            (call $stable64_write (i64.const 0) (i64.const 0) (i64.const 1))
                            (call ${api}_{call} ({width}.const {to}) ({width}.const {from})
                                ({width}.const {length})))"#
                    );
                }
            }
        }
        let address = if heap.is_empty() { "i32" } else { heap };
        format!(
            r#"(module
                (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
                {imports}
                (memory {heap} 1)
                (func (export "canister_init")
                    (drop (call $grow (i64.const 1)))
                    (memory.fill ({address}.const 0) (i32.const 7) ({address}.const 300))
                    (call $stable64_write (i64.const 0) (i64.const 0) (i64.const 300)))
                {methods})"#
        )
    };
    let both = [("stable", "i32"), ("stable64", "i64")];
    for (heap, apis) in [("", &both[..]), ("i64", &both[1..])] {
        let wasm = wat::parse_str(with_heap(heap, apis)).unwrap();
        for rules in [Rules::of_2025_10(), Rules::of_2026_08()] {
            let replica = Replica::new(rules, None).unwrap();
            let module = replica.compile(&wasm).unwrap();
            let mut canister = replica.create_canister().unwrap();
            canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
            for (api, _) in apis {
                for call in ["read", "write"] {
                    let [short, long] = [24, 224]
                        .map(|length| update(&mut canister, &format!("{api} {call} {length}"), 0));
                    let case = format!("{api}_{call}, heap {heap}, {rules:?}");
                    for execution in [&short, &long] {
                        assert_eq!(code(execution), ErrorCode::CanisterTrapped, "{case}");
                        assert_eq!(execution.memory.heap_changed.get(), 0, "{case}");
                        if rules == Rules::of_2026_08() {
                            assert_eq!(touched(execution), [1, 0, 1, 1], "{case}");
                        }
                    }
                    assert_eq!(long.charge - short.charge, Instructions(200), "{case}");
                    assert_eq!(long.pages, short.pages, "{case}");
                }
            }
        }
    }
}

#[test]
fn changed_pages_are_only_charged_by_the_older_rules() {
    let mut older = install(Rules::of_2025_10(), CANISTER);
    let execution = update(&mut older, "write", 3);
    assert_eq!(execution.pages.touched, None);
    assert_eq!(execution.charge - execution.instructions, Instructions(4_000));
    assert_eq!(execution.pages.heap, Instructions(4_000));
    let execution = update(&mut canister(), "write", 3);
    assert_eq!(execution.memory.heap_changed.get(), 4);
    assert_eq!(execution.charge, execution.instructions);
}

/// Each function of an upgrade touches the same page and pays for it.
#[test]
fn each_function_of_an_install_begins_untouched() {
    let mut canister = canister();
    let module = canister.module().unwrap().clone();
    let execution = canister.upgrade(&module, CALLER, &[]).unwrap();
    assert_eq!(touched(&execution), [2, 2, 0, 0]);
    assert_eq!(execution.pages.heap, Instructions(4 * PAGE));
}

/// More pages than the handler keeps accessible, twice: each is charged once, and its content is
/// committed.
#[test]
fn more_pages_than_can_be_open() {
    let mut canister = canister();
    let pages = (HEAP / 2 - 1) as usize;
    let execution = update(&mut canister, "write every other page", pages);
    assert_eq!(touched(&execution), [pages as u64 + 1, pages as u64 + 1, 0, 0]);
    assert_eq!(execution.memory.heap_changed.get(), pages as u64 + 1);
    // The same content: only the results change.
    let again = update(&mut canister, "write every other page", pages);
    assert_eq!((again.instructions, again.memory.heap_changed.get()), (execution.instructions, 0));
}

/// Nothing stays accessible after a message that touched more pages than can be: the instance that
/// it used counts and changes what a new one does, also in the pages between those that it touched.
#[test]
fn more_pages_than_can_be_open_are_closed_after_the_message() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("saved");
    for rules in [Rules::of_2026_08(), Rules::of_2025_10()] {
        let mut canister = install(rules, CANISTER);
        let many = update(&mut canister, "many", 0);
        if rules == Rules::of_2026_08() {
            assert_eq!(touched(&many), [18_001, 18_001, 0, 0]);
        }
        // A fork has no instance yet.
        let mut new = canister.fork();
        let read = |canister: &Canister| {
            let execution = canister.query(CALLER, "read the gap", &[]).unwrap();
            (execution.charge, execution.pages, numbers(execution))
        };
        assert_eq!(read(&canister), read(&new));
        let [reused, expected] =
            [&mut canister, &mut new].map(|canister| update(canister, "gap", 0));
        assert_eq!((reused.charge, reused.pages), (expected.charge, expected.pages));
        assert_eq!([&reused, &expected].map(|it| it.memory.heap_changed.get()), [101; 2]);
        if rules == Rules::of_2026_08() {
            assert_eq!(reused.pages.heap, Instructions(2 * 101 * PAGE));
        }
        canister.save(&path).unwrap();
        let saved = Replica::new(rules, None).unwrap().load(&path).unwrap();
        let sum = (12_000..12_100).sum::<u64>();
        for canister in [&canister, &canister.fork(), &new, &saved] {
            assert_eq!(read(canister).2[0], sum);
        }
        let again = update(&mut canister, "gap", 0);
        assert!(again.memory.heap_changed.get() <= 1, "only the counter differs");
    }
}

/// Straight-line code is checked at its start: pages that it touches count at the next check, and a
/// message that ends before that succeeds.
#[test]
fn the_limit_is_checked_later() {
    // 2 500 pages use up the 200 M instructions.
    let loads: String =
        (1..=2_600).map(|page| format!("(drop (i64.load (i32.const {})))\n", page << 16)).collect();
    let inspecting = |code: &str| {
        let wat = format!(
            r#"(module
                (import "ic0" "accept_message" (func $accept))
                (import "ic0" "msg_reply" (func $reply))
                (memory 2601)
                (func (export "canister_inspect_message") {code})
                (func (export "canister_update go") (call $reply)))"#
        );
        let replica = Replica::new(Rules::of_2026_08(), None).unwrap();
        let module = replica.compile(&wat::parse_str(&wat).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        canister.update(CALLER, "go", &[]).unwrap()
    };
    assert!(inspecting(&format!("(call $accept) {loads}")).admitted);
    let refused = inspecting(&format!("{loads} (call $accept)"));
    assert!(!refused.admitted);
    assert_eq!(code(&refused), ErrorCode::CanisterInstructionLimitExceeded);
}

/// Forks, traps and queries leave all pages untouched for the next message.
#[test]
fn every_message_begins_untouched() {
    let mut canister = canister();
    let first = update(&mut canister, "write", 10);
    let fork = canister.fork().update(CALLER, "write", &[0; 10]).unwrap();
    canister.query(CALLER, "query", &[0; 20]).unwrap();
    update(&mut canister, "copy past the end", 0);
    let last = update(&mut canister, "write", 10);
    assert_eq!([fork.charge, last.charge], [first.charge; 2]);
    assert_eq!(touched(&last), [11, 11, 0, 0]);
}

/// `setup` and `work` touch pages in common. The counter is read before and after the work, and kept
/// in globals, so that no page of the heap is touched but by setup and work themselves.
const DIVIDED: &str = r#"(module
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
        let canister = install(rules, DIVIDED);
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
    let mut canister = install(Rules::of_2026_08(), DIVIDED);
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
    let mut canister = install(Rules::of_2026_08(), DIVIDED);
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
    let [mut one, mut other] = [(); 2].map(|()| install(Rules::of_2026_08(), DIVIDED));
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
    let mut canister = install(Rules::of_2026_08(), DIVIDED);
    let divided = query(&mut canister, "both", Readings::DividedAt(0));
    let [from, to] = [0, 1].map(|at| divided.readings[at].used);
    let span = Span::Between { from, to };
    let (execution, profile) = canister.profile_query(CALLER, "both", &[], span).unwrap();
    assert_eq!(execution.instructions, divided.instructions);
    assert_eq!(profile.instructions, Instructions(work(divided).0));
}
