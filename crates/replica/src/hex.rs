//! Hashes as lower-case hexadecimal digits.

/// Encodes bytes.
pub fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes 32 bytes from 64 digits.
pub fn decode(text: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if text.len() != 2 * bytes.len() || !text.bytes().all(|digit| digit.is_ascii_hexdigit()) {
        return None;
    }
    for (byte, at) in bytes.iter_mut().zip((0..).step_by(2)) {
        *byte = u8::from_str_radix(text.get(at..at + 2)?, 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_reverses_encoding() {
        let bytes = std::array::from_fn(|at| 8 * at as u8 + 7);
        assert_eq!(decode(&encode(&bytes)), Some(bytes));
        for text in ["", "ab", &"é".repeat(32), &"g0".repeat(32), &"+1".repeat(32)] {
            assert_eq!(decode(text), None, "{text}");
        }
    }
}
