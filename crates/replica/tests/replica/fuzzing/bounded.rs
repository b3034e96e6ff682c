//! What the fuzz targets of all crates use: bounded runs, damage to valid bytes, and counts of events.
//!
//! The runs are reproducible: each input has its own seed. Tests of other crates include this file too.

#![allow(clippy::print_stdout, reason = "the last line names the input that failed")]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Mutex;

use arbitrary::{Result, Unstructured};

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
pub fn long_input(number: u64, length: usize) -> Vec<u8> {
    let mut random = Random(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(number + 1));
    (0..length).map(|_| random.next() as u8).collect()
}

/// Runs `target` on no bytes, and on `inputs` generated inputs of at most `most` bytes.
pub fn run(target: impl Fn(&[u8]), inputs: u64, most: u64) {
    println!("no bytes");
    target(&[]);
    for number in 0..inputs {
        println!("input {number}");
        target(&input(number, most));
    }
}

static MET: Mutex<BTreeMap<(&str, &str), usize>> = Mutex::new(BTreeMap::new());

/// Counts an event of a target.
pub fn met(target: &'static str, what: &'static str) {
    *MET.lock().unwrap().entry((target, what)).or_default() += 1;
}

/// Checks that each kind of event of a target occurred often enough in this process. Otherwise the run
/// tested too little.
pub fn enough(target: &str, meets: &[(&str, usize)]) {
    let met = MET.lock().unwrap();
    for (what, least) in meets {
        let often = met.get(&(target, *what));
        assert!(often.is_some_and(|often| often >= least), "{what} of {target}: {met:?}");
    }
}

/// The bytes with a few of them changed, removed, inserted, repeated or truncated, but not to less
/// than `least`.
pub fn damaged(whole: &[u8], least: usize, input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    let mut bytes = whole.to_vec();
    for _ in 0..input.int_in_range(0..=4)? {
        let at = input.choose_index(bytes.len())?;
        match input.int_in_range(0..=5)? {
            0 => bytes[at] = input.arbitrary()?,
            1 => bytes[at] ^= 1 << input.int_in_range(0..=7)?,
            2 => drop(bytes.remove(at)),
            3 => bytes.insert(at, input.arbitrary()?),
            4 => {
                let end = bytes.len().min(at + input.int_in_range(1..=64)?);
                let again = bytes[at..end].to_vec();
                bytes.splice(at..at, again);
            }
            _ => bytes.truncate(at.max(least)),
        }
    }
    Ok(bytes)
}

/// The bytes of a file with the damage of [`damaged`] at the start or anywhere, with a part copied
/// elsewhere, or followed by more bytes.
pub fn damaged_file(whole: &[u8], input: &mut Unstructured<'_>) -> Result<Vec<u8>> {
    const BEGINNING: usize = 1_024;
    let mut bytes = match input.int_in_range(0..=2)? {
        0 => damaged(whole, 0, input)?,
        1 => {
            let (front, back) = whole.split_at(BEGINNING.min(whole.len()));
            [&damaged(front, 1, input)?, back].concat()
        }
        _ => {
            let (from, to) = (input.choose_index(whole.len())?, input.choose_index(whole.len())?);
            let length = input.int_in_range(1..=8_192)?.min(whole.len() - from.max(to));
            let mut bytes = whole.to_vec();
            bytes.copy_within(from..from + length, to);
            bytes
        }
    };
    if input.ratio(1, 8)? {
        bytes.extend_from_slice(input.bytes(input.len().min(16))?);
    }
    Ok(bytes)
}

/// A temporary folder for an input, in memory if the system supports that.
pub fn folder() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    let directory = if memory.is_dir() { memory.to_owned() } else { std::env::temp_dir() };
    tempfile::Builder::new().prefix("fuzzed-").tempdir_in(directory).expect("a folder")
}

/// Checks the resident memory of this process.
pub fn bounded_memory() {
    const MOST: u64 = 4 << 30;
    // On other systems the fuzzer has its own limit.
    let Ok(statm) = std::fs::read_to_string("/proc/self/statm") else { return };
    let pages = statm.split(' ').nth(1).and_then(|pages| pages.parse::<u64>().ok());
    let bytes = pages.expect("a number of pages") * 4_096;
    assert!(bytes < MOST, "{bytes} bytes are resident");
}
