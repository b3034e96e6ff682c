//! The names of this repository's canisters, in the order of lists.

/// StableBTreeMap and SQLite through `ic-rusqlite`.
pub const BENCH: &str = "bench";
/// SQLite through `ic-sqlite-vfs`.
pub const BENCH_VFS: &str = "bench_vfs";
/// LevelDB through `rusty-leveldb`.
pub const BENCH_LEVELDB: &str = "bench_leveldb";
/// DoltLite: SQL on a prolly tree.
pub const BENCH_DOLTLITE: &str = "bench_doltlite";
/// Calls to other canisters, and a map on the heap.
pub const BENCH_CALLS: &str = "bench_calls";
/// Maps from numbers to numbers.
pub const BENCH_COLLECTIONS: &str = "bench_collections";
/// The same in Motoko, with enhanced orthogonal persistence.
pub const BENCH_MOTOKO: &str = "bench_motoko";
/// The same in Motoko, with classical persistence.
pub const BENCH_MOTOKO_CLASSICAL: &str = "bench_motoko_classical";
/// The canister of the suite builds, without options.
pub const BENCH_BUILDS: &str = "bench_builds";

/// All canisters with one module.
pub const CANISTERS: [&str; 8] = [
    BENCH,
    BENCH_VFS,
    BENCH_LEVELDB,
    BENCH_DOLTLITE,
    BENCH_CALLS,
    BENCH_COLLECTIONS,
    BENCH_MOTOKO,
    BENCH_MOTOKO_CLASSICAL,
];
