//! What the rows hold.
//!
//! A new row holds a number of `a`; a row that was updated holds as many `b`, so that
//! an update that did not happen shows in the digest.

use stablebench_protocol::MAX_PAYLOAD_BYTES;

/// The two payloads of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Of a row as inserted.
    New,
    /// Of a row as updated.
    Updated,
}

impl Payload {
    /// The payload with `bytes` bytes; at most [`MAX_PAYLOAD_BYTES`].
    pub fn text(self, bytes: u32) -> String {
        let letter = match self {
            Self::New => "a",
            Self::Updated => "b",
        };
        letter.repeat(bytes.min(MAX_PAYLOAD_BYTES) as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_payload_has_the_length_asked_for() {
        for bytes in [0, 1, 100, MAX_PAYLOAD_BYTES] {
            assert_eq!(Payload::New.text(bytes), "a".repeat(bytes as usize));
            assert_eq!(Payload::Updated.text(bytes), "b".repeat(bytes as usize));
        }
    }
}
