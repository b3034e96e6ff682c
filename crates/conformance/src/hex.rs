//! Bytes as hexadecimal text, as in files of cases.

use serde::{Deserialize, Deserializer, Serializer, de};

/// Encodes bytes.
pub(crate) fn encode(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Decodes bytes, or returns what is wrong with the text.
pub(crate) fn decode(text: &str) -> Result<Vec<u8>, String> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return Err(format!("hex needs two digits per byte, but there are {}", digits.len()));
    }
    let digit = |at: usize| {
        char::from(digits[at])
            .to_digit(16)
            .ok_or_else(|| format!("position {at} is not a hex digit"))
    };
    let byte = |at: usize| Ok((digit(at)? * 16 + digit(at + 1)?) as u8);
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// For `#[serde(with)]`.
pub(crate) fn serialize<S: Serializer>(bytes: &[u8], to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(&encode(bytes))
}

/// For `#[serde(with)]`.
pub(crate) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Vec<u8>, D::Error> {
    decode(&String::deserialize(from)?).map_err(de::Error::custom)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decoding_reverses_encoding() {
        let bytes: Vec<u8> = (0..=255).collect();
        assert_eq!(decode(&encode(&bytes)), Ok(bytes));
        assert_eq!(decode("0Aff"), Ok(vec![10, 255]));
        assert_eq!(decode(""), Ok(Vec::new()));
    }

    #[test]
    fn invalid_hex_is_refused() {
        for text in ["0", "0g", "é0", "+1", " 1"] {
            assert!(decode(text).is_err(), "{text:?}");
        }
    }
}
