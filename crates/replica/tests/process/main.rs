//! Tests of what the replica does to its process: peaks of memory, and the limit of mappings. They
//! have a program of their own, and run one after the other, because others would change what they
//! measure.
//!
//! Recursion is tested in `limits` of the other program.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "tests may panic")]
#![allow(
    clippy::disallowed_macros,
    clippy::disallowed_methods,
    reason = "tests trust what they read"
)]

#[path = "../support/mod.rs"]
mod support;
mod untrusted;

use std::fs;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Keeps other tests from running, and forgets the peak of memory until now.
fn alone() -> MutexGuard<'static, ()> {
    static ALONE: Mutex<()> = Mutex::new(());
    let alone = ALONE.lock().unwrap_or_else(PoisonError::into_inner);
    // Where the system cannot forget it, the peak is that of all tests until now.
    let _ = fs::write("/proc/self/clear_refs", "5");
    alone
}

/// The peak of resident memory since a test began, in bytes. Only Linux reports it.
fn peak_memory() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let peak: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    Some(peak << 10)
}

/// Canisters that never return: limits bound their cost for the host, in time and in memory.
mod endless {
    use stablebench_replica::{Canister, ErrorCode, Execution, Replica};

    use super::support::{
        self, CALLER, code, compile, install, out_of_instructions, query, rejected, update,
    };
    use super::{alone, peak_memory};

    const UPDATE: u64 = 40_000_000_000;
    const QUERY: u64 = 5_000_000_000;
    const INSTALL: u64 = 300_000_000_000;
    const INSPECT: u64 = 200_000_000;

    const MIB: u64 = 1 << 20;

    /// Operators that cost 21 000 instructions and compile to nothing. With them, messages reach the
    /// instruction limit soon.
    fn expensive() -> String {
        "(drop (f64.min (f64.const 0) (f64.const 0)))".repeat(1_000)
    }

    /// A module with a function `$go` that repeats `work` in a loop, and the exports in `uses`.
    fn forever(work: &str, uses: &str) -> String {
        format!(
            r#"(module
        (import "ic0" "cost_sign_with_ecdsa"
            (func $cost (param i32 i32 i32 i32) (result i32)))
        (import "ic0" "debug_print" (func $print (param i32 i32)))
        (import "ic0" "msg_reject" (func $reject (param i32 i32)))
        (import "ic0" "msg_reply" (func $reply))
        (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
        (import "ic0" "trap" (func $trap (param i32 i32)))
        (memory 16)
        (func $go (loop $again {work} {} (br $again)))
        {uses})"#,
            expensive()
        )
    }

