//! A fingerprint of rows that every engine can compute over several messages.
//!
//! The digest of a set of rows is the number of rows and, for each of two hashes, the
//! sum of the rows' hashes modulo 2⁶⁴. A sum does not depend on the order, so a log
//! of rows has the digest of a sorted table, and a model can add and remove rows without
//! reading the others. It detects rows that are missing, duplicated, or changed; it does not
//! withstand an adversary.
//!
//! The hash of a row, all arithmetic modulo 2⁶⁴:
//!
//! ```text
//! words = id, length of the payload in bytes,
//!         the payload in little-endian words of 8 bytes, the last padded with zeros
//! h = SEED
//! for each word w:  h = (h ^ w) * FACTOR;  h = h ^ (h >> 32)
//! h = h * FACTOR;   h = h ^ (h >> 29)
//!
//!          SEED                FACTOR
//! low      9e3779b97f4a7c15    bf58476d1ce4e5b9
//! high     c2b2ae3d27d4eb4f    94d049bb133111eb
//! ```
//!
//! Each step is a bijection of `h` for one `w` and of `w` for one `h`: two rows that
//! differ in a single word never have the same hash. A row of 100 bytes costs about
//! 15 words × 2 hashes × 6 instructions.

use stablebench_protocol::Digest;

const LOW: Lane = Lane { seed: 0x9e37_79b9_7f4a_7c15, factor: 0xbf58_476d_1ce4_e5b9 };
const HIGH: Lane = Lane { seed: 0xc2b2_ae3d_27d4_eb4f, factor: 0x94d0_49bb_1331_11eb };

struct Lane {
    seed: u64,
    factor: u64,
}

impl Lane {
    #[inline]
    fn step(&self, hash: u64, word: u64) -> u64 {
        let hash = (hash ^ word).wrapping_mul(self.factor);
        hash ^ (hash >> 32)
    }

    #[inline]
    fn finish(&self, hash: u64) -> u64 {
        let hash = hash.wrapping_mul(self.factor);
        hash ^ (hash >> 29)
    }
}

/// A digest that is being computed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ContentDigest(Digest);

impl ContentDigest {
    /// Adds a row.
    pub fn add(&mut self, id: u64, payload: &[u8]) {
        let (low, high) = row_hashes(id, payload);
        self.0.rows = self.0.rows.wrapping_add(1);
        self.0.low = self.0.low.wrapping_add(low);
        self.0.high = self.0.high.wrapping_add(high);
    }

    /// Removes a row that was added before.
    pub fn remove(&mut self, id: u64, payload: &[u8]) {
        let (low, high) = row_hashes(id, payload);
        self.0.rows = self.0.rows.wrapping_sub(1);
        self.0.low = self.0.low.wrapping_sub(low);
        self.0.high = self.0.high.wrapping_sub(high);
    }

    /// The digest so far.
    pub fn value(&self) -> Digest {
        self.0
    }
}

impl From<Digest> for ContentDigest {
    fn from(digest: Digest) -> Self {
        Self(digest)
    }
}

fn row_hashes(id: u64, payload: &[u8]) -> (u64, u64) {
    let (mut low, mut high) = (LOW.seed, HIGH.seed);
    let mut word = |word: u64| {
        low = LOW.step(low, word);
        high = HIGH.step(high, word);
    };
    word(id);
    word(payload.len() as u64);
    let (words, rest) = payload.as_chunks::<8>();
    for bytes in words {
        word(u64::from_le_bytes(*bytes));
    }
    if !rest.is_empty() {
        let mut bytes = [0; 8];
        bytes[..rest.len()].copy_from_slice(rest);
        word(u64::from_le_bytes(bytes));
    }
    (LOW.finish(low), HIGH.finish(high))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(rows: &[(u64, &[u8])]) -> Digest {
        let mut digest = ContentDigest::default();
        for (id, payload) in rows {
            digest.add(*id, payload);
        }
        digest.value()
    }

    /// Computed from the module's description by another program, in 128-bit integers.
    #[test]
    fn known_digests() {
        assert_eq!(digest(&[]), Digest { rows: 0, low: 0, high: 0 });
        assert_eq!(digest(&[(0, b"")]), Digest { rows: 1, low: KNOWN[0].0, high: KNOWN[0].1 },);
        assert_eq!(
            digest(&[(10, b"aaaaaaaaa"), (20, b"b")]),
            Digest { rows: 2, low: KNOWN[1].0, high: KNOWN[1].1 },
        );
    }

    const KNOWN: [(u64, u64); 2] = [
        (0x8b85_689c_1a1b_54f0, 0x490c_f8d1_67c0_6b80),
        (0x5eee_b67f_aad1_1cd6, 0xa599_3fe1_2f2c_fdf3),
    ];

    #[test]
    fn the_order_does_not_matter_and_rows_can_be_removed() {
        let rows: [(u64, &[u8]); 3] = [(1, b"x"), (2, b""), (u64::MAX, b"12345678")];
        let mut reversed = rows;
        reversed.reverse();
        assert_eq!(digest(&rows), digest(&reversed));
        let mut all = ContentDigest::from(digest(&rows));
        all.remove(2, b"");
        assert_eq!(all.value(), digest(&[rows[0], rows[2]]));
    }

    #[test]
    fn near_rows_differ() {
        let base = digest(&[(1, b"aaaa")]);
        for other in [(2, b"aaaa".as_slice()), (1, b"aaab"), (1, b"aaa"), (1, b"aaaa\0")] {
            let other = digest(&[other]);
            assert_ne!(base.low, other.low);
            assert_ne!(base.high, other.high);
        }
    }
}
