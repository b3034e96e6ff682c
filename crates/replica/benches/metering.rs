//! Questions: what does counting instructions cost, and what does profiling cost?
//!
//! The same module is compiled by the same optimizer with charges, without them, and in the form for
//! profiles; the loop is also compiled natively. Each sample runs the same message on a fork of the
//! same canister, so only the charges differ.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "benchmarks may panic")]

mod support;

use divan::{Bencher, black_box};
use stablebench_replica::{Canister, Module, Principal, Span};
use support::{install, on_a_large_stack, replica, update, users, wat};

fn main() {
    on_a_large_stack(divan::main);
}

/// Iterations of the loop.
const ROUNDS: u64 = 100_000_000;
/// Rows that are inserted.
const ROWS: u64 = 100_000;

#[derive(Clone, Copy, Debug)]
enum Metering {
    Metered,
    Unmetered,
}

const BOTH: [Metering; 2] = [Metering::Metered, Metering::Unmetered];

fn messages(bencher: Bencher<'_, '_>, canister: Canister, message: impl Fn(&mut Canister) + Sync) {
    bencher.with_inputs(|| canister.fork()).bench_local_refs(|fork| message(fork));
}

/// A linear congruential generator, `ROUNDS` times.
mod tight_loop {
    use super::*;

    fn module(metering: Metering) -> Module {
        let module = wat(&format!(
            r#"(module
                (import "ic0" "msg_reply" (func $reply))
                (global $sum (mut i64) (i64.const 0))
                (func (export "canister_update run") (local $left i64) (local $x i64)
                    (local.set $left (i64.const {ROUNDS}))
                    (loop $next
                        (local.set $x (i64.add
                            (i64.mul (local.get $x) (i64.const 6364136223846793005))
                            (local.get $left)))
                        (local.tee $left (i64.sub (local.get $left) (i64.const 1)))
                        (i64.const 0)
                        (br_if $next (i64.ne)))
                    (global.set $sum (local.get $x))
                    (call $reply)))"#
        ));
        match metering {
            Metering::Metered => replica().compile(&module),
            Metering::Unmetered => replica().compile_unmetered(&module),
        }
        .unwrap()
    }

    #[divan::bench(args = BOTH, sample_count = 20)]
    fn wasm(bencher: Bencher<'_, '_>, metering: Metering) {
        let canister = install(&module(metering));
        messages(bencher, canister, |canister| drop(update(canister, "run", &[])));
    }

    #[divan::bench(sample_count = 20)]
    fn native() -> u64 {
        let (mut left, mut x) = (black_box(ROUNDS), 0_u64);
        while left != 0 {
            x = x.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(left);
            left -= 1;
        }
        x
    }
}

fn users_module(metering: Metering) -> &'static Module {
    match metering {
        Metering::Metered => users::metered(),
        Metering::Unmetered => users::unmetered(),
    }
}

/// Inserts into an empty table in one transaction.
#[divan::bench(args = BOTH, sample_count = 20)]
fn sqlite_inserts(bencher: Bencher<'_, '_>, metering: Metering) {
    let canister = users::with_table(users_module(metering));
    messages(bencher, canister, |canister| drop(users::add(canister, "add_users_sqlite", 0, ROWS)));
}

/// Inserts into an empty map.
#[divan::bench(args = BOTH, sample_count = 10)]
fn map_inserts(bencher: Bencher<'_, '_>, metering: Metering) {
    let canister = install(users_module(metering));
    messages(bencher, canister, |canister| drop(users::add(canister, "add_users_btree", 0, ROWS)));
}

/// Executes the message once before the measurement, so that compilation is not included.
fn profiles(bencher: Bencher<'_, '_>, canister: Canister, method: &str) {
    let profiled = |canister: &mut Canister| {
        let argument = users::rows(0, ROWS);
        let caller = Principal::anonymous();
        let (execution, profile) =
            canister.profile_update(caller, method, &argument, Span::Message).unwrap();
        assert_eq!(profile.instructions, execution.instructions);
    };
    profiled(&mut canister.fork());
    messages(bencher, canister, profiled);
}

/// The inserts of `sqlite_inserts`, profiled.
#[divan::bench(sample_count = 20)]
fn sqlite_inserts_profiled(bencher: Bencher<'_, '_>) {
    profiles(bencher, users::with_table(users::metered()), "add_users_sqlite");
}

/// The inserts of `map_inserts`, profiled.
#[divan::bench(sample_count = 10)]
fn map_inserts_profiled(bencher: Bencher<'_, '_>) {
    profiles(bencher, install(users::metered()), "add_users_btree");
}
