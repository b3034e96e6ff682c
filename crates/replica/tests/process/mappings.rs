//! The limit of mappings that a process may have (`vm.max_map_count`). Each test may need most of
//! them.

use std::ptr::NonNull;

use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use stablebench_replica::{Bytes, Canister, HostError, Replica, Rules};

use super::alone;
use crate::support::{CALLER, numbers, query, update};

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
                    let touched = execution.pages.touched.expect("the rules charge for touching");
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
            let mapped =
                unsafe { mmap_anonymous(std::ptr::null_mut(), LENGTH, rights, MapFlags::PRIVATE) };
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
                        assert_eq!(numbers(query(&canister, "both", &[])), [1, 1], "{left} left");
                    }
                    Err(error) => {
                        failed += 1;
                        assert!(matches!(error, HostError::Mappings(_)), "{error}");
                        assert!(error.to_string().contains("(vm.max_map_count)"), "{error}");
                        assert_eq!(numbers(query(&canister, "both", &[])), [0, 0], "{left} left");
                    }
                }
                update(&mut canister, "count", &[]).outcome.unwrap();
            };
            // With enough stack, so that no further one is mapped.
            std::thread::scope(|scope| {
                std::thread::Builder::new().stack_size(64 << 20).spawn_scoped(scope, run).unwrap();
            });
        }
        assert!(done > 0, "{rules}: {done} of {failed}");
        if rules == Rules::of_2026_08() {
            assert!(failed > 0, "{done} of {failed}");
        }
    }
}
