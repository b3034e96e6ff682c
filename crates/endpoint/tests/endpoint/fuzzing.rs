//! Bounded runs of the fuzz targets, and of every input that once found something
//! (`regressions`). `fuzz/` runs the targets with `cargo fuzz`, as long as one likes.

use std::path::Path;

use super::{bounded, targets};

/// Runs `target` so. What it is to meet is named with how often.
fn run(target: fn(&[u8]), name: &str, inputs: u64, meets: &[(&str, usize)]) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/endpoint/regressions").join(name);
    bounded::run(target, &kept, inputs, 2_000);
    bounded::enough(&targets::all_met(name), meets);
}

#[test]
fn request_bodies() {
    let meets = [("let in", 100), ("refused", 200), ("not there", 20)];
    run(targets::request_body, "request_body", 200, &meets);
}

#[test]
fn management_arguments() {
    let meets = [("ran", 100), ("not decoded", 100), ("rejected", 50)];
    run(targets::management_argument, "management_argument", 200, &meets);
}

#[test]
fn state_paths() {
    let meets = [("read", 100), ("refused", 100)];
    run(targets::state_path, "state_path", 200, &meets);
}

/// Ten times as many inputs as above, which those above are not among.
#[test]
#[ignore = "some minutes: cargo test --release --test endpoint -- --ignored"]
fn many_more() {
    for number in 10_000..12_000 {
        println!("input {number}");
        let input = bounded::input(number, 2_000);
        targets::request_body(&input);
        targets::management_argument(&input);
        targets::state_path(&input);
    }
}
