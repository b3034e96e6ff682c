//! MurmurHash64A, by Austin Appleby, who gave it to the public domain.
//!
//! ```text
//! h = seed ^ (length * M)                        all arithmetic modulo 2⁶⁴
//! for each word w of 8 bytes, little-endian:
//!     w = w * M;  w = w ^ (w >> 47);  w = w * M;  h = (h ^ w) * M
//! if bytes are left, r of them as a little-endian number:  h = (h ^ r) * M
//! h = h ^ (h >> 47);  h = h * M;  h = h ^ (h >> 47)
//! ```

const M: u64 = 0xc6a4_a793_5bd1_e995;
const SHIFT: u32 = 47;

/// The hash of bytes under a seed.
#[inline]
pub(crate) fn murmur(bytes: &[u8], seed: u64) -> u64 {
    let (words, rest) = bytes.as_chunks::<8>();
    let mut hash = seed ^ (bytes.len() as u64).wrapping_mul(M);
    for word in words {
        let word = shift(u64::from_le_bytes(*word).wrapping_mul(M)).wrapping_mul(M);
        hash = (hash ^ word).wrapping_mul(M);
    }
    if !rest.is_empty() {
        let mut last = [0; 8];
        last[..rest.len()].copy_from_slice(rest);
        hash = (hash ^ u64::from_le_bytes(last)).wrapping_mul(M);
    }
    shift(shift(hash).wrapping_mul(M))
}

#[inline]
fn shift(word: u64) -> u64 {
    word ^ (word >> SHIFT)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What SMHasher, the test suite of the hash's author, calls the verification value:
    /// the hashes of 0, 1, …, 255 bytes, each under a seed of its own, hashed again.
    #[test]
    fn it_is_the_published_hash() {
        let key: Vec<u8> = (0..=255).collect();
        let hashes: Vec<u8> = (0..256_usize)
            .flat_map(|length| murmur(&key[..length], 256 - length as u64).to_le_bytes())
            .collect();
        assert_eq!(murmur(&hashes, 0) as u32, 0x1f0d_3804);
    }
}
