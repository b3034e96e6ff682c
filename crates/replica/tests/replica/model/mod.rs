//! Random programs and messages, compared with a model of memories and counts.
//!
//! ```text
//!   program   what the functions of a canister do, at random
//!   module    a program as a WebAssembly module
//!   prices    prices of operators, calls and pages
//!   execution   one execution: state, answer, pages, count
//!   driver    a canister and its model
//!   regressions   programs that found faults
//!   subnet    canisters that call each other, and their models
//! ```
//!
//! Each message runs on an instance that is reused, on a new one (a fork) and, in a process of its
//! own, on the other backend of memories. After each execution an instance must be as good as new.
//!
//! A failing test prints the seed that it ran last. `STABLEBENCH_SEEDS=SEED` runs one seed and
//! `STABLEBENCH_SEEDS=FIRST..END` many:
//!
//! ```sh
//! STABLEBENCH_SEEDS=17 cargo test --release --test replica -- --ignored --nocapture model::many_more
//! ```

mod driver;
mod execution;
mod module;
mod prices;
mod program;
mod regressions;
mod subnet;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::process::Command;
use std::sync::OnceLock;

use stablebench_replica::Effort;

use crate::fuzzing::bounded;
use crate::fuzzing::targets::met;

/// Bytes of an input.
const LENGTH: usize = 2_500;
/// Seeds of the bounded run. The first of them are repeated with the other backend.
const SEEDS: Range<u64> = 80..110;
const ON_BOTH_BACKENDS: Range<u64> = 80..90;
/// Seeds of canisters that call each other.
const SUBNETS: Range<u64> = 80..95;
/// Name of the environment variable with the seeds of a long run.
const VARIABLE: &str = "STABLEBENCH_SEEDS";

/// Runs one seed. Returns a hash of its counts.
fn memories(seed: u64, effort: Effort) -> u64 {
    println!("memories, seed {seed}");
    hash(&driver::memories(&bounded::long_input(seed, LENGTH), effort))
}

/// Runs one seed of canisters that call each other.
fn calls(seed: u64, effort: Effort) -> u64 {
    println!("calls, seed {seed}");
    hash(&subnet::calls(&bounded::long_input(seed, LENGTH), effort))
}

fn hash(counts: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    counts.hash(&mut hasher);
    hasher.finish()
}

/// Hashes of the counts of [`SEEDS`].
fn all_memories() -> &'static [u64] {
    static HASHES: OnceLock<Vec<u64>> = OnceLock::new();
    HASHES.get_or_init(|| SEEDS.map(|seed| memories(seed, Effort::Full)).collect())
}

/// Hashes of the counts of [`SUBNETS`].
fn all_calls() -> &'static [u64] {
    static HASHES: OnceLock<Vec<u64>> = OnceLock::new();
    HASHES.get_or_init(|| SUBNETS.map(|seed| calls(seed, Effort::Full)).collect())
}

#[test]
fn memories_and_counts() {
    all_memories();
    let meets = [
        ("kept", 50),
        ("undone", 50),
        ("answered", 10),
        ("not answered", 10),
        ("upgraded", 2),
        ("not upgraded", 2),
        ("at the limit", 5),
        ("past the limit", 5),
        ("cut off", 3),
    ];
    bounded::enough(&met::all_met(driver::NAME), &meets);
}

#[test]
fn calls_and_callbacks() {
    all_calls();
    let meets = [("replied", 10), ("rejected", 10), ("cleaned up", 3), ("timer", 1)];
    bounded::enough(&met::all_met(subnet::NAME), &meets);
}

/// Modules that are not optimised count what the model counts, as those that are.
#[test]
fn without_optimisation_the_counts_are_the_same() {
    for (seed, expected) in SEEDS.zip(all_memories()) {
        assert_eq!(memories(seed, Effort::Least), *expected, "seed {seed}");
    }
    for (seed, expected) in SUBNETS.zip(all_calls()) {
        assert_eq!(calls(seed, Effort::Least), *expected, "seed {seed}");
    }
}

/// Runs seeds in a process with the backend for memories that is not the default on Linux.
#[test]
#[cfg(target_os = "linux")]
fn the_other_backend_counts_the_same() {
    const REGRESSION: &str = "model::regressions::pages_between_many_touched_ones_are_closed_again";
    let output = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "model::many_more", REGRESSION, "--include-ignored", "--nocapture"])
        .env("STABLEBENCH_MEMORY", "portable")
        .env(VARIABLE, format!("{}..{}", ON_BOTH_BACKENDS.start, ON_BOTH_BACKENDS.end))
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("2 passed"), "{text}");
    let got: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix(COUNTS)).collect();
    let hashes = ON_BOTH_BACKENDS.zip(all_memories().iter().zip(all_calls()));
    let expected: Vec<String> =
        hashes.map(|(_, (memories, calls))| format!("{memories} {calls}")).collect();
    assert_eq!(expected.len() as u64, ON_BOTH_BACKENDS.end - ON_BOTH_BACKENDS.start);
    assert_eq!(got, expected);
}

/// The beginning of a line with the hashes of a seed's counts.
const COUNTS: &str = "counts: ";

/// The seeds that the environment names, or as many as take some minutes.
fn seeds() -> Range<u64> {
    let Ok(text) = std::env::var(VARIABLE) else { return 10_000..12_000 };
    let number = |text: &str| match text.parse::<u64>() {
        Ok(number) => number,
        Err(error) => panic!("{VARIABLE} is SEED or FIRST..END, not {text}: {error}"),
    };
    match text.split_once("..") {
        Some((first, end)) => number(first)..number(end),
        None => number(&text)..number(&text) + 1,
    }
}

/// As many seeds as take some minutes, or those that `STABLEBENCH_SEEDS` names.
#[test]
#[ignore = "takes some minutes: cargo test --release --test replica -- --ignored model::"]
fn many_more() {
    for seed in seeds() {
        let effort = Effort::Full;
        let (memories, calls) = (memories(seed, effort), calls(seed, effort));
        println!("{COUNTS}{memories} {calls}");
    }
}
