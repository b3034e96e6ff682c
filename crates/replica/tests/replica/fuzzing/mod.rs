//! Fuzz targets, and bounded, reproducible runs of them. `fuzz/` runs them with `cargo fuzz` without a
//! time limit.
//!
//! ```text
//!   arbitrary_module   bytes → a module, plain, gzipped or damaged → install, call
//!   generated_module   bytes → a valid module with System API → install, call, fork
//!   call_sequence      bytes → calls, forks, installs of canisters, compared with models
//!   subnet_calls       bytes → calls between canisters, compared with a model
//!   saved_state        bytes → damage to the file of a saved canister → load, call, save
//!   cache_entry        bytes → damage to the file of a compiled module → compile, call
//! ```
//!
//! A target panics if a check fails. Bytes that are too short for an input are ignored.

pub mod bounded;
mod calls;
pub mod content;
mod files;
mod machine;
mod modules;

pub use calls::{call_sequence, subnet_calls};
pub use files::{cache_entry, saved_state};
pub use modules::{arbitrary_module, generated_module};

use bounded::input;

/// Runs `target` and checks how often each kind of event occurred.
fn run(target: fn(&[u8]), name: &str, inputs: u64, most: u64, meets: &[(&str, usize)]) {
    bounded::run(target, inputs, most);
    bounded::enough(name, meets);
}

#[test]
fn arbitrary_modules() {
    let meets = [("refused", 1_000), ("installed", 100), ("kept", 300), ("undone", 100)];
    // A module without sections, which found a bug.
    arbitrary_module(b"\0asm\x01\0\0\0");
    run(arbitrary_module, "arbitrary_module", 2_000, 400, &meets);
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
    run(generated_module, "generated_module", 150, 4_000, &meets);
}

#[test]
fn call_sequences() {
    let meets = [("kept", 500), ("undone", 500), ("installed", 100), ("not installed", 100)];
    // Input 14 found a bug: a heap that grew after loading.
    run(call_sequence, "call_sequence", 200, 1_500, &meets);
}

#[test]
fn calls_on_a_subnet() {
    let meets = [("replied", 200), ("rejected", 200), ("failed", 200), ("cleaned up", 50)];
    run(subnet_calls, "subnet_calls", 200, 600, &meets);
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
    run(saved_state, "saved_state", 1_500, 200, &meets);
}

#[test]
fn cache_entries() {
    let meets = [("rebuilt", 200), ("taken", 5)];
    run(cache_entry, "cache_entry", 400, 200, &meets);
}

/// Ten times as many inputs as above, all of them different.
#[test]
#[ignore = "takes some minutes: cargo test --release --test replica -- --ignored fuzzing::"]
fn many_more() {
    for number in 10_000..30_000 {
        println!("arbitrary_module, input {number}");
        arbitrary_module(&input(number, 400));
        println!("saved_state, input {number}");
        saved_state(&input(number, 400));
        if number % 5 == 0 {
            println!("cache_entry, input {number}");
            cache_entry(&input(number, 400));
        }
        if number % 10 == 0 {
            println!("generated_module, call_sequence and subnet_calls, input {number}");
            generated_module(&input(number, 4_000));
            call_sequence(&input(number, 3_000));
            subnet_calls(&input(number, 1_000));
        }
    }
}
