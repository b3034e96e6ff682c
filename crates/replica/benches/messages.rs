//! Question: what does a message cost in addition to the code that it executes?
//!
//! The canisters are small, except one with a million rows in SQLite, whose heap has 120 MB and whose
//! stable memory has 190 MB.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "benchmarks may panic")]

mod support;

use std::sync::OnceLock;

use divan::Bencher;
use divan::counter::BytesCount;
use stablebench_replica::{Canister, Principal};
use support::{install, on_a_large_stack, query, replica, update, users, wat};

fn main() {
    on_a_large_stack(divan::main);
}

/// Writes to as many heap pages as the argument has bytes, then replies or traps.
const CANISTER: &str = r#"(module
    (import "ic0" "msg_reply" (func $reply))
    (import "ic0" "msg_arg_data_size" (func $size (result i32)))
    (import "ic0" "stable64_grow" (func $grow (param i64) (result i64)))
    (import "ic0" "stable64_write" (func $write (param i64 i64 i64)))
    (import "ic0" "stable64_read" (func $read (param i64 i64 i64)))
    (memory 1024)
    (func $init (export "canister_init") (drop (call $grow (i64.const 1024))))
    (global $round (mut i32) (i32.const 0))
    (func $touch (local $page i32)
        (global.set $round (i32.add (global.get $round) (i32.const 1)))
        (local.set $page (call $size))
        (block $done (loop $next
            (br_if $done (i32.eqz (local.get $page)))
            (local.set $page (i32.sub (local.get $page) (i32.const 1)))
            (i32.store (i32.mul (local.get $page) (i32.const 4096)) (global.get $round))
            (br $next))))
    (func $see (local $page i32)
        (local.set $page (call $size))
        (block $done (loop $next
            (br_if $done (i32.eqz (local.get $page)))
            (local.set $page (i32.sub (local.get $page) (i32.const 1)))
            (global.set $round (i32.add (global.get $round)
                (i32.load (i32.mul (local.get $page) (i32.const 4096)))))
            (br $next))))
    (func $copy (param $size i64) (local $left i32)
        (local.set $left (i32.const 1000))
        (loop $next
            (call $write (i64.const 4096) (i64.const 0) (local.get $size))
            (call $read (i64.const 0) (i64.const 4096) (local.get $size))
            (local.tee $left (i32.sub (local.get $left) (i32.const 1)))
            (br_if $next))
        (call $reply))
    (func (export "canister_update nothing") (call $reply))
    (func (export "canister_query query") (call $reply))
    (func (export "canister_update touch") (call $touch) (call $reply))
    (func (export "canister_query see_and_touch") (call $see) (call $touch) (call $reply))
    (func (export "canister_update touch_and_trap") (call $touch) (unreachable))
    (func (export "canister_update copy_8") (call $copy (i64.const 8)))
    (func (export "canister_update copy_64") (call $copy (i64.const 64)))
    (func (export "canister_update copy_4096") (call $copy (i64.const 4096)))
    (func (export "canister_update copy_65536") (call $copy (i64.const 65536))))"#;

fn small() -> Canister {
    install(&replica().compile(&wat(CANISTER)).unwrap())
}

#[divan::bench]
fn empty_update(bencher: Bencher<'_, '_>) {
    let mut canister = small();
    bencher.bench_local(|| update(&mut canister, "nothing", &[]));
}

#[divan::bench]
fn empty_query(bencher: Bencher<'_, '_>) {
    let canister = small();
    bencher.bench_local(|| query(&canister, "query", &[]));
}

/// Commits a number of changed heap pages.
#[divan::bench(args = [1, 100, 10_000])]
fn commit(bencher: Bencher<'_, '_>, pages: usize) {
    let (mut canister, argument) = (small(), vec![0; pages]);
    bencher
        .counter(BytesCount::new(pages * 4_096))
        .bench_local(|| update(&mut canister, "touch", &argument));
}

/// Undoes a number of changed heap pages.
#[divan::bench(args = [1, 100, 10_000])]
fn rollback(bencher: Bencher<'_, '_>, pages: usize) {
    let (mut canister, argument) = (small(), vec![0; pages]);
    bencher.counter(BytesCount::new(pages * 4_096)).bench_local(|| {
        canister.update(Principal::anonymous(), "touch_and_trap", &argument).unwrap()
    });
}

/// Queries that read and then write 10 000 heap pages, like SQLite's cache, on one thread and on two,
/// each with its own fork.
#[divan::bench(args = [false, true], threads = [1, 2], sample_count = 50)]
fn query_of_all(bencher: Bencher<'_, '_>, copied_ahead: bool) {
    let (mut canister, argument) = (small(), vec![0; 10_000]);
    update(&mut canister, "touch", &argument);
    let run = if copied_ahead { Canister::query_all } else { Canister::query };
    bencher.with_inputs(|| canister.fork()).bench_refs(|fork| {
        run(fork, Principal::anonymous(), "see_and_touch", &argument).unwrap().outcome.unwrap()
    });
}

/// A thousand writes to stable memory and a thousand reads.
#[divan::bench(args = ["copy_8", "copy_64", "copy_4096", "copy_65536"])]
fn stable_memory(bencher: Bencher<'_, '_>, method: &str) {
    let mut canister = small();
    let bytes: usize = method.trim_start_matches("copy_").parse().unwrap();
    bencher
        .counter(BytesCount::new(2_000 * bytes))
        .bench_local(|| update(&mut canister, method, &[]));
}

/// The same copies between two vectors.
#[divan::bench(args = [8, 64, 4_096, 65_536])]
fn native_memory(bencher: Bencher<'_, '_>, bytes: usize) {
    let (mut one, mut other) = (vec![1_u8; 131_072], vec![2_u8; 131_072]);
    bencher.counter(BytesCount::new(2_000 * bytes)).bench_local(|| {
        for _ in 0..1_000 {
            let bytes = divan::black_box(bytes);
            other[4_096..][..bytes].copy_from_slice(&one[..bytes]);
            one[..bytes].copy_from_slice(&other[4_096..][..bytes]);
            divan::black_box((&mut one, &mut other));
        }
    });
}

/// A canister with a million rows in SQLite. Forks share the pages that they have not written.
fn large() -> Canister {
    static LARGE: OnceLock<Canister> = OnceLock::new();
    LARGE.get_or_init(|| users::with_rows("add_users_sqlite", 1_000_000)).fork()
}

#[divan::bench]
fn fork_of_a_million_rows(bencher: Bencher<'_, '_>) {
    let canister = large();
    bencher.bench_local(|| canister.fork());
}

/// A fork and its first message, which has to map and instantiate.
#[divan::bench]
fn fork_of_a_million_rows_and_an_insert(bencher: Bencher<'_, '_>) {
    let canister = large();
    bencher.bench_local(|| users::add(&mut canister.fork(), "add_users_sqlite", 5, 1));
}

#[divan::bench(sample_count = 20)]
fn save_a_million_rows(bencher: Bencher<'_, '_>) {
    let (canister, directory) = (large(), tempfile::tempdir().unwrap());
    bencher.bench_local(|| canister.save(&directory.path().join("canister")).unwrap());
}

#[divan::bench]
fn load_a_million_rows(bencher: Bencher<'_, '_>) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("canister");
    large().save(&path).unwrap();
    bencher.bench_local(|| replica().load(&path).unwrap());
}
