//! What can be typed. What it means is decided in `commands`.

use std::path::PathBuf;

use clap::{Args, Parser, Subcommand, ValueEnum};
use stablebench_protocol::{Engine, JournalMode, LockingMode, Synchronous};

use crate::suites::users::Section;
use crate::suites::users::task::Access;

/// What storing and reading data costs in a canister of the Internet Computer.
///
/// Without a command: runs the users suite on 1 000 000 rows.
#[derive(Debug, Parser)]
#[command(version, args_conflicts_with_subcommands = true, max_term_width = 100)]
pub struct Cli {
    #[command(subcommand)]
    pub command: Option<Command>,
    #[command(flatten)]
    pub users: UsersArgs,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run a suite.
    Run {
        #[command(subcommand)]
        suite: Option<Suite>,
    },
    /// List the suites.
    List,
    /// Compare two runs, or two columns: ratios of instructions, ceilings, every value.
    ///
    /// Prints new / base of the instructions of each case that both have, and the means of each
    /// section and of all. Where a case says how many operations fit into a message, base / new
    /// of those: more than 1 is always worse.
    ///
    /// Ends with exit code 1 if a ceiling or the threshold is exceeded, or if a case or store
    /// that the base has is missing from the new results, has failed there, or cannot be measured
    /// there any more. What only the new results have is noted.
    Compare(CompareArgs),
    /// Print saved results once more.
    Report(ReportArgs),
    /// Call a method of a canister on the embedded replica.
    Call(CallArgs),
    /// Build a canister, ready to be installed.
    Build(BuildArgs),
}

#[derive(Debug, Subcommand)]
pub enum Suite {
    /// Insert into the middle and at the end of many rows.
    Users(Box<UsersArgs>),
}

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

/// Where a suite runs.
#[derive(Clone, Debug, Args)]
pub struct TargetArgs {
    /// What the canisters run on.
    #[arg(long, value_enum, default_value_t = ReplicaKind::Embedded)]
    pub replica: ReplicaKind,
    /// Kind of subnet of a PocketIC server; the embedded replica is an application subnet.
    #[arg(long, value_enum, default_value_t = SubnetKind::Application)]
    pub subnet: SubnetKind,
    /// Send every message to the embedded replica too, and end at the first difference.
    #[arg(long)]
    pub verify_embedded: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReplicaKind {
    /// In this process; nothing to install.
    Embedded,
    /// The server that POCKET_IC_BIN names, else one that is downloaded.
    PocketIc,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SubnetKind {
    /// Production limits and prices of 13 nodes.
    Application,
    /// Production limits; nothing is paid for.
    System,
    /// Very high instruction limits.
    Benchmarking,
}

#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The results to compare with: a file, or published:users for published figures.
    pub base: PathBuf,
    /// The results that are compared: likewise. With --columns, the base where left out.
    #[arg(required_unless_present = "columns")]
    pub new: Option<PathBuf>,
    /// Compare column A of the base with column B of the new results, case by case: ratios
    /// and ceilings alone, because other engines hold other values.
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "threshold")]
    pub columns: Option<Vec<String>>,
    /// The largest ratio that a case may have, as 1.05.
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_ratio: Option<f64>,
    /// The largest arithmetic average that the ratios of a section may have; each section is
    /// looked at by itself.
    #[arg(long, value_name = "X", value_parser = ceiling)]
    pub max_average: Option<f64>,
    /// How far every value that both hold may be from the base's, up or down: counters, pages,
    /// charges, cycles. Digests must be equal. [default: 0%, or none where --max-ratio,
    /// --max-average or --columns is given]
    #[arg(long, value_name = "PERCENT", value_parser = percent)]
    pub threshold: Option<f64>,
    /// How the comparison is printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
}

#[derive(Debug, Args)]
pub struct ReportArgs {
    /// Saved results, or published:users for published figures.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    /// Only these sections.
    #[arg(long, value_delimiter = ',', value_name = "SECTION")]
    pub sections: Vec<String>,
    /// How they are printed.
    #[arg(long, value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Save what would be printed to this file.
    #[arg(short, long, value_name = "FILE")]
    pub out: Option<PathBuf>,
}

