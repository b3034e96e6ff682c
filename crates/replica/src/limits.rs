//! Limits and prices that are the same in all rule sets, and limits of this process.
//!
//! Limits that the network has changed, or may change, are in [`crate::rules`].
//!
//! Source: `rs/config/src/{embedders,execution_environment,subnet_config}.rs` and
//! `rs/embedders/src/lib.rs` of the replica.

use crate::units::{Bytes, Instructions};

/// Largest number of slices of a message.
pub const MAX_SLICES: i64 = 400;

/// Size of a log record without its content.
pub const LOG_RECORD_OVERHEAD: Bytes = Bytes(40);
/// Smallest store of a log, and its size by default, without what it needs besides records.
pub const DEFAULT_LOG: Bytes = Bytes(4 << 10);
/// Largest store of a log.
pub const MAX_LOG: Bytes = Bytes(2 << 20);
/// Most bytes of records that are returned at once, with their overhead.
pub const MAX_FETCHED_LOG: Bytes = Bytes(2_000_000);
/// Instructions that reading a log counts as in a composite query, besides one for each byte of its
/// texts.
pub const READ_LOG_INSTRUCTIONS: Instructions = Instructions(150_000);
/// Instructions for each of the records.
pub const READ_LOG_RECORD_INSTRUCTIONS: Instructions = Instructions(900);
/// Bytes of the header and of the index of a store.
pub const LOG_STORE_OVERHEAD: Bytes = Bytes(8 << 10);
/// Longest text of `trap` and `debug_print`.
pub const MAX_TEXT: Bytes = Bytes(32 << 10);
/// Printed texts of a message that are kept, with the overhead of a log record each.
pub const MAX_PRINTED: Bytes = MAX_LOG;
/// Readings of the counter that are reported for a message.
pub const MAX_READINGS: usize = 1 << 20;
/// Longest name of an environment variable that code can look up.
pub const MAX_ENVIRONMENT_NAME: Bytes = Bytes(100);
/// Longest name and longest value of an environment variable.
pub const MAX_ENVIRONMENT_TEXT: Bytes = Bytes(128);
/// Longest certified data.
pub const MAX_CERTIFIED_DATA: Bytes = Bytes(32);

/// Changes of a canister that the replica keeps.
pub const MAX_HISTORY: usize = 20;
/// Most controllers of a canister.
pub const MAX_CONTROLLERS: usize = 10;
/// Largest limit of a heap.
pub const MAX_HEAP_LIMIT: u64 = 1 << 48;
/// Memory of a subnet.
pub const SUBNET_CAPACITY: Bytes = Bytes(2 << 40);
/// Memory that canisters of a subnet can allocate.
pub const SUBNET_MEMORY: Bytes = Bytes(SUBNET_CAPACITY.get() - (10 << 30));
/// Memory in use from which canisters reserve cycles for more.
pub const SCARCE_MEMORY: Bytes = Bytes(750 << 30);
/// Seconds of storage that canisters reserve on a full subnet.
pub const MAX_RESERVATION: u64 = 300_000_000;
/// Percent of compute that canisters of a subnet can reserve together.
pub const COMPUTE_CAPACITY: u64 = 50 * (CORES as u64 - 1);
/// Most chunks of a canister.
pub const MAX_CHUNKS: usize = 100;
/// Most snapshots of a canister.
pub const MAX_SNAPSHOTS: usize = 10;
/// Instructions for uploading a chunk.
pub const UPLOAD_INSTRUCTIONS: Instructions = Instructions(200_000_000);
/// Instructions for taking or loading a snapshot, besides one for each byte.
pub const SNAPSHOT_INSTRUCTIONS: Instructions = Instructions(2_000_000_000);
/// Instructions for reading a part of a snapshot, besides one for each byte.
pub const READ_SNAPSHOT_INSTRUCTIONS: Instructions = Instructions(5_000_000);
/// Most bytes of a part of a snapshot that is read at once.
pub const MAX_SNAPSHOT_SLICE: Bytes = Bytes(2_000_000);
/// Seconds after which a call gives up waiting for a canister to stop.
pub const STOP_TIMEOUT: u64 = 300;

/// Messages that a queue between two canisters holds, in each direction.
pub const MAX_QUEUE: usize = 500;
/// Messages of users that wait for a canister of a subnet, so that memory stays bounded. The Internet
/// Computer limits them for the whole subnet.
pub const MAX_INGRESS: usize = 1_000;
/// Bytes of a request in memory, without name and argument.
pub const REQUEST_OVERHEAD: u64 = 176;
/// Bytes of a response in memory, without the reply.
pub const RESPONSE_OVERHEAD: u64 = 144;
/// Seconds between two charges for storage.
pub const CHARGE_INTERVAL: u64 = 10;
/// Longest timeout of a best-effort call, in seconds.
pub const MAX_CALL_TIMEOUT: u32 = 300;

/// Callbacks that each canister may register at any time.
pub const GUARANTEED_CALLBACKS: usize = 50;
/// Callbacks of a subnet beyond which canisters only have those guaranteed to them.
pub const MAX_CALLBACKS: usize = 1_000_000;
/// Percentage of a callback's instructions that is kept back for the cleanup.
pub const CLEANUP_PERCENT: u64 = 5;
/// Deepest nesting of composite queries.
pub const MAX_QUERY_DEPTH: usize = 6;
/// Instructions of a composite query with all queries that it calls.
pub const MAX_QUERY_INSTRUCTIONS: Instructions = Instructions(5_000_000_000);
/// Instructions that each call of a query counts as, towards this limit.
pub const QUERY_CALL_OVERHEAD: Instructions = Instructions(50_000_000);
/// Cores on which the canisters of a subnet run.
pub const CORES: usize = 4;
/// Instructions that each message counts as, towards the limit of a round.
pub const MESSAGE_OVERHEAD: Instructions = Instructions(2_000_000);
/// Instructions that a canister with messages counts as, in each iteration of a round.
pub const CANISTER_OVERHEAD: Instructions = Instructions(8_000_000);
/// Instructions that each canister of the subnet counts as, in each iteration of a round.
pub const ITERATION_OVERHEAD: Instructions = Instructions(12_000);

/// Stack of WebAssembly code.
pub const WASM_STACK: usize = 5 << 20;
/// Largest number of elements of a table.
pub const MAX_TABLE_ELEMENTS: usize = 1_000_000;

/// Instructions of a stable read without its bytes.
pub const STABLE_READ_COST: i64 = 20;
/// Instructions of a stable write without its bytes.
pub const STABLE_WRITE_COST: i64 = 20;
/// Instructions for growing stable memory.
pub const STABLE_GROW_COST: Instructions = Instructions(100);
