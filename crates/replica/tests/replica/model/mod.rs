//! Random programs and messages, compared with a model of memories and counts.
//!
//! ```text
//!   program   what the functions of a canister do, at random
//!   module    a program as a WebAssembly module, and its prices
//!   execution   one execution: state, answer, pages, count
//!   driver    canisters and their models
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
mod program;

use std::hash::{DefaultHasher, Hash, Hasher};
use std::ops::Range;
use std::process::Command;
use std::sync::OnceLock;

use stablebench_replica::Effort;

use crate::fuzzing::bounded;
use crate::fuzzing::content::WASM_PAGE;
use driver::replay;
use program::{Access, Api, Op, Program, Value, Width};

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
    hash(&driver::calls(&bounded::long_input(seed, LENGTH), effort))
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
    bounded::enough(driver::MEMORIES, &meets);
}

#[test]
fn calls_and_callbacks() {
    all_calls();
    let meets = [("replied", 10), ("rejected", 10), ("cleaned up", 3), ("timer", 1)];
    bounded::enough(driver::CALLS, &meets);
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
    const REGRESSION: &str = "model::pages_between_many_touched_ones_are_closed_again";
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

// Programs that found faults. The seeds that found them are given, but mean something else once the
// generator changes.

fn stride(first: u64, count: u32, access: Access) -> Op {
    Op::Stride { first: first * WASM_PAGE, step: WASM_PAGE, count, access }
}

/// A message touches more pages than may be open, in two ranges. The pages between them must be closed
/// for the next one, whose writes were lost. Seed 83 of memories finds it.
#[test]
fn pages_between_many_touched_ones_are_closed_again() {
    let zero = Access::Store(Value::Constant(0));
    let both = Access::LoadAndStore(Value::Constant(0));
    for (access, count) in [(zero, 8_300), (both, 4_200)] {
        for gap in [Access::Store(Value::Turn(1)), Access::Load] {
            let many = vec![stride(1_000, count, access), stride(20_000, count, access)];
            let between = vec![Op::Turn, stride(12_000, 100, gap)];
            let program = Program::of(Width::Bits32, 40_000, vec![many, between]);
            replay(&program, &[1, 0, 1, 1]);
        }
    }
}

/// A short copy from stable memory past the end of the heap writes nothing, also from a page of stable
/// memory that was touched before. Seeds 82, 87, 96 and 101 of memories and seed 94 of calls find it.
#[test]
fn a_short_copy_past_the_end_of_the_heap_writes_nothing() {
    let end = WASM_PAGE;
    for (width, api) in [
        (Width::Bits32, Api::Stable32),
        (Width::Bits32, Api::Stable64),
        (Width::Bits64, Api::Stable64),
    ] {
        let fill = vec![
            Op::Fill { at: 0, byte: 7, length: 100 },
            Op::StableWrite { api, to: 0, from: 0, length: 100 },
        ];
        let copies = [(16, 24), (16, 17), (1, 128), (0, 1), (16, 16), (128, 128)];
        let copies = copies.map(|(before, length)| {
            let read = |to, length| Op::StableRead { api, to, from: 0, length };
            vec![read(0, 8), read(end - before, length)]
        });
        let program = Program::of(width, 1, std::iter::once(fill).chain(copies).collect());
        replay(&program, &[0, 1, 2, 3, 4, 5, 6]);
    }
}
