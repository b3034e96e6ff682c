//! Question: how long does it take until a module can be used?
//!
//! The module is a canister with SQLite: 1.2 M operators, 2.9 MB.

#![allow(clippy::expect_used, clippy::unwrap_used, reason = "benchmarks may panic")]

mod support;

use divan::Bencher;
use stablebench_replica::{Effort, Replica};
use support::{on_a_large_stack, users};

fn main() {
    on_a_large_stack(divan::main);
}

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
        Replica::new(stablebench_replica::Rules::of_2025_10(), Some(directory.path().to_owned()))
            .unwrap()
    };
    start().compile(users::uploaded()).unwrap();
    bencher
        .with_inputs(start)
        .bench_local_refs(|replica| replica.compile(users::uploaded()).unwrap());
}
