//! Bounded runs of the fuzz targets: the same on every run, with seeds of their own, and
//! of every input that once found something (`regressions`).
//!
//! `fuzz/` runs the targets with `cargo fuzz`, as long as one likes.

mod targets;

use std::fs;
use std::path::Path;

/// A small generator of random numbers (xorshift), so that every run is the same.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    fn bytes(&mut self, most: u64) -> Vec<u8> {
        let length = self.next() % most;
        (0..length).map(|_| self.next() as u8).collect()
    }
}

fn run(target: fn(&[u8]), name: &str, inputs: usize, most: u64) {
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzzing/regressions").join(name);
    for entry in fs::read_dir(kept).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        target(&fs::read(path).unwrap());
    }
    for number in 0..inputs {
        // Each input has a seed of its own, so that one can be run alone.
        let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number as u64 + 1));
        println!("input {number}");
        target(&random.bytes(most));
    }
}

#[test]
fn arbitrary_modules() {
    run(targets::arbitrary_module, "arbitrary_module", 2_000, 400);
}

#[test]
fn generated_modules() {
    run(targets::generated_module, "generated_module", 150, 4_000);
}

#[test]
fn call_sequences() {
    run(targets::call_sequence, "call_sequence", 120, 1_500);
}
