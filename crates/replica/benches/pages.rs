//! Question: how long does it take to charge for touched pages?
//!
//! The same messages run under the rules of 2025, which do not track touches, and of 2026, which do,
//! each on a fork of the same canister. Goals: an empty update below 50 µs, inserts at most 1.15 times
//! as long as under the rules of 2025, at most 10 µs for each touched page, and 2 µs for reading a page
//! of 4 KiB that was never written.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "benchmarks may panic")]

mod support;

use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::ItemsCount;
use stablebench_replica::{Canister, Replica, Rules};
use support::{install_on, on_a_large_stack, update, users, wat};

fn main() {
    on_a_large_stack(divan::main);
}

const SETS: &[&str] = Rules::SETS;
/// Rows that are inserted.
const ROWS: u64 = 100_000;
/// Number of pages that the methods below touch.
const PAGES: u64 = 20_000;

const CANISTER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (memory 40001)
    (func $writes (param $step i32) (local $left i32) (local $at i32)
        (local.set $left (i32.const 20000))
        (loop $next
            (local.set $at (i32.add (local.get $at) (local.get $step)))
            (i32.store (i32.mul (local.get $at) (i32.const 65536)) (local.get $left))
            (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))
    (func $reads (local $left i32)
        (local.set $left (i32.const 20000))
        (loop $next
            (drop (i32.load (i32.mul (local.get $left) (i32.const 65536))))
            (br_if $next (local.tee $left (i32.sub (local.get $left) (i32.const 1))))))
    (func (export "canister_update reads") (call $reads) (call $reply))
    (func (export "canister_update nothing") (call $reply))
    (func (export "canister_update adjacent") (call $writes (i32.const 1)) (call $reply))
    (func (export "canister_update every_other") (call $writes (i32.const 2)) (call $reply)))"#;

/// Grows its stable memory to 4 GiB when it is installed, and reads a byte of each page in 2 GiB.
const UNWRITTEN: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (memory 1)
    (func (export "canister_init") (drop (call $grow (i64.const 65536))))
    (func (export "canister_update read") (local $at i64)
        (loop $next
            (call $read (i64.const 0) (local.get $at) (i64.const 1))
            (local.set $at (i64.add (local.get $at) (i64.const 4096)))
            (br_if $next (i64.lt_u (local.get $at) (i64.const 0x80000000))))
        (call $reply)))"#;

fn replica(rules: &str) -> &'static Replica {
    static REPLICAS: OnceLock<Vec<Replica>> = OnceLock::new();
    let replicas = REPLICAS.get_or_init(|| {
        let new = |name: &&str| Replica::new(name.parse().unwrap(), None).unwrap();
        SETS.iter().map(new).collect()
    });
    let found = replicas.iter().find(|replica| replica.rules().name() == rules);
    found.expect("a replica for each set")
}

fn install(rules: &str, module: &[u8]) -> Canister {
    let replica = replica(rules);
    install_on(replica, &replica.compile(module).unwrap())
}

#[divan::bench(args = SETS)]
fn empty_update(bencher: Bencher<'_, '_>, rules: &str) {
    let mut canister = install(rules, &wat(CANISTER));
    bencher.bench_local(|| update(&mut canister, "nothing", &[]));
}

/// An update that reads 20 000 pages.
#[divan::bench(args = SETS, sample_count = 10)]
fn read_pages(bencher: Bencher<'_, '_>, rules: &str) {
    let mut canister = install(rules, &wat(CANISTER));
    bencher.counter(ItemsCount::new(PAGES)).bench_local(|| update(&mut canister, "reads", &[]));
}

/// An update that writes to 20 000 pages, adjacent or with gaps.
#[divan::bench(args = SETS, consts = [1, 2], sample_count = 10)]
fn written_pages<const STEP: usize>(bencher: Bencher<'_, '_>, rules: &str) {
    let mut canister = install(rules, &wat(CANISTER));
    let method = if STEP == 1 { "adjacent" } else { "every_other" };
    bencher.counter(ItemsCount::new(PAGES)).bench_local(|| update(&mut canister, method, &[]));
}

/// An update that reads from 524 288 pages of 4 KiB that were never written, in a new canister each.
#[divan::bench(args = SETS, sample_count = 10)]
fn unwritten_stable_pages(bencher: Bencher<'_, '_>, rules: &str) {
    bencher
        .with_inputs(|| install(rules, &wat(UNWRITTEN)))
        .counter(ItemsCount::new(0x8000_0000_u64 / 4_096))
        .bench_local_refs(|canister| update(canister, "read", &[]));
}

/// Inserts into an empty table. These and inserts into a map are the main work of the users suite.
#[divan::bench(args = SETS, sample_count = 20)]
fn sqlite_inserts(bencher: Bencher<'_, '_>, rules: &str) {
    let mut canister = install(rules, users::uploaded());
    users::create_table(&mut canister);
    bencher
        .with_inputs(|| canister.fork())
        .bench_local_refs(|fork| users::add(fork, "add_users_sqlite", 0, ROWS));
}

#[divan::bench(args = SETS, sample_count = 10)]
fn map_inserts(bencher: Bencher<'_, '_>, rules: &str) {
    let canister = install(rules, users::uploaded());
    bencher
        .with_inputs(|| canister.fork())
        .bench_local_refs(|fork| users::add(fork, "add_users_btree", 0, ROWS));
}
