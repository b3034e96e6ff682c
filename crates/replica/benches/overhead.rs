//! Question: how long does the replica take, in addition to the code that it executes?
//!
//! ```text
//!   compile     until a module can be used: a canister with SQLite of 1.2 M operators, 2.9 MB
//!   messages    what a message costs besides its code
//!   pages       charges for touched pages
//! ```
//!
//! ```text
//!   cargo bench -p stablebench-replica --bench overhead -- [PART OF A NAME]
//! ```

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "benchmarks may panic")]

mod support;

fn main() {
    support::on_a_large_stack(divan::main);
}

/// Until a module can be used.
mod compile {
    use divan::Bencher;
    use stablebench_replica::{Effort, Replica};

    use super::support::users;

    /// Validation, rewriting and compilation.
    #[divan::bench(sample_count = 5)]
    fn uncached(bencher: Bencher<'_, '_>) {
        bencher
            .with_inputs(|| Replica::new(stablebench_replica::Rules::of_2025_10(), None).unwrap())
            .bench_local_refs(|replica| replica.compile(users::uploaded()).unwrap());
    }

    /// The same without optimisation, as for a single message.
    #[divan::bench(sample_count = 5)]
    fn without_optimisation(bencher: Bencher<'_, '_>) {
        let rules = stablebench_replica::Rules::of_2025_10();
        bencher
            .with_inputs(|| Replica::with_effort(Effort::Least, rules, None, |_| {}).unwrap())
            .bench_local_refs(|replica| replica.compile(users::uploaded()).unwrap());
    }

    /// The same without charges, to show what the optimizer does with them.
    #[divan::bench(sample_count = 5)]
    fn unmetered(bencher: Bencher<'_, '_>) {
        bencher
            .with_inputs(|| Replica::new(stablebench_replica::Rules::of_2025_10(), None).unwrap())
            .bench_local_refs(|replica| replica.compile_unmetered(users::uploaded()).unwrap());
    }

    /// Loaded from disk by a new replica.
    #[divan::bench(sample_count = 20)]
    fn from_the_cache(bencher: Bencher<'_, '_>) {
        let directory = tempfile::tempdir().unwrap();
        let start = || {
            Replica::new(
                stablebench_replica::Rules::of_2025_10(),
                Some(directory.path().to_owned()),
            )
            .unwrap()
        };
        start().compile(users::uploaded()).unwrap();
        bencher
            .with_inputs(start)
            .bench_local_refs(|replica| replica.compile(users::uploaded()).unwrap());
    }
}

/// The fixed cost of a message, besides the code that it executes.
///
/// The canisters are small, except one with a million rows in SQLite, whose heap has 120 MB and whose
/// stable memory has 190 MB.
mod messages {
    use std::sync::OnceLock;

    use divan::Bencher;
    use divan::counter::BytesCount;
    use stablebench_replica::{Canister, Principal};

    use super::support::{install, query, replica, update, users, wat};

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
}

/// Charges for touched pages.
///
/// The same messages run under the rules of 2025, which do not track touches, and of 2026, which do,
/// each on a fork of the same canister. Goals: an empty update below 50 µs, inserts at most 1.15 times
/// as long as under the rules of 2025, at most 10 µs for each touched page, and 2 µs for reading a page
/// of 4 KiB that was never written.
mod pages {
    use std::sync::OnceLock;

    use divan::Bencher;
    use divan::counter::ItemsCount;
    use stablebench_replica::{Canister, Replica, Rules};

    use super::support::{install_on, update, users, wat};

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
}
