//! What can be typed for the users suite.

use std::path::PathBuf;

use clap::Args;

use super::values::{EngineArg, Format, JournalModeArg, LockingModeArg, Place, SynchronousArg};
use super::{ReplicaArgs, TargetArgs};
use crate::suites::users::Section;

#[derive(Clone, Debug, Args)]
pub struct UsersArgs {
    /// What is measured.
    #[arg(long, value_enum, value_delimiter = ',', default_values = ["insert"])]
    pub sections: Vec<Section>,
    /// Rows that are there before.
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..=100_000_000))]
    pub rows: u64,
    /// Section insert: how many rows are added, each number in a fork of its own.
    #[arg(long, value_delimiter = ',', default_values_t = [1, 10, 50, 100, 1_000, 10_000],
          value_parser = clap::value_parser!(u64).range(1..))]
    pub batches: Vec<u64>,
    /// Engines to measure; append and array are the floor: bare stable memory.
    #[arg(long, value_delimiter = ',', default_values = ["btree", "sqlite", "append", "array"])]
    pub engines: Vec<EngineArg>,
    /// Journal modes in which SQLite is measured.
    #[arg(long, value_delimiter = ',',
          default_values = ["delete", "truncate", "persist", "memory", "off", "wal"])]
    pub journal_modes: Vec<JournalModeArg>,
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
    /// Sections work and settings: operations of a case.
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
    #[command(flatten)]
    pub sweep: SweepArgs,
    /// Sections insert and work: measure each operation by itself too, and tell min, p50, p90,
    /// p99, max and the worst.
    #[arg(long)]
    pub per_operation: bool,
    /// What random rows are chosen from.
    #[arg(long, default_value_t = 1)]
    pub seed: u64,
    /// Repeat the forum post's run, which counted spans of ids for rows, and
    /// print its figures beside ours.
    #[arg(long, conflicts_with_all = ["sections", "rows", "batches", "journal_modes", "at", "payload", "engines"])]
    pub as_published: bool,
    #[command(flatten)]
    pub prices: PriceArgs,
    /// Where the results are saved.
    #[arg(long, default_value = "results.json")]
    pub out: PathBuf,
    /// Go on with the run that was saved there and did not end.
    #[arg(long)]
    pub resume: bool,
    /// Leave out of the results how long things took here.
    #[arg(long)]
    pub no_wall_time: bool,
    /// How the results are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// List what would be measured, and measure nothing.
    #[arg(long)]
    pub list: bool,
    #[command(flatten)]
    pub target: TargetArgs,
    /// Settings that are populated side by side.
    #[arg(long, default_value_t = default_jobs(), value_parser = clap::value_parser!(u64).range(1..=256))]
    pub jobs: u64,
    #[command(flatten)]
    pub replica: ReplicaArgs,
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
          default_values_t = [0, 100, 2_000, 500_000])]
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

/// What cycles are paid for and cost.
#[derive(Clone, Copy, Debug, Args)]
pub struct PriceArgs {
    /// Nodes of the subnet that prices are shown for; cycles scale with them from 13.
    #[arg(long, default_value_t = 13, value_parser = clap::value_parser!(u32).range(1..=1_000))]
    pub nodes: u32,
    /// US dollars for a trillion cycles, which is one XDR.
    #[arg(long, default_value_t = 1.36, value_parser = price)]
    pub usd_per_trillion_cycles: f64,
}

fn price(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(price) if price.is_finite() && price >= 0.0 => Ok(price),
        _ => Err("a price is a number of US dollars, as 1.36".to_owned()),
    }
}

fn default_jobs() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}
