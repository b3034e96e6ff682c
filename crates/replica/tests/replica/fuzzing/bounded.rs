//! Bounded runs of fuzz targets. They are reproducible: each input has its own seed. Tests of other
//! crates include this file too.

#![allow(clippy::print_stdout, reason = "the last line names the input that failed")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A small random number generator (xorshift).
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

/// The input with this number, at most `most` bytes long. Each has its own seed and can be run alone.
pub fn input(number: u64, most: u64) -> Vec<u8> {
    Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1)).bytes(most)
}

/// The input with this number, `length` bytes long.
#[allow(dead_code, reason = "most targets also have short inputs")]
pub fn long_input(number: u64, length: usize) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1));
    (0..length).map(|_| random.next() as u8).collect()
}

/// Runs `target` on the inputs in the folder `kept`, which found bugs in the past, and on `inputs`
/// generated inputs of at most `most` bytes.
pub fn run(target: impl Fn(&[u8]), kept: &Path, inputs: u64, most: u64) {
    for entry in fs::read_dir(kept).unwrap() {
        let path = entry.unwrap().path();
        println!("{}", path.display());
        target(&fs::read(path).unwrap());
    }
    for number in 0..inputs {
        println!("input {number}");
        target(&input(number, most));
    }
}

/// Checks that each kind of event occurred often enough. Otherwise the run tested too little.
pub fn enough(met: &BTreeMap<&str, usize>, meets: &[(&str, usize)]) {
    for (what, least) in meets {
        assert!(met.get(what).is_some_and(|often| often >= least), "{what}: {met:?}");
    }
}
