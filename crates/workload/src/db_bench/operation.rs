//! What single operations are about.

use crate::Rng;
use stablebench_protocol::DbBenchWrite;

/// Bytes of every key.
pub const KEY_BYTES: usize = 16;

/// Bytes of a piece of a value.
const PIECE_BYTES: usize = 100;

/// Digits: the order of keys is the order of their numbers.
pub type Key = [u8; KEY_BYTES];

/// The key with a number, which has at most 16 digits.
pub fn key(number: u64) -> Key {
    let mut key = [b'0'; KEY_BYTES];
    let mut rest = number;
    for digit in key.iter_mut().rev() {
        *digit += (rest % 10) as u8;
        rest /= 10;
    }
    key
}

/// The number of a key; nothing where it is none of ours.
pub fn number(key: &[u8]) -> Option<u64> {
    let key: &Key = key.try_into().ok()?;
    key.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Some(number * 10 + u64::from(digit - b'0')),
        _ => None,
    })
}

/// What a value is made from.
#[derive(Clone, Debug)]
pub struct Source(Rng);

impl Source {
    /// The value of so many bytes.
    pub fn value(&self, bytes: u32) -> Vec<u8> {
        let mut rng = self.0.clone();
        let bytes = bytes as usize;
        let mut value = Vec::with_capacity(bytes);
        while value.len() < bytes {
            let piece = PIECE_BYTES.min(bytes - value.len());
            let (start, half) = (value.len(), piece.div_ceil(2));
            while value.len() < start + half {
                let random = rng.next_u64().to_le_bytes();
                let wanted = random.len().min(start + half - value.len());
                value.extend_from_slice(&random[..wanted]);
            }
            value.extend_from_within(start..start + piece - half);
        }
        value
    }
}

/// The key's number that operation `index` of a benchmark writes under, and what.
pub fn write(seed: u64, benchmark: &DbBenchWrite, index: u64) -> (u64, Source) {
    let mut rng = rng(seed, benchmark.stream, index);
    let random = rng.below(benchmark.keys);
    (if benchmark.random { random } else { index }, Source(rng))
}

/// The key's number that operation `index` of a benchmark looks up.
pub fn random_key(seed: u64, keys: u64, stream: u64, index: u64) -> u64 {
    rng(seed, stream, index).below(keys)
}

/// Of the seed, the benchmark and the operation, each mixed in by a draw.
fn rng(seed: u64, stream: u64, index: u64) -> Rng {
    let mixed = Rng::new(Rng::new(seed).next_u64() ^ stream).next_u64();
    Rng::new(Rng::new(mixed ^ index).next_u64())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn a_key_is_its_number_in_sixteen_digits() {
        for (of, digits) in [
            (0, "0000000000000000"),
            (1_234_567, "0000000001234567"),
            (9_999_999_999_999_999, "9999999999999999"),
        ] {
            assert_eq!(key(of), *digits.as_bytes());
            assert_eq!(number(digits.as_bytes()), Some(of));
        }
        assert!(key(9) < key(10) && key(99_999) < key(100_000));
        for other in ["", "1", "000000000000000x", "00000000000000000"] {
            assert_eq!(number(other.as_bytes()), None, "{other}");
        }
    }

    fn benchmark(random: bool, stream: u64) -> DbBenchWrite {
        DbBenchWrite { random, keys: 1_000, value_bytes: 100, batch: 1, stream }
    }

    #[test]
    fn a_value_is_a_half_twice() {
        let (_, source) = write(1, &benchmark(false, 0), 0);
        for bytes in [0, 1, 2, 7, 99, 100, 101, 250, 100_000] {
            let value = source.value(bytes);
            assert_eq!(value.len(), bytes as usize);
            for piece in value.chunks(100) {
                let half = piece.len().div_ceil(2);
                assert_eq!(piece[half..], piece[..piece.len() - half], "{bytes}");
            }
            // And its pieces differ.
            let pieces: BTreeSet<&[u8]> = value.chunks(100).collect();
            assert_eq!(pieces.len(), value.len().div_ceil(100));
        }
    }

    #[test]
    fn every_operation_has_a_key_and_a_value_of_its_own() {
        let mut values = BTreeSet::new();
        for seed in 0..3 {
            for stream in 0..3 {
                for index in 0..100 {
                    let (sequential, source) = write(seed, &benchmark(false, stream), index);
                    let (random, _) = write(seed, &benchmark(true, stream), index);
                    assert_eq!(sequential, index);
                    assert!(random < 1_000);
                    assert!(values.insert(source.value(100)), "{seed} {stream} {index}");
                }
            }
        }
    }

    /// With as many draws as keys, 1 - 1/e of the keys are drawn.
    #[test]
    fn random_keys_are_even() {
        let drawn: BTreeSet<u64> = (0..100_000).map(|i| random_key(7, 100_000, 3, i)).collect();
        assert!((62_800..63_600).contains(&drawn.len()), "{}", drawn.len());
        assert_eq!(drawn.last().map(|last| *last < 100_000), Some(true));
    }
}
