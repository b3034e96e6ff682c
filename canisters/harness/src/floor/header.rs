//! What the floor engines remember over an upgrade, at the start of stable memory.
//!
//! ```text
//!  0   3  magic "SBF"
//!  3   1  layout version, 1
//!  4   1  owner: 0 nobody, 1 append, 2 array
//!  5   3  zeros
//!  8   8  rows
//! 16   8  append: bytes of the log; array: slots
//! 24   8  the largest id
//! 32   4  array: bytes of the longest payload that a slot holds
//! 36   4  bytes of the state
//! 40   …  the state
//! ```
//!
//! Numbers are little-endian. A `MemoryManager` has "MGR" in the same place.

use stablebench_protocol::Engine;

const MAGIC: &[u8; 4] = b"SBF\x01";
const HEADER_BYTES: usize = 40;

/// The fields above but for the state.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Header {
    pub owner: Option<Engine>,
    pub rows: u64,
    pub end: u64,
    pub last_id: u64,
    pub slot_payload_bytes: u32,
}

impl Header {
    pub fn encode(&self, state: &[u8]) -> Vec<u8> {
        let owner = match self.owner {
            Some(Engine::Append) => 1u32,
            Some(Engine::Array) => 2,
            _ => 0,
        };
        let mut bytes = MAGIC.to_vec();
        bytes.extend(owner.to_le_bytes());
        bytes.extend(self.rows.to_le_bytes());
        bytes.extend(self.end.to_le_bytes());
        bytes.extend(self.last_id.to_le_bytes());
        bytes.extend(self.slot_payload_bytes.to_le_bytes());
        bytes.extend((state.len() as u32).to_le_bytes());
        bytes.extend(state);
        bytes
    }

    /// The header and the state; nothing where `page` begins otherwise.
    pub fn decode(page: &[u8]) -> Option<(Self, &[u8])> {
        let (fields, rest) = page.split_at_checked(HEADER_BYTES)?;
        if fields[..4] != *MAGIC {
            return None;
        }
        let short = |at: usize| Some(u32::from_le_bytes(fields.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(u64::from_le_bytes(fields.get(at..at + 8)?.try_into().ok()?));
        let owner = match short(4)? {
            0 => None,
            1 => Some(Engine::Append),
            2 => Some(Engine::Array),
            _ => return None,
        };
        let header = Self {
            owner,
            rows: long(8)?,
            end: long(16)?,
            last_id: long(24)?,
            slot_payload_bytes: short(32)?,
        };
        Some((header, rest.get(..short(36)? as usize)?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_survives_its_encoding() {
        let header = Header {
            owner: Some(Engine::Array),
            rows: 1,
            end: u64::MAX,
            last_id: 3,
            slot_payload_bytes: 4,
        };
        let mut page = header.encode(b"state");
        page.resize(100, 0);
        assert_eq!(Header::decode(&page), Some((header, b"state".as_slice())));
    }

    #[test]
    fn what_is_no_header_is_not_read_as_one() {
        assert_eq!(Header::decode(b""), None);
        assert_eq!(Header::decode(&[0; 100]), None);
        let mut manager = Header::default().encode(b"");
        manager[..3].copy_from_slice(b"MGR");
        assert_eq!(Header::decode(&manager), None);
        let cut = Header::default().encode(b"state");
        assert_eq!(Header::decode(&cut[..cut.len() - 1]), None);
    }
}
