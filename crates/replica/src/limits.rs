//! Limits and prices of the replica that are not those of a single operator.
//!
//! Source: `rs/config/src/{embedders,subnet_config}.rs` and
//! `rs/embedders/src/lib.rs` of the replica; application subnet of 13 nodes.

use crate::units::{Bytes, Instructions, OsPages, WasmPages};

const GIB: u64 = 1 << 30;

/// Instructions of one update, start, heartbeat or timer message.
pub const UPDATE_INSTRUCTIONS: Instructions = Instructions(40_000_000_000);
/// Instructions of one query, also of one called as an update.
pub const QUERY_INSTRUCTIONS: Instructions = Instructions(5_000_000_000);
/// Instructions of an install or upgrade, all its functions together.
pub const INSTALL_INSTRUCTIONS: Instructions = Instructions(300_000_000_000);
/// Instructions of deciding whether a message is accepted.
pub const INSPECT_INSTRUCTIONS: Instructions = Instructions(200_000_000);
/// Instructions after which a long message yields to the next round.
pub const SLICE_INSTRUCTIONS: Instructions = Instructions(2_000_000_000);

/// Most slices that one message may take.
pub const MAX_SLICES: i64 = 400;

/// Largest heap with 32-bit addresses.
pub const MAX_HEAP: WasmPages = WasmPages(4 * GIB / 65_536);
/// Largest heap with 64-bit addresses.
pub const MAX_HEAP64: WasmPages = WasmPages(6 * GIB / 65_536);
/// A heap that grows past this in an update fails the message, unless the
/// canister's settings say otherwise.
pub const DEFAULT_WASM_MEMORY_LIMIT: Bytes = Bytes(3 * GIB);
/// Largest stable memory.
pub const MAX_STABLE: WasmPages = WasmPages(500 * GIB / 65_536);
/// Largest stable memory that the 32-bit calls handle.
pub const MAX_STABLE32: WasmPages = WasmPages(4 * GIB / 65_536);

/// Stable pages that one update may access, and as many write.
pub const UPDATE_STABLE_PAGES: OsPages = OsPages(2 * GIB / 4_096);
/// Stable pages that one query may access, and as many write.
pub const QUERY_STABLE_PAGES: OsPages = OsPages(GIB / 4_096);
/// Stable pages that one install or upgrade may access, and as many write.
pub const INSTALL_STABLE_PAGES: OsPages = OsPages(8 * GIB / 4_096);

/// Largest argument of an ingress message.
pub const MAX_ARGUMENT: Bytes = Bytes(2 << 20);
/// Largest reply of an update.
pub const MAX_REPLY: Bytes = Bytes(2 << 20);
/// Largest reply of a query.
pub const MAX_QUERY_REPLY: Bytes = Bytes(3 << 20);

/// Bytes of log that one message may leave.
pub const MAX_LOG: Bytes = Bytes(4_096);
/// Bytes that a log record takes beside its content.
pub const LOG_RECORD_OVERHEAD: Bytes = Bytes(40);
/// Longest text that `trap` and `debug_print` take.
pub const MAX_TEXT: Bytes = Bytes(32 << 10);
/// Printed texts of one message that are kept, so that a canister that prints without
/// end costs bounded memory. The IC keeps what fits into the log.
pub const MAX_PRINTED_TEXTS: usize = 1_000;
/// Bytes of these texts together.
pub const MAX_PRINTED: Bytes = Bytes(1 << 20);
/// Longest name of an environment variable.
pub const MAX_ENVIRONMENT_NAME: Bytes = Bytes(100);
/// Longest certified data.
pub const MAX_CERTIFIED_DATA: Bytes = Bytes(32);

/// Stack that WebAssembly code may use.
pub const WASM_STACK: usize = 5 << 20;
/// Entries of all tables.
pub const MAX_TABLE_ELEMENTS: usize = 1_000_000;

/// Instructions of a stable read beside its bytes.
pub const STABLE_READ_COST: i64 = 20;
/// Instructions of a stable write beside its bytes.
pub const STABLE_WRITE_COST: i64 = 20;
/// Instructions of a stable page that a message writes for the first time.
pub const STABLE_PAGE_WRITTEN_COST: i64 = 1_000;
/// Instructions of growing stable memory.
pub const STABLE_GROW_COST: Instructions = Instructions(100);
/// Instructions, at a message's end, of a heap page whose content changed.
pub const HEAP_PAGE_CHANGED_COST: Instructions = Instructions(1_000);
/// By how much more a page of a 64-bit heap costs.
pub const WASM64_PAGE_FACTOR: u64 = 4;