/// `2%`, or `2`.
fn percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text).trim();
    match number.parse::<f64>() {
        Ok(percent) if percent.is_finite() && percent >= 0.0 => Ok(percent),
        _ => Err("a threshold is a percentage, as 2% or 0.5%".to_owned()),
    }
}

/// `1.05`, or `1.05x`.
fn ceiling(text: &str) -> Result<f64, String> {
    match text.trim_end_matches(['x', '×']).parse::<f64>() {
        Ok(ratio) if ratio.is_finite() && ratio > 0.0 => Ok(ratio),
        _ => Err("a ceiling is a ratio, as 1.05 for five percent more".to_owned()),
    }
}

/// The embedded replica.
#[derive(Clone, Debug, Args)]
pub struct ReplicaArgs {
    /// Where compiled modules are kept [default: $XDG_CACHE_HOME/stablebench].
    #[arg(long)]
    pub cache_dir: Option<PathBuf>,
    /// Keep no compiled modules.
    #[arg(long)]
    pub no_cache: bool,
}

fn default_jobs() -> u64 {
    std::thread::available_parallelism().map_or(1, |cores| cores.get() as u64)
}

#[derive(Debug, Args)]
pub struct CallArgs {
    /// `bench`, or the path of a wasm file.
    pub canister: String,
    /// The method.
    pub method: String,
    /// The arguments as Candid text.
    #[arg(default_value = "()")]
    pub arguments: String,
    /// Begin with the canister saved in this file.
    #[arg(long)]
    pub state: Option<PathBuf>,
    /// Save the canister to this file afterwards.
    #[arg(long)]
    pub save: Option<PathBuf>,
    #[command(flatten)]
    pub replica: ReplicaArgs,
}

#[derive(Debug, Args)]
pub struct BuildArgs {
    /// The canister.
    #[arg(default_value = "bench", value_parser = ["bench"])]
    pub canister: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum EngineArg {
    Btree,
    Sqlite,
    Append,
    Array,
}

impl From<EngineArg> for Engine {
    fn from(engine: EngineArg) -> Self {
        match engine {
            EngineArg::Btree => Self::Btree,
            EngineArg::Sqlite => Self::Sqlite,
            EngineArg::Append => Self::Append,
            EngineArg::Array => Self::Array,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum JournalModeArg {
    Delete,
    Truncate,
    Persist,
    Memory,
    Off,
    Wal,
}

impl From<JournalModeArg> for JournalMode {
    fn from(mode: JournalModeArg) -> Self {
        match mode {
            JournalModeArg::Delete => Self::Delete,
            JournalModeArg::Truncate => Self::Truncate,
            JournalModeArg::Persist => Self::Persist,
            JournalModeArg::Memory => Self::Memory,
            JournalModeArg::Off => Self::Off,
            JournalModeArg::Wal => Self::Wal,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum SynchronousArg {
    Off,
    Normal,
    Full,
    Extra,
}

impl From<SynchronousArg> for Synchronous {
    fn from(level: SynchronousArg) -> Self {
        match level {
            SynchronousArg::Off => Self::Off,
            SynchronousArg::Normal => Self::Normal,
            SynchronousArg::Full => Self::Full,
            SynchronousArg::Extra => Self::Extra,
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LockingModeArg {
    Normal,
    Exclusive,
}

impl From<LockingModeArg> for LockingMode {
    fn from(mode: LockingModeArg) -> Self {
        match mode {
            LockingModeArg::Normal => Self::Normal,
            LockingModeArg::Exclusive => Self::Exclusive,
        }
    }
}

/// Where rows are added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Place {
    /// Between the rows around the half.
    Middle,
    /// After the last row.
    End,
    /// Between rows chosen at random.
    Random,
}

impl Place {
    /// The rows that this means.
    pub fn access(self) -> Access {
        match self {
            Self::Middle => Access::Middle,
            Self::End => Access::End,
            Self::Random => Access::Uniform,
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Middle => "middle",
            Self::End => "end",
            Self::Random => "random",
        })
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Table,
    Markdown,
    Csv,
    Json,
}
