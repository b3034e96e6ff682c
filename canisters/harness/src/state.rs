//! What a canister remembers over an upgrade beside its rows.
//!
//! The state is written as one Candid value, so that later versions may add fields.

use candid::CandidType;
use serde::{Deserialize, Serialize};
use stablebench_protocol::{DEFAULT_PAYLOAD_BYTES, SqliteConfig};

/// Settings.
#[derive(CandidType, Serialize, Deserialize, Clone, Copy, Debug, PartialEq, Eq)]
pub struct State {
    /// The length of the payloads written from now on.
    pub payload_bytes: u32,
    /// The settings that SQLite's connection is opened with.
    pub sqlite_config: SqliteConfig,
    /// Whether SQLite's table was created.
    pub sqlite_created: bool,
}

impl Default for State {
    fn default() -> Self {
        Self {
            payload_bytes: DEFAULT_PAYLOAD_BYTES,
            sqlite_config: SqliteConfig::default(),
            sqlite_created: false,
        }
    }
}

impl State {
    /// As bytes.
    pub fn encode(&self) -> Vec<u8> {
        // Encoding a type that Candid's derive made cannot fail.
        candid::encode_one(self).unwrap_or_default()
    }

    /// From bytes; nothing where they are not a state.
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        candid::decode_one(bytes).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_survives_its_encoding() {
        let state = State { payload_bytes: 7, sqlite_created: true, ..State::default() };
        assert_eq!(State::decode(&state.encode()), Some(state));
        assert_eq!(State::decode(b""), None);
    }
}
