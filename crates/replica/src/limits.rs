//! Limits and prices that are the same in all rule sets, and bounds of this process.
//!
//! Those that the network has changed, or may, are in [`crate::rules`].
//!
//! Source: `rs/config/src/{embedders,execution_environment,subnet_config}.rs` and
//! `rs/embedders/src/lib.rs` of the replica.

use crate::units::{Bytes, Instructions};

/// Most slices that one message may take.
pub const MAX_SLICES: i64 = 400;

/// Bytes that a log record takes beside its content.
pub const LOG_RECORD_OVERHEAD: Bytes = Bytes(40);
/// Longest text that `trap` and `debug_print` take.
pub const MAX_TEXT: Bytes = Bytes(32 << 10);
/// Printed texts of one message that are kept, so that a canister that prints without
/// end costs bounded memory. The IC keeps what fits into the log.
pub const MAX_PRINTED_TEXTS: usize = 1_000;
/// Bytes of these texts together.
pub const MAX_PRINTED: Bytes = Bytes(1 << 20);
/// Readings of its counter of one message that are reported.
pub const MAX_READINGS: usize = 1 << 20;
/// Longest name of an environment variable that a canister can ask for.
pub const MAX_ENVIRONMENT_NAME: Bytes = Bytes(100);
/// Longest name, and longest value, that an environment variable can be given.
pub const MAX_ENVIRONMENT_TEXT: Bytes = Bytes(128);
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
/// Instructions of growing stable memory.
pub const STABLE_GROW_COST: Instructions = Instructions(100);