    fn updating(work: &str) -> Execution {
        update(
            &mut install(&forever(work, r#"(export "canister_update go" (func $go))"#)),
            "go",
            &[],
        )
    }

    fn querying(work: &str) -> Execution {
        query(&install(&forever(work, r#"(export "canister_query go" (func $go))"#)), "go", &[])
    }

    fn installing(work: &str, uses: &str) -> Execution {
        let mut canister = Replica::new(stablebench_replica::Rules::of_2025_10(), None)
            .unwrap()
            .create_canister()
            .unwrap();
        canister.install(&compile(&forever(work, uses)), CALLER, &[]).unwrap()
    }

    /// Checks the peak resident memory of a test, including compilation.
    #[track_caller]
    fn bounded_memory() {
        #[cfg(target_os = "linux")]
        {
            let peak = peak_memory().unwrap();
            assert!(peak < 512 << 20, "{} MiB at some time", peak >> 20);
            assert!(support::held() < 512 << 20);
        }
    }

    #[test]
    fn loops() {
        let _alone = alone();
        out_of_instructions(&updating(""), UPDATE);
        out_of_instructions(&querying(""), QUERY);
        for uses in ["(start $go)", r#"(export "canister_init" (func $go))"#] {
            out_of_instructions(&installing("", uses), INSTALL);
        }

        let old = forever("", r#"(export "canister_pre_upgrade" (func $go))"#);
        let upgraded = install(&old).upgrade(&compile("(module)"), CALLER, &[]).unwrap();
        out_of_instructions(&upgraded, INSTALL);
        let new = compile(&forever("", r#"(export "canister_post_upgrade" (func $go))"#));
        let upgraded = install("(module)").upgrade(&new, CALLER, &[]).unwrap();
        out_of_instructions(&upgraded, INSTALL);

        let mut canister = install(&forever(
            "",
            r#"(export "canister_inspect_message" (func $go))
        (export "canister_update u" (func $reply))
        (export "canister_composite_query q" (func $go))"#,
        ));
        let words = format!(
            "Canister exceeded the limit of {INSPECT} instructions for single message execution"
        );
        let not_let_in = update(&mut canister, "u", &[]);
        rejected(&not_let_in, ErrorCode::CanisterInstructionLimitExceeded, &words);
        out_of_instructions(&query(&canister, "q", &[]), QUERY);
        bounded_memory();
    }

    /// An empty loop is not free: its branch is checked.
    #[test]
    fn a_loop_of_nothing() {
        let _alone = alone();
        let canister = install(
            r#"(module (import "ic0" "msg_reply" (func $reply))
        (func (export "canister_inspect_message") (loop $again (br $again)))
        (func (export "canister_update u") (call $reply)))"#,
        );
        let not_let_in = update(&mut canister.fork(), "u", &[]);
        assert_eq!(code(&not_let_in), ErrorCode::CanisterInstructionLimitExceeded);
    }

    /// Printed texts are kept up to a total size, with 40 bytes for each.
    #[track_caller]
    fn printed_to_the_end(execution: &Execution, each: usize) {
        assert_eq!(code(execution), ErrorCode::CanisterInstructionLimitExceeded);
        assert_eq!(execution.printed.len(), (2 << 20) / (each + 40));
        assert!(execution.printed_before > 0);
        assert!(execution.printed.iter().all(|text| text.len() == each));
        bounded_memory();
    }

    #[test]
    fn printing() {
        let _alone = alone();
        let short = "(call $print (i32.const 0) (i32.const 3))";
        printed_to_the_end(&querying(short), 3);
        printed_to_the_end(&updating(short), 3);
        let nothing = "(call $print (i32.const 0) (i32.const 0))";
        printed_to_the_end(&querying(nothing), 0);
        let long = "(call $print (i32.const 0) (i32.const 40000))";
        printed_to_the_end(&querying(long), 32 << 10);
        printed_to_the_end(&updating(long), 32 << 10);
        // Invalid UTF-8 becomes three times as long.
        let noise = "(memory.fill (i32.const 0) (i32.const 255) (i32.const 40000))";
        printed_to_the_end(&querying(&format!("{noise} {long}")), 96 << 10);
        let outside = "(call $print (i32.const -1) (i32.const 1000))";
        printed_to_the_end(&querying(outside), "(debug message out of memory bounds)".len());
    }

    #[test]
    fn printing_while_installing() {
        let _alone = alone();
        let long = "(call $print (i32.const 0) (i32.const 1000000))";
        for uses in ["(start $go)", r#"(export "canister_init" (func $go))"#] {
            printed_to_the_end(&installing(long, uses), 32 << 10);
        }
    }

    /// Texts of rejects are truncated, even if the canister passes a longer one.
    #[test]
    fn long_texts_of_rejects() {
        let _alone = alone();
        let noise = "(memory.fill (i32.const 0) (i32.const 255) (i32.const 1048576))";
        for (ends, expected, longest) in [
            (
                "(call $trap (i32.const 0) (i32.const 1048576))",
                ErrorCode::CanisterCalledTrap,
                97 << 10,
            ),
            (
                "(drop (call $cost (i32.const 0) (i32.const 1048576) (i32.const 0) (i32.const 0)))",
                ErrorCode::CanisterContractViolation,
                97 << 10,
            ),
            (
                "(call $reject (i32.const 0) (i32.const 1048576))",
                ErrorCode::CanisterContractViolation,
                1 << 10,
            ),
        ] {
            for execution in
                [querying(&format!("{noise} {ends}")), updating(&format!("{noise} {ends}"))]
            {
                let reject = execution.outcome.unwrap_err();
                assert_eq!(reject.code, expected, "{ends}");
                assert!(reject.message.len() < longest, "{ends}: {} bytes", reject.message.len());
            }
        }
        // A text longer than the message can pay for ends the message before it is read.
        let outside = "(call $trap (i32.const 0) (i32.const -1))";
        assert_eq!(code(&querying(outside)), ErrorCode::CanisterCalledTrap);
        bounded_memory();
    }

    #[test]
    fn replying() {
        let _alone = alone();
        let endless = querying("(call $append (i32.const 0) (i32.const 65536))");
        assert_eq!(code(&endless), ErrorCode::CanisterContractViolation);
        let nothing = querying("(call $append (i32.const 0) (i32.const 0))");
        assert_eq!(code(&nothing), ErrorCode::CanisterInstructionLimitExceeded);
        bounded_memory();
    }

    /// Asserts that the canister is as it was installed.
    #[track_caller]
    fn unchanged(canister: &Canister) {
        assert_eq!((canister.heap_size().get(), canister.stable_size().get()), (16, 0));
    }

    #[test]
    fn growing_the_heap() {
        let _alone = alone();
        let grow = "(drop (memory.grow (i32.const 1)))";
        out_of_instructions(&querying(grow), QUERY);
        assert_eq!(querying(grow).memory.heap.get(), 65_536);
        // One page of 4 KiB in each MiB is written: 16 MiB in all.
        let touch = r"(drop (memory.grow (i32.const 16)))
            (i32.store (i32.mul (i32.sub (memory.size) (i32.const 1)) (i32.const 65536)) (i32.const 1))";
        out_of_instructions(&querying(touch), QUERY);

        let mut canister = install(&forever(touch, r#"(export "canister_update go" (func $go))"#));
        let execution = update(&mut canister, "go", &[]);
        assert_eq!(code(&execution), ErrorCode::CanisterWasmMemoryLimitExceeded);
        unchanged(&canister);
        bounded_memory();
    }

    #[test]
    fn growing_stable_memory() {
        let _alone = alone();
        // After the first 501 times it returns −1.
        let grow = "(drop (call $grow (i64.const 16384)))
            (call $write (i64.const 1000000000) (i64.const 0) (i64.const 1))";
        out_of_instructions(&querying(grow), QUERY);
        assert_eq!(querying(grow).memory.stable.get(), 500 << 14);
        let mut canister = install(&forever(grow, r#"(export "canister_update go" (func $go))"#));
        out_of_instructions(&update(&mut canister, "go", &[]), UPDATE);
        unchanged(&canister);
        bounded_memory();
    }

    /// A canister that keeps growing over several messages.
    #[test]
    fn growing_in_message_after_message() {
        let _alone = alone();
        let mut canister = install(
            r#"(module
        (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
        (import "ic0" "msg_reply" (func $reply))
        (memory 1)
        (func (export "canister_update go")
            (drop (memory.grow (i32.const 4096)))
            (drop (call $grow (i64.const 1000000)))
            (call $reply)))"#,
        );
        for round in 1..=20 {
            let execution = update(&mut canister, "go", &[]);
            if round < 12 {
                assert_eq!(execution.outcome, Ok(vec![]));
            } else {
                assert_eq!(code(&execution), ErrorCode::CanisterWasmMemoryLimitExceeded);
            }
        }
        assert_eq!(canister.heap_size().get(), 1 + 11 * 4_096);
        assert_eq!(canister.stable_size().get(), 8_000_000);
        assert!(canister.balance().get() > 900 * u128::from(MIB));
        bounded_memory();
    }
}

/// Cost of forks to the process: memory, and mappings, of which `vm.max_map_count` limits the number.
/// A test may need most of them.
#[cfg(target_os = "linux")]
mod mappings {
    use std::ptr::NonNull;

    use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
    use stablebench_replica::{Bytes, Canister, HostError, Replica, Rules, WasmPages};

    use super::alone;
    use super::support::{self, CALLER, held, numbers, query, update};

    fn install(rules: Rules, wat: &str) -> Canister {
        let replica = Replica::new(rules, None).unwrap();
        let module = replica.compile(&wat::parse_str(wat).unwrap()).unwrap();
        let mut canister = replica.create_canister().unwrap();
        canister.configure(vec![CALLER], Bytes(0));
        canister.install(&module, CALLER, &[]).unwrap().outcome.unwrap();
        canister
    }

    /// Heap pages of 4 GiB, and a number in stable memory.
    const MODULE: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_reply_data_append" (func $append (param i32 i32)))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (memory 65536)
    (func (export "canister_init") (drop (call $grow (i64.const 1))))
    ;; Zeros, so that no page changes.
    (func (export "canister_update every other page") (local $at i32)
        (loop $next
            (i32.store (i32.shl (local.get $at) (i32.const 16)) (i32.const 0))
            (local.set $at (i32.add (local.get $at) (i32.const 2)))
            (br_if $next (i32.lt_u (local.get $at) (i32.const 65536))))
        (call $reply))
    ;; Changes 1 000 pages of 4 KiB at growing distances.
    (func (export "canister_update scatter") (local $at i32)
        (loop $next
            (i32.store8
                (i32.mul (i32.mul (local.get $at) (local.get $at)) (i32.const 4096))
                (i32.add (i32.const 1) (call $size)))
            (local.set $at (i32.add (local.get $at) (i32.const 1)))
            (br_if $next (i32.lt_u (local.get $at) (i32.const 1000))))
        (call $reply))
    (func $answer
        (call $read (i64.const 8) (i64.const 0) (i64.const 8))
        (call $append (i32.const 0) (i32.const 16))
        (call $reply))
    (func (export "canister_query both") (call $answer))
    ;; Changes three pages of the heap and one of stable memory.
    (func (export "canister_update count")
        (i64.store (i32.const 0) (i64.add (i64.load (i32.const 0)) (i64.const 1)))
        (i64.store (i32.const 1048576) (i64.load (i32.const 0)))
        (i64.store (i32.const 2097152) (i64.load (i32.const 0)))
        (call $write (i64.const 0) (i64.const 0) (i64.const 8))
        (call $answer)))"#;

    /// Together, the threads need several times as many mappings as a process may have by default.
    #[test]
    fn threads_share_the_mappings_of_the_process() {
        const PAGES: u64 = 32_768;
        let _alone = alone();
        let base = install(Rules::of_2026_08(), MODULE);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut canister = base.fork();
                    for _ in 0..3 {
                        let execution = update(&mut canister, "every other page", &[]);
                        execution.outcome.unwrap();
                        let touched =
                            execution.pages.touched.expect("the rules charge for touching");
                        assert_eq!([touched.heap.get(), touched.heap_written.get()], [PAGES; 2]);
                    }
                });
            }
        });
    }

    /// Idle instances of forks are given up for the next ones.
    #[test]
    fn forks_with_scattered_pages_do_not_use_up_the_mappings() {
        let _alone = alone();
        for rules in [Rules::of_2026_08(), Rules::of_2025_10()] {
            let mut canister = install(rules, MODULE);
            update(&mut canister, "scatter", &[]).outcome.unwrap();
            let mut forks: Vec<Canister> = (0..40).map(|_| canister.fork()).collect();
            for fork in &forks {
                assert_eq!(numbers(query(fork, "both", &[])), [1, 0]);
            }
            for fork in &mut forks {
                update(fork, "scatter", &[0]).outcome.unwrap();
                update(fork, "count", &[]).outcome.unwrap();
            }
            for fork in &forks {
                assert_eq!(numbers(query(fork, "both", &[])), [3, 3]);
            }
            update(&mut canister, "count", &[]).outcome.unwrap();
            assert_eq!(numbers(query(&canister, "both", &[])), [2, 2]);
        }
    }

    /// All mappings that the process had left.
    struct Hog(Vec<NonNull<std::ffi::c_void>>);

    const LENGTH: usize = 4_096;

    impl Hog {
        /// Uses up the mappings of the process. Neighbours differ in their rights, so that the kernel does
        /// not join them.
        #[expect(unsafe_code, reason = "maps memory that nobody uses")]
        fn new() -> Self {
            let mut held = Vec::with_capacity(100_000);
            let rights = [ProtFlags::READ, ProtFlags::READ | ProtFlags::WRITE];
            for rights in rights.into_iter().cycle() {
                // SAFETY: a fresh range at an address of the system's choice.
                let mapped = unsafe {
                    mmap_anonymous(std::ptr::null_mut(), LENGTH, rights, MapFlags::PRIVATE)
                };
                match mapped.ok().and_then(NonNull::new) {
                    Some(mapped) => held.push(mapped),
                    None => break,
                }
            }
            Self(held)
        }

        /// Leaves `count` mappings to others.
        #[expect(unsafe_code, reason = "unmaps memory that nobody uses")]
        fn leave(&mut self, count: usize) {
            for mapped in self.0.drain(self.0.len() - count..) {
                // SAFETY: this value mapped the range.
                unsafe { munmap(mapped.as_ptr(), LENGTH) }.unwrap();
            }
        }
    }

    impl Drop for Hog {
        fn drop(&mut self) {
            self.leave(self.0.len());
        }
    }

    /// A message that finds no mapping left, at any place, has all of its effects or none.
    #[test]
    fn no_mapping_is_needed_to_commit() {
        let _alone = alone();
        for rules in [Rules::of_2026_08(), Rules::of_2025_10()] {
            let base = install(rules, MODULE);
            let (mut done, mut failed) = (0, 0);
            for left in [0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 20] {
                let mut canister = base.fork();
                let run = || {
                    assert_eq!(numbers(query(&canister, "both", &[])), [0, 0]);
                    let mut hog = Hog::new();
                    hog.leave(left);
                    let counted = canister.update(CALLER, "count", &[]);
                    drop(hog);
                    match counted {
                        Ok(execution) => {
                            execution.outcome.unwrap();
                            done += 1;
                            assert_eq!(
                                numbers(query(&canister, "both", &[])),
                                [1, 1],
                                "{left} left"
                            );
                        }
                        Err(error) => {
                            failed += 1;
                            assert!(matches!(error, HostError::Mappings(_)), "{error}");
                            assert!(error.to_string().contains("(vm.max_map_count)"), "{error}");
                            assert_eq!(
                                numbers(query(&canister, "both", &[])),
                                [0, 0],
                                "{left} left"
                            );
                        }
                    }
                    update(&mut canister, "count", &[]).outcome.unwrap();
                };
                // With enough stack, so that no further one is mapped.
                std::thread::scope(|scope| {
                    std::thread::Builder::new()
                        .stack_size(64 << 20)
                        .spawn_scoped(scope, run)
                        .unwrap();
                });
            }
            assert!(done > 0, "{rules}: {done} of {failed}");
            if rules == Rules::of_2026_08() {
                assert!(failed > 0, "{done} of {failed}");
            }
        }
    }

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
        let mut line = vec![support::install(&wat)];
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
}
