//! Bounded runs of fuzz targets: the same on every run, with a seed for each input. Tests of
//! other crates take this file too.

use std::collections::BTreeMap;
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

/// Input number so many, which has a seed of its own, so that one can be run alone.
pub fn input(number: u64, most: u64) -> Vec<u8> {
    Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1)).bytes(most)
}

/// Runs `target` on what once found something, which is in the folder `kept`, and on so many
/// inputs of at most so many bytes.
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

/// Fails where a run did not meet what it is to meet as often as it is to: then nothing was
/// held for want of anything to hold.
pub fn enough(met: &BTreeMap<&str, usize>, meets: &[(&str, usize)]) {
    for (what, least) in meets {
        assert!(met.get(what).is_some_and(|often| often >= least), "{what}: {met:?}");
    }
}
