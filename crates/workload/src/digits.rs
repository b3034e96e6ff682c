//! Keys of 16 digits: a number, padded with zeros. The order of keys is the order of their numbers.

/// Bytes of every key.
pub const KEY_BYTES: usize = 16;

/// A key of digits. The order of keys is the order of their numbers.
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

/// The number of a key; nothing if it is not one of digits.
pub fn number(key: &[u8]) -> Option<u64> {
    let key: &Key = key.try_into().ok()?;
    key.iter().try_fold(0, |number, digit| match digit {
        b'0'..=b'9' => Some(number * 10 + u64::from(digit - b'0')),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

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
}
