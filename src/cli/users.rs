//! What can be typed for the users suite.

use clap::Args;

use super::RunArgs;
use super::values::{
    CompressionArg, EngineArg, JournalModeArg, LockingModeArg, Place, SynchronousArg,
};
use crate::suites::users::Section;

#[derive(Clone, Debug, Args)]
pub struct UsersArgs {
    /// What is measured.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["insert"])]
    pub sections: Vec<Section>,
    /// Rows that are there before.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rows: u64,
    /// Section insert: how many rows are added, each number in a fork of its own [default: what fits of
    /// 1, 10, 50, 100, 1000 and 10000].
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u64).range(1..))]
    pub batches: Vec<u64>,
    /// Engines to measure: sqlite is through ic-rusqlite, sqlite-vfs through ic-sqlite-vfs,
    /// doltlite is DoltLite, which needs a C compiler, leveldb is LevelDB, append and array are
    /// the floor: bare stable memory.
    #[arg(long, value_delimiter = ',', default_values = ["btree", "sqlite", "sqlite-vfs", "append", "array"])]
    pub engines: Vec<EngineArg>,
    /// Journal modes in which sqlite is measured; sqlite-vfs has its own.
    #[arg(long, value_delimiter = ',',
          default_values = ["delete", "truncate", "persist", "memory", "off", "wal"])]
    pub journal_modes: Vec<JournalModeArg>,
    /// How leveldb compresses its tables.
    #[arg(long, value_delimiter = ',', default_values = ["none"])]
    pub compression: Vec<CompressionArg>,
    /// Section insert: where rows are added.
    #[arg(long, value_delimiter = ',', default_values = ["middle", "end"])]
    pub at: Vec<Place>,
    /// Bytes of each row's text.
    #[arg(long, default_value_t = 100, value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub payload: u32,
    /// Section transactions: rows that are added.
    #[arg(long, default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    pub transaction_rows: u64,
    /// Section transactions: rows a transaction.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 100, 1_000, 10_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub transactions: Vec<u64>,
    /// Sections work, working-set and settings: operations of a case.
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=100_000))]
    pub operations: u64,
    /// Section payload: bytes of each row's text.
    #[arg(long, value_delimiter = ',', default_values_t = [10, 100, 1_000, 10_000, 100_000],
          value_parser = clap::value_parser!(u32).range(0..=100_000))]
    pub payloads: Vec<u32>,
    /// Section curve: rows that are there before.
    #[arg(long, value_delimiter = ',', default_values_t = [1_000, 10_000, 100_000, 1_000_000],
          value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub curve_rows: Vec<u64>,
    /// Section working-set: rows that the operations choose from.
    #[arg(long, value_delimiter = ',', default_values_t = [100, 1_000, 10_000, 100_000, 1_000_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub working_sets: Vec<u64>,
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Sections insert and work: measure each operation by itself too, and tell min, p50, p90,
    /// p99, max and the worst.
    #[arg(long)]
    pub per_operation: bool,
    /// After each case that writes, read back only the rows around those written, not all: faster,
    /// and what is wrong elsewhere is not found.
    #[arg(long)]
    pub check_around: bool,
    /// Repeat the forum post's run, which counted spans of ids for rows, and
    /// print its figures beside ours.
    #[arg(long, conflicts_with_all = ["sections", "rows", "batches", "journal_modes", "at", "payload", "engines"])]
    pub as_published: bool,
    #[command(flatten)]
    pub run: RunArgs,
}

/// Section settings: what SQLite's settings are varied over.
#[derive(Clone, Debug, Args)]
pub struct SweepArgs {
    /// Section settings: bytes a page.
    #[arg(long, value_delimiter = ',',
          default_values_t = [512, 1_024, 2_048, 4_096, 8_192, 16_384, 32_768, 65_536])]
    pub page_sizes: Vec<u32>,
    /// Section settings: pages cached; where negative, KiB cached.
    #[arg(long, value_delimiter = ',', allow_hyphen_values = true,
          default_values_t = [0, 10, 100, 1_000, 10_000, 500_000])]
    pub cache_sizes: Vec<i32>,
    /// Section settings: when files are synced.
    #[arg(long, value_delimiter = ',', default_values = ["off", "normal", "full", "extra"])]
    pub synchronous: Vec<SynchronousArg>,
    /// Section settings: how long locks are kept.
    #[arg(long, value_delimiter = ',', default_values = ["exclusive", "normal"])]
    pub locking_modes: Vec<LockingModeArg>,
    /// Section settings: every combination instead of one thing at a time.
    #[arg(long)]
    pub product: bool,
}
