//! The limits of a message.

/// The maximum number of operations whose costs fit into a reply: at 16 bytes each, they leave room
/// in its 2 MiB.
pub const MAX_EACH: u64 = 100_000;

/// The maximum number of rows of a message, however short.
pub const MAX_MESSAGE_ROWS: u64 = 10_000_000;

/// The maximum number of bytes of rows of a message: half of what a message may write.
pub const MAX_MESSAGE_BYTES: u64 = 1 << 30;

/// An id and a length, as an engine without any overhead would store them.
const ROW_OVERHEAD_BYTES: u64 = 12;

/// Returns the maximum number of rows of a message at a payload.
pub fn max_rows(payload_bytes: u32) -> u64 {
    let row_bytes = u64::from(payload_bytes) + ROW_OVERHEAD_BYTES;
    MAX_MESSAGE_ROWS.min(MAX_MESSAGE_BYTES / row_bytes)
}
