//! Bounded, reproducible runs of the fuzz targets, and of every input that found a bug in the past
//! (`regressions`).
//!
//! `fuzz/` runs the targets with `cargo fuzz` without a time limit.

pub mod bounded;
pub mod targets;

use std::path::Path;

use bounded::input;

/// Runs `target` and checks how often each kind of event occurred.
fn run(target: fn(&[u8]), name: &str, inputs: u64, most: u64, meets: &[(&str, usize)]) {
    let kept =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/replica/fuzzing/regressions").join(name);
    bounded::run(target, &kept, inputs, most);
    bounded::enough(&targets::all_met(name), meets);
}

#[test]
fn arbitrary_modules() {
    let meets = [("refused", 1_000), ("installed", 100), ("kept", 300), ("undone", 100)];
    run(targets::arbitrary_module, "arbitrary_module", 2_000, 400, &meets);
}

#[test]
fn generated_modules() {
    let meets = [
        ("installed", 50),
        ("changed", 50),
        ("undone", 50),
        ("upgraded", 50),
        ("not installed", 5),
    ];
    run(targets::generated_module, "generated_module", 150, 4_000, &meets);
}

#[test]
fn call_sequences() {
    let meets = [("kept", 500), ("undone", 500), ("installed", 100), ("not installed", 100)];
    run(targets::call_sequence, "call_sequence", 200, 1_500, &meets);
}

#[test]
fn calls_on_a_subnet() {
    let meets = [("replied", 200), ("rejected", 200), ("failed", 200), ("cleaned up", 50)];
    run(targets::subnet_calls, "subnet_calls", 200, 600, &meets);
}

#[test]
fn saved_states() {
    let meets = [
        ("refused", 300),
        ("loaded", 300),
        ("fields refused", 300),
        ("fields taken", 100),
        ("went on", 300),
    ];
    run(targets::saved_state, "saved_state", 1_500, 200, &meets);
}

#[test]
fn cache_entries() {
    let meets = [("rebuilt", 200), ("taken", 5)];
    run(targets::cache_entry, "cache_entry", 400, 200, &meets);
}

/// Ten times as many inputs as above, all of them different.
#[test]
#[ignore = "takes some minutes: cargo test --release --test replica -- --ignored fuzzing::"]
fn many_more() {
    for number in 10_000..30_000 {
        println!("arbitrary_module, input {number}");
        targets::arbitrary_module(&input(number, 400));
        println!("saved_state, input {number}");
        targets::saved_state(&input(number, 400));
        if number % 5 == 0 {
            println!("cache_entry, input {number}");
            targets::cache_entry(&input(number, 400));
        }
        if number % 10 == 0 {
            println!("generated_module, call_sequence and subnet_calls, input {number}");
            targets::generated_module(&input(number, 4_000));
            targets::call_sequence(&input(number, 3_000));
            targets::subnet_calls(&input(number, 1_000));
        }
    }
}
